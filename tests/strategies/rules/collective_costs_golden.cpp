// Worked answers of the scaling book, computed by our cost model on a hand-made torus.
//
// The book takes V / W for a ring where (N - 1) / N * V / W is exact (so does its own text where it
// is careful): its figures are ours times N / (N - 1). It takes the larger of latency and transfer
// where we add them, and rounds the half of an odd ring up where we round it down.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "base/json.hpp"
#include "golden.hpp"
#include "hardware_profiles/machine.hpp"
#include "sharding/partition_spec.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/collectives/torus_routes.hpp"
#include "tests/sim/machines.hpp"

namespace shardsim::test {
namespace {

using testing::link;
using testing::torus;

constexpr std::int64_t bytes_per_bf16 = 2;

// Every axis of the mesh along a dimension of its own, all rings or all lines.
Placement placement(const Mesh& mesh, bool wraps, const LinkProfile& each) {
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<TorusSpan>> spans;
  for (const MeshAxis& axis : mesh.axes()) {
    spans.emplace_back();
    if (axis.size > 1) spans.back().push_back({static_cast<int>(sizes.size()), axis.size, 1});
    sizes.push_back(axis.size);
  }
  return {mesh, torus(sizes, std::vector<bool>(sizes.size(), wraps), each), spans};
}

CostBreakdown cost_of(CollectiveKind kind, std::int64_t payload, const std::vector<AxisRef>& axes,
                      const Placement& where) {
  Collective collective;
  collective.kind = kind;
  collective.axes = axes;
  collective.payload = Bytes(payload);
  return collective_cost(where, collective);
}

double in_the_book(double seconds, std::int64_t members) {
  return seconds * static_cast<double>(members) / static_cast<double>(members - 1);
}

std::int64_t whole(const JsonReader& json) {
  return static_cast<std::int64_t>(std::llround(json.number()));
}

Mesh one_axis(const JsonReader& input) {
  return Mesh({{"X", input.at("axis").integer(2, 1 << 20)}});
}

Json ring_gather(const JsonReader& input) {
  const Mesh mesh = one_axis(input);
  const CostBreakdown cost =
      cost_of(CollectiveKind::all_gather, whole(input.at("bytes")), {mesh.whole(0)},
              placement(mesh, /*wraps=*/true, link(input.at("bidi_bw").number() / 2, 0)));
  return {{"seconds", in_the_book(cost.transfer.count(), mesh.devices())}};
}

Json line_gather(const JsonReader& input) {
  const Mesh mesh = one_axis(input);
  const auto hop = input.find("hop_latency");
  const CostBreakdown cost = cost_of(
      CollectiveKind::all_gather, whole(input.at("shard_bytes")) * mesh.devices(), {mesh.whole(0)},
      placement(mesh, /*wraps=*/false,
                link(input.at("one_way_bw").number(), hop ? hop->number() : 0)));
  return {{"seconds", std::max(cost.transfer.count(), cost.latency.count())}};
}

Json ring_latency(const JsonReader& input) {
  const Mesh mesh = one_axis(input);
  const double hop = input.at("hop_latency").number();
  const CostBreakdown cost = cost_of(CollectiveKind::all_gather, 0, {mesh.whole(0)},
                                     placement(mesh, /*wraps=*/true, link(1, hop)));
  return {{"seconds", cost.latency.count() + static_cast<double>(mesh.devices() % 2) * hop}};
}

Json replication(const JsonReader& input) {
  const Mesh mesh = read_golden_mesh(input.at("mesh"));
  const PartitionSpec spec = read_partition_spec(input.at("spec"));
  const Sharding sharding = to_sharding(spec, spec.size(), mesh, input.place());
  return {{"ratio", mesh.devices() / Mesh::size_of(split_axes(sharding))}};
}

// All-gather of a bf16 array over some of its axes: the payload is what a device then holds.
Json array_gather(const JsonReader& input) {
  const Mesh mesh = read_golden_mesh(input.at("mesh"));
  const PartitionSpec spec = read_partition_spec(input.at("spec"));
  std::int64_t payload = bytes_per_bf16;
  for (const JsonReader& size : input.at("global_shape").elements()) {
    payload *= size.integer(1, 1 << 30);
  }
  payload /= Mesh::size_of(split_axes(to_sharding(spec, spec.size(), mesh, input.place())));
  std::vector<AxisRef> axes;
  for (const JsonReader& name : input.at("gather").elements()) {
    axes.push_back(mesh.whole(mesh.find(name.string()).value()));
  }
  payload *= Mesh::size_of(axes);
  const CostBreakdown cost =
      cost_of(CollectiveKind::all_gather, payload, axes,
              placement(mesh, /*wraps=*/true, link(input.at("bidi_bw").number() / 2, 0)));
  return {{"seconds", in_the_book(cost.transfer.count(), Mesh::size_of(axes))}};
}

// A formula without numbers: it holds for our model where the numbers are these.
struct Sample {
  std::int64_t payload;
  std::int64_t axis;
  int axes;
};

using Check = std::function<bool(const Sample&)>;

GoldenFunction formula(const Check& holds) {
  return [holds](const JsonReader& input) -> Json {
    for (const Sample& sample : {Sample{34'000'000, 4, 1}, Sample{1 << 20, 16, 1},
                                 Sample{256'000'000, 8, 2}, Sample{1 << 12, 4, 3}}) {
      if (holds(sample)) continue;
      input.fail(fmt::format("does not hold for {} bytes over {} axes of {}", sample.payload,
                             sample.axes, sample.axis));
    }
    return Json::object();
  };
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

constexpr double one_way = 45e9;
constexpr double hop = 1e-6;

CostBreakdown sampled(CollectiveKind kind, const Sample& sample, bool wraps) {
  std::vector<MeshAxis> mesh_axes;
  std::vector<AxisRef> axes;
  for (int i = 0; i < sample.axes; ++i) {
    mesh_axes.push_back({std::string(1, "XYZ"[i]), sample.axis});
  }
  const Mesh mesh(mesh_axes);
  for (int i = 0; i < sample.axes; ++i) axes.push_back(mesh.whole(i));
  return cost_of(kind, sample.payload, axes, placement(mesh, wraps, link(one_way, hop)));
}

// max(T_min * sum |X_i| / 2, V / (W_bidi * axes))
bool general_gather(const Sample& sample) {
  const CostBreakdown cost = sampled(CollectiveKind::all_gather, sample, /*wraps=*/true);
  const auto members = static_cast<std::int64_t>(std::llround(std::pow(sample.axis, sample.axes)));
  return near(cost.latency.count(), hop * static_cast<double>(sample.axis * sample.axes) / 2) &&
         near(in_the_book(cost.transfer.count(), members),
              static_cast<double>(sample.payload) / (2 * one_way * sample.axes));
}

// V / W_oneway * (N - 1) / N, for an all-gather and a reduce-scatter: one direction as in a line.
bool one_direction(const Sample& sample) {
  const Sample line{sample.payload, sample.axis, 1};
  const auto n = static_cast<double>(sample.axis);
  const double wanted = static_cast<double>(sample.payload) / one_way * (n - 1) / n;
  return near(sampled(CollectiveKind::all_gather, line, false).transfer.count(), wanted) &&
         near(sampled(CollectiveKind::reduce_scatter, line, false).transfer.count(), wanted);
}

bool reduce_is_two_gathers(const Sample& sample) {
  const CostBreakdown reduce = sampled(CollectiveKind::all_reduce, sample, /*wraps=*/true);
  const CostBreakdown gather = sampled(CollectiveKind::all_gather, sample, /*wraps=*/true);
  return near(reduce.transfer.count(), 2 * gather.transfer.count()) &&
         near(reduce.latency.count(), 2 * gather.latency.count());
}

// The published 190 us takes the whole array where each device reduces 1/16 of it; both are words
// there. Ours is for the sharded array: bf16[1024_X, 4096_Y] on 4x4x4.
Json sharded_reduce(const JsonReader& input) {
  const Mesh mesh({{"X", 4}, {"Y", 4}, {"Z", 4}});
  const CostBreakdown cost = cost_of(
      CollectiveKind::all_reduce, std::int64_t{1024} * 4096 * bytes_per_bf16 / 16, {mesh.whole(2)},
      placement(mesh, /*wraps=*/true, link(input.at("bidi_bw").number() / 2, 0)));
  return {{"seconds", in_the_book(cost.transfer.count(), 4)}};
}

// The communication of A[B, D_X] . B[D_X, F]: 4 B F / W for the bf16 partial sums [B, F].
bool summed_output(const Sample& sample) {
  const Sample ring{sample.payload, sample.axis, 1};
  const CostBreakdown cost = sampled(CollectiveKind::all_reduce, ring, /*wraps=*/true);
  return near(in_the_book(cost.transfer.count(), ring.axis),
              2 * static_cast<double>(ring.payload) / (2 * one_way));
}

// A[B, D] . B[D_X, F]: 2 D F / W for the bf16 weights [D, F].
bool gathered_weights(const Sample& sample) {
  const Sample ring{sample.payload, sample.axis, 1};
  const CostBreakdown cost = sampled(CollectiveKind::all_gather, ring, /*wraps=*/true);
  return near(in_the_book(cost.transfer.count(), ring.axis),
              static_cast<double>(ring.payload) / (2 * one_way));
}

// An array of V bytes over a ring, of which every member holds V / N: a quarter of its gather. A
// ring of one direction, where it is half, we do not have.
bool exchange_is_quarter(const Sample& sample) {
  const Sample whole{sample.payload, sample.axis, 1};
  const Sample shard{sample.payload / sample.axis, sample.axis, 1};
  const CostBreakdown gather = sampled(CollectiveKind::all_gather, whole, /*wraps=*/true);
  const CostBreakdown exchange = sampled(CollectiveKind::all_to_all, shard, /*wraps=*/true);
  return near(exchange.transfer.count(), in_the_book(gather.transfer.count(), sample.axis) / 4);
}

// What one member of a ring sends to all others, counted in chunks times the links they cross.
Json exchanged_chunks(const JsonReader& input) {
  const std::int64_t members = input.at("N").integer(2, 1 << 10);
  const Placement ring = placement(Mesh({{"X", members}}), /*wraps=*/true, link(one_way, hop));
  std::int64_t right = 0;
  std::int64_t left = 0;
  for (std::int64_t target = 1; target < members; ++target) {
    TorusRoutes routes(ring);
    routes.add(0, target);
    (routes.busy(0, /*up=*/true) > 0 ? right : left) += routes.longest();
  }
  return {{"chunks_right", right}, {"chunks_left", left}, {"total", right + left}};
}

Profile profile_of(const JsonReader& input) {
  const std::string name = input.at("tpu").string();
  return load_profile("tpu-" + (name == "v4p" ? "v4" : name), input.at("tpu").place());
}

Json link_table(const JsonReader& input) {
  const Profile profile = profile_of(input);
  const double rate = std::get<TorusProfile>(profile.network).link.bandwidth.value.count();
  return {{"one_way_bytes_per_s", rate}, {"bidi_bytes_per_s", 2 * rate}};
}

// Our capacity is what the compiler lets programs use, within the last GiB of what is on the chip.
Json chip_table(const JsonReader& input) {
  const DeviceProfile device = profile_of(input).device;
  return {{"hbm_gb", ceil_div(device.memory_capacity.value.count(), GiB)},
          {"hbm_bytes_per_s", device.memory_bandwidth.value.count()},
          {"bf16_flops", device.peak.at(DType::bf16).value.count()}};
}

}  // namespace

void add_collective_costs(GoldenFunctions& functions) {
  const std::set<std::string> words = {
      "published", "published_formula", "formula", "measured_by_author", "time", "CAUTION"};
  const auto add = [&](const std::string& name, const GoldenFunction& function) {
    functions.add(name, function, words);
  };
  add("all_gather time, bidirectional ring", ring_gather);
  add("all_gather time, line topology (no wraparound)", line_gather);
  add("all_gather time, latency bound, line", line_gather);
  add("all_gather of 128 bf16 over ring of 4 with wraparound", ring_latency);
  add("total bytes over all chips / one copy", replication);
  add("all_gather over X of bf16[1024_X,4096_Y]", array_gather);
  add("all_gather over X and Y", array_gather);
  add("all_reduce over Z of bf16[1024_X,4096_Y]{U_Z}", sharded_reduce);
  add("all_gather time", formula(general_gather));
  add("all_gather or reduce_scatter, unidirectional ring", formula(one_direction));
  add("all_reduce", formula(reduce_is_two_gathers));
  add("A[B,D_X] . B[D_X,F] then all-reduce output", formula(summed_output));
  add("A[B,D] . B[D_X,F]: all-gather weights", formula(gathered_weights));
  functions.add("all_to_all, bidirectional ring", formula(exchange_is_quarter),
                {"formula", "per_link_unidirectional"});
  add("all_to_all chunks per device, even bidirectional ring", exchanged_chunks);
  // The book rounds to two digits; makers and books differ by little more.
  constexpr double two_digits = 0.025;
  functions.add("hardware table: ICI bandwidth per link", link_table, words, two_digits);
  functions.add("hardware table", chip_table, words, two_digits);
}

}  // namespace shardsim::test
