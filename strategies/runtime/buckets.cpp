#include "strategies/runtime/buckets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <utility>

#include "base/index.hpp"
#include "strategies/runtime/module_walk.hpp"

namespace shardsim {
namespace {

std::int64_t rounded_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

// One buffer, whose parameters are reduced over the same axes.
class Cutter {
 public:
  // Limits in elements, of the first bucket and of others; 0: none. `multiple`: where one may end.
  Cutter(const GradientBuffer& rule, std::int64_t first_limit, std::int64_t limit,
         std::int64_t multiple, std::vector<Bucket>& buckets)
      : rule_(rule),
        limit_(first_limit),
        other_limit_(limit),
        multiple_(multiple),
        buckets_(buckets) {}

  void add(const BufferedParameter& parameter) {
    assert(parameter.elements > 0);
    const bool apart = parameter.is_shared && rule_.shared_apart;
    const bool overflows = rule_.closes == BucketCloses::before && limit_ > 0 &&
                           unpadded_ + parameter.elements > limit_;
    if (apart || overflows) close();
    const std::int64_t begin = rounded_up(open_.elements, rule_.parameter_multiple);
    open_.elements = begin + parameter.elements;
    unpadded_ += parameter.elements;
    open_.axes = parameter.axes;
    open_.parameters.push_back(parameter);
    const bool is_full = limit_ > 0 && open_.elements >= limit_;
    if (apart || is_full) close();
  }

  void close() {
    if (open_.parameters.empty()) return;
    open_.elements = rounded_up(open_.elements, multiple_);
    buckets_.push_back(std::exchange(open_, {}));
    limit_ = other_limit_;
    unpadded_ = 0;
  }

 private:
  const GradientBuffer& rule_;
  std::int64_t limit_;  // of the open one
  std::int64_t other_limit_;
  std::int64_t multiple_;
  std::vector<Bucket>& buckets_;
  Bucket open_;
  std::int64_t unpadded_ = 0;  // elements of the open one
};

}  // namespace

std::int64_t unpadded(const Bucket& bucket) {
  return std::accumulate(bucket.parameters.begin(), bucket.parameters.end(), std::int64_t{0},
                         [](std::int64_t sum, const BufferedParameter& parameter) {
                           return sum + parameter.elements;
                         });
}

ShardAxes split_shards(const AxisList& axes, std::int64_t shards) {
  ShardAxes split;
  std::int64_t left = shards;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const std::int64_t within = std::gcd(left, axis->size);
    left /= within;
    const std::int64_t across = axis->size / within;
    if (across > 1) split.across.insert(split.across.begin(), {axis->axis, axis->pre_size, across});
    if (within > 1) {
      split.within.insert(split.within.begin(), {axis->axis, axis->pre_size * across, within});
    }
  }
  assert(left == 1 && "readers have checked that the shards divide the axes");
  return split;
}

std::int64_t sharers(const FlatOptimizer& optimizer, const AxisList& axes) {
  const std::int64_t devices = Mesh::size_of(axes);
  const std::int64_t instances = optimizer.instances;
  if (instances > 1 && devices % instances == 0) return devices / instances;
  return optimizer.shards == 0 ? devices : std::gcd(optimizer.shards, devices);
}

std::vector<Bucket> cut_into_buckets(const std::vector<BufferedParameter>& parameters,
                                     const GradientBuffer& rule,
                                     const std::optional<FlatOptimizer>& optimizer,
                                     bool of_first_stage, Bytes element) {
  using Kind = std::pair<bool, AxisList>;
  const auto kind_of = [](const BufferedParameter& p) { return Kind(p.of_experts, p.axes); };
  std::vector<Kind> buffers;  // by first appearance, those of experts last
  for (const BufferedParameter& parameter : parameters) {
    if (std::find(buffers.begin(), buffers.end(), kind_of(parameter)) == buffers.end()) {
      buffers.push_back(kind_of(parameter));
    }
  }
  std::stable_partition(buffers.begin(), buffers.end(),
                        [](const Kind& kind) { return !kind.first; });
  const bool is_cut = of_first_stage || !rule.buckets_of_first_stage_alone;
  const auto elements_of = [&](std::int64_t bytes) {
    return (bytes + element.count() - 1) / element.count();
  };
  std::vector<Bucket> buckets;
  for (const Kind& kind : buffers) {
    const std::int64_t limit =
        rule.bucket_bytes > 0 ? elements_of(rule.bucket_bytes) : rule.bucket_elements;
    const std::int64_t first =
        rule.first_bucket_bytes > 0 ? elements_of(rule.first_bucket_bytes) : limit;
    const std::int64_t multiple =
        std::lcm(rule.bucket_multiple, optimizer ? sharers(*optimizer, kind.second) : 1);
    Cutter cutter(rule, is_cut ? first : 0, is_cut ? limit : 0, multiple, buckets);
    for (const BufferedParameter& parameter : parameters) {
      if (kind_of(parameter) == kind) cutter.add(parameter);
    }
    cutter.close();
  }
  return buckets;
}

namespace {

// In the order of the devices' parts, as indices of the list.
std::vector<std::size_t> dealt_out(const std::vector<BufferedParameter>& list, const AxisList& axes,
                                   const FlatOptimizer& optimizer) {
  std::vector<std::size_t> dealt;
  const std::int64_t hands = optimizer.deals_out ? sharers(optimizer, axes) : 1;
  for (std::int64_t hand = 0; hand < hands; ++hand) {
    for (std::size_t i = at(hand); i < list.size(); i += at(hands)) {
      if (list[i].axes == axes) dealt.push_back(i);
    }
  }
  return dealt;
}

// Elements of a device's part of all that are dealt out.
std::int64_t part_of(const std::vector<BufferedParameter>& list,
                     const std::vector<std::size_t>& dealt, const GradientBuffer& rule,
                     std::int64_t shards) {
  std::int64_t all = 0;
  for (const std::size_t i : dealt) all += list[i].elements;
  return rounded_up(all, std::lcm(rule.bucket_multiple, shards)) / shards;
}

// The first element of each parameter of the list among all that are dealt out.
using Begins = std::map<ParameterInstance, std::int64_t>;
ParameterInstance key_of(const BufferedParameter& parameter) {
  return {parameter.tensors.front(), parameter.instance.ordinal};
}

Begins begins_of(const std::vector<BufferedParameter>& list,
                 const std::vector<std::size_t>& dealt) {
  Begins begins;
  std::int64_t begin = 0;
  for (const std::size_t i : dealt) {
    begins[key_of(list[i])] = begin;
    begin += list[i].elements;
  }
  return begins;
}

// Pieces of a bucket in order, those of one part that follow each other together.
void cut_at_parts_of(Bucket& bucket, const Begins& begins, std::int64_t part, std::int64_t limit) {
  BucketPiece piece;
  std::int64_t last = -1;  // part
  const auto close = [&] { bucket.pieces.push_back(std::exchange(piece, {})); };
  for (const BufferedParameter& parameter : bucket.parameters) {
    const std::int64_t begin = begins.at(key_of(parameter));
    const std::int64_t end = begin + parameter.elements;
    for (std::int64_t from = begin; from < end;) {
      const std::int64_t number = from / part;
      const std::int64_t to = std::min(end, (number + 1) * part);
      if (number != last && limit > 0 && piece.elements > limit) close();
      piece.is_joined |= number != last && piece.elements > 0;
      piece.elements += to - from;
      last = number;
      from = to;
    }
  }
  if (piece.elements > 0) close();
}

}  // namespace

PartSize largest_part(const std::vector<BufferedParameter>& list, const AxisList& axes,
                      const GradientBuffer& rule, const FlatOptimizer& optimizer) {
  const std::vector<std::size_t> dealt = dealt_out(list, axes, optimizer);
  const std::int64_t part = part_of(list, dealt, rule, sharers(optimizer, axes));
  PartSize size;
  PartSize open;  // the part that is counted
  std::int64_t begin = 0;
  std::int64_t number = 0;
  for (const std::size_t i : dealt) {
    const std::int64_t end = begin + list[i].elements;
    for (std::int64_t of = begin / part; of <= (end - 1) / part; ++of) {
      if (std::exchange(number, of) != of) open = {};
      open.whole += list[i].elements;
      open.members.push_back(i);
      const std::int64_t piece = std::min(end, (of + 1) * part) - std::max(begin, of * part);
      open.largest = std::max(open.largest, piece);
      if (open.whole > size.whole) size = open;
    }
    begin = end;
  }
  return size;
}

void cut_at_parts(std::vector<Bucket>& buckets, const std::vector<BufferedParameter>& list,
                  const GradientBuffer& rule, const FlatOptimizer& optimizer) {
  std::map<AxisList, std::pair<std::int64_t, Begins>> parts;
  for (Bucket& bucket : buckets) {
    if (bucket.axes.empty()) continue;
    if (rule.whole_calls) {
      bucket.pieces = {{unpadded(bucket), false}};
      continue;
    }
    auto known = parts.find(bucket.axes);
    if (known == parts.end()) {
      const std::vector<std::size_t> dealt = dealt_out(list, bucket.axes, optimizer);
      const std::int64_t part = part_of(list, dealt, rule, sharers(optimizer, bucket.axes));
      known = parts.emplace(bucket.axes, std::pair(part, begins_of(list, dealt))).first;
    }
    const auto& [part, begins] = known->second;
    cut_at_parts_of(bucket, begins, part, rule.bucket_elements);
  }
}

std::vector<CollectivePart> parts_of(const Bucket& bucket, const Workload& workload, Bytes element,
                                     std::int64_t elements) {
  std::vector<CollectivePart> parts;
  std::int64_t padding = elements;
  for (const BufferedParameter& parameter : bucket.parameters) {
    std::string name;
    for (const TensorId tensor : parameter.tensors) {
      name += (name.empty() ? "" : " + ") + workload.tensors[at(tensor)].name;
    }
    const auto same = std::find_if(parts.begin(), parts.end(),
                                   [&](const CollectivePart& part) { return part.tensor == name; });
    const Bytes payload = parameter.elements * element;
    if (same != parts.end()) {
      same->payload += payload;
    } else {
      parts.push_back({name, payload});
    }
    padding -= parameter.elements;
  }
  if (padding > 0) parts.push_back({"padding", padding * element});
  return parts;
}

std::string range_of(const Bucket& bucket, const Workload& workload) {
  const auto name = [&](const BufferedParameter& parameter) -> const std::string& {
    return workload.tensors[at(parameter.tensors.front())].name;
  };
  const std::string& first = name(bucket.parameters.front());
  const std::string& last = name(bucket.parameters.back());
  if (bucket.parameters.size() == 1) return first;
  return fmt::format("{} to {}, {} parameters", first, last, bucket.parameters.size());
}

}  // namespace shardsim
