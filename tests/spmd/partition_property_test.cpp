// What holds for every resharding and every partitioned program, whatever XLA does.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "base/index.hpp"
#include "device_values.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/reshard/reshard_search.hpp"
#include "spmd/wire_bytes.hpp"
#include "stablehlo/flops.hpp"

namespace {
using namespace shardsim;        // NOLINT(google-build-using-namespace)
using namespace shardsim::spmd;  // NOLINT(google-build-using-namespace)
using test::OnDevices;

std::int64_t any(std::int64_t from, std::int64_t below) { return *rc::gen::inRange(from, below); }

template <typename T>
T shuffled(T items) {
  for (std::size_t i = items.size(); i-- > 1;) {
    std::swap(items[i], items[at(any(0, static_cast<std::int64_t>(i) + 1))]);
  }
  return items;
}

const std::vector<Shape>& meshes() {
  static const std::vector<Shape> all = {{4},    {2, 2},    {6},      {2, 3},    {3, 2},
                                         {8},    {2, 4},    {4, 2},   {2, 2, 2}, {12},
                                         {3, 4}, {2, 2, 3}, {2, 3, 2}};
  return all;
}

// Every axis of the mesh splits some dimension, or none.
Tiling any_tiling(const Shape& mesh, std::size_t rank) {
  std::vector<int> devices(at(product(mesh)));
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<Dims> of_dim(rank + 1);  // the last: of none
  for (const std::int64_t axis : shuffled(iota_dims(mesh.size()))) {
    of_dim[at(any(0, static_cast<std::int64_t>(rank) + 1))].push_back(axis);
  }
  Shape tiles;
  Dims order;
  for (std::size_t dim = 0; dim <= rank; ++dim) {
    std::int64_t count = 1;
    for (const std::int64_t axis : of_dim[dim]) count *= mesh[at(axis)];
    if (dim < rank) tiles.push_back(count);
    order.insert(order.end(), of_dim[dim].begin(), of_dim[dim].end());
  }
  if (product(tiles) == 1) return {};
  return Tiling::tiled(tiles, transpose(Tiling::tiled(mesh, devices), order).devices());
}

struct Resharding {
  Shape mesh;
  Shape shape;
  Tiling from;
  Tiling to;

  [[nodiscard]] int devices() const { return static_cast<int>(product(mesh)); }
};

Resharding any_resharding() {
  Resharding result;
  result.mesh = *rc::gen::elementOf(meshes());
  const std::int64_t rank = any(1, 5);
  const bool uneven = any(0, 2) == 0;
  for (std::int64_t i = 0; i < rank; ++i) {
    result.shape.push_back(uneven ? any(1, rank < 4 ? 14 : 7)
                                  : *rc::gen::element<std::int64_t>(4, 8, rank < 4 ? 24 : 6));
  }
  const Shape& other = *rc::gen::elementOf(meshes());
  const bool one_mesh = product(other) != product(result.mesh) || any(0, 4) != 0;
  result.from = any_tiling(result.mesh, at(rank));
  result.to = any_tiling(one_mesh ? result.mesh : other, at(rank));
  return result;
}

// The digits of a device number: what makes reshard() look for cheaper ways than XLA's.
std::vector<std::int64_t> digits_of(const Shape& mesh) {
  std::vector<std::int64_t> digits;
  for (std::int64_t size : mesh) {
    for (const std::int64_t prime : {2, 3}) {
      for (; size % prime == 0; size /= prime) digits.push_back(prime);
    }
  }
  return digits;
}

struct Outcome {
  OnDevices tiles;
  double sent = 0;        // by all devices, in elements
  double per_device = 0;  // by one device that always sends, in elements
};

Outcome run(const Resharding& task, bool like_xla) {
  stablehlo::Module module;
  module.functions.emplace_back().regions.emplace_back();
  Builder builder(module);
  Context context(builder, task.devices());
  if (!like_xla) context.digits = digits_of(task.mesh);
  const ValueId argument =
      builder.add_argument({true, shard_shape(task.shape, task.from), "f32", DType::f32, ""}, "");
  const Sharded moved = reshard({argument, task.shape, task.from, &context}, task.to);
  const double sent = wire_bytes_between(module.functions.front(), argument, moved.value);
  RC_ASSERT(moved.tiling == task.to);
  RC_ASSERT(builder.shape(moved.value) == shard_shape(task.shape, task.to));
  test::Evaluation evaluation =
      test::evaluate(module, {test::numbered_tiles(task.shape, task.from, task.devices())},
                     task.devices(), moved.value);
  return {std::move(evaluation.values.at(moved.value)),
          std::accumulate(evaluation.sent.begin(), evaluation.sent.end(), 0.0),
          sent / sizeof(float)};
}

// Elements of its new tile that a device did not have, on all devices.
double missing_elements(const Resharding& task) {
  const OnDevices old_tiles = test::numbered_tiles(task.shape, task.from, task.devices());
  const OnDevices new_tiles = test::numbered_tiles(task.shape, task.to, task.devices());
  double missing = 0;
  for (std::size_t device = 0; device < new_tiles.size(); ++device) {
    const auto& elements = old_tiles[device].elements;
    const std::set<std::int64_t> held(elements.begin(), elements.end());
    for (const std::int64_t element : new_tiles[device].elements) {
      if (element != test::unknown && held.count(element) == 0) ++missing;
    }
  }
  return missing;
}

void check_tiles(const Resharding& task, const OnDevices& tiles) {
  const OnDevices expected = test::numbered_tiles(task.shape, task.to, task.devices());
  for (std::size_t device = 0; device < expected.size(); ++device) {
    for (std::size_t i = 0; i < expected[device].elements.size(); ++i) {
      const std::int64_t element = expected[device].elements[i];
      if (element != test::unknown) RC_ASSERT(tiles[device].elements[i] == element);
    }
  }
}

void describe(const Resharding& task) {
  RC_LOG() << fmt::format("[{}] on {}: {} to {}\n", fmt::join(task.shape, ","),
                          fmt::join(task.mesh, "x"), text_of(task.from), text_of(task.to));
}

}  // namespace

TEST_CASE("after a resharding every device has every element of its tile", "[reshard]") {
  CHECK(rc::check([] {
    const Resharding task = any_resharding();
    describe(task);
    check_tiles(task, run(task, /*like_xla=*/true).tiles);
    check_tiles(task, run(task, /*like_xla=*/false).tiles);
  }));
}

// The bound: a device must receive every element of its new tile of which it has no copy, whatever
// the collectives. What is received is sent, so that summed over the devices
//
//   sent >= sum over devices of elements of the new tile that are not in the old
//
// Example: 8 elements over 4 devices, made whole: each lacks 6, 24 are sent; an all-gather sends
// (4 - 1) * 2 per device, which is that.
//
// And of both ways the one by choice is the one by which a device that always sends sends less.
TEST_CASE("a resharding sends no less than what devices lack", "[reshard]") {
  CHECK(rc::check([] {
    const Resharding task = any_resharding();
    describe(task);
    const double least = missing_elements(task);
    // What the search is told.
    RC_ASSERT(std::abs(least_bytes(task.shape, 1, task.from, task.to) * task.devices() - least) <
              1e-6);
    const Outcome like_xla = run(task, /*like_xla=*/true);
    const Outcome by_choice = run(task, /*like_xla=*/false);
    RC_ASSERT(like_xla.sent >= least - 1e-6);
    RC_ASSERT(by_choice.sent >= least - 1e-6);
    RC_ASSERT(by_choice.per_device <= like_xla.per_device + 1e-6);
  }));
}

TEST_CASE("padding becomes what is asked for, and elements stay", "[reshard]") {
  CHECK(rc::check([] {
    Resharding task = any_resharding();
    task.to = task.from;
    describe(task);
    stablehlo::Module module;
    module.functions.emplace_back().regions.emplace_back();
    Builder builder(module);
    Context context(builder, task.devices());
    const ValueId argument =
        builder.add_argument({true, shard_shape(task.shape, task.from), "f32", DType::f32, ""}, "");
    const Sharded padded = pad_with_zero({argument, task.shape, task.from, &context});
    OnDevices expected = test::numbered_tiles(task.shape, task.from, task.devices());
    const test::Evaluation evaluation =
        test::evaluate(module, {expected}, task.devices(), padded.value);
    for (test::Array& tile : expected) {
      std::replace(tile.elements.begin(), tile.elements.end(), test::unknown, std::int64_t{0});
    }
    const OnDevices& tiles = evaluation.values.at(padded.value);
    for (std::size_t device = 0; device < tiles.size(); ++device) {
      RC_ASSERT(tiles[device].elements == expected[device].elements);
    }
  }));
}

namespace {

constexpr std::int64_t axis_size = 2;
const std::vector<std::string> axis_names = {"x", "y", "z"};

// Which axes split each factor of b m k, b k n -> b m n.
using Split = std::map<char, std::vector<std::string>>;

std::string text_of(const Split& split, const std::string& dims) {
  std::vector<std::string> parts;
  for (const char dim : dims) {
    std::vector<std::string> quoted;
    const auto found = split.find(dim);
    for (const std::string& axis :
         found == split.end() ? std::vector<std::string>{} : found->second) {
      quoted.push_back('"' + axis + '"');
    }
    parts.push_back(fmt::format("{{{}}}", fmt::join(quoted, ", ")));
  }
  return fmt::format("{{sdy.sharding = #sdy.sharding<@mesh, [{}]>}}", fmt::join(parts, ", "));
}

Split any_split(const std::string& dims) {
  Split split;
  for (const std::string& axis : axis_names) {
    const auto choice = at(any(0, static_cast<std::int64_t>(dims.size()) + 1));
    if (choice < dims.size()) split[dims[choice]].push_back(axis);
  }
  return split;
}

// tanh of a batched matrix product of 8x16x32 and 8x32x64.
std::string program_text(const Split& lhs, const Split& rhs, const Split& result) {
  return fmt::format(
      R"(module @product {{
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func public @main(%arg0: tensor<8x16x32xf32> {}, %arg1: tensor<8x32x64xf32> {}) -> (tensor<8x16x64xf32> {}) {{
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x16x32xf32>, tensor<8x32x64xf32>) -> tensor<8x16x64xf32>
    %1 = stablehlo.tanh %0 : tensor<8x16x64xf32>
    return %1 : tensor<8x16x64xf32>
  }}
}})",
      text_of(lhs, "bmk"), text_of(rhs, "bkn"), text_of(result, "bmn"));
}

struct Repeated {
  double matmul = 0;  // how often the whole program computes each product, on average
  double tanh = 0;
};

Repeated repeated(const std::string& text, bool like_xla) {
  stablehlo::Module program = prepare(stablehlo::parse_module(text, "product.mlir"));
  const auto whole = stablehlo::work_of(program, program.functions.front()).work;
  propagate(program);
  const stablehlo::Module local = partition(program, {like_xla});
  const auto part = stablehlo::work_of(local, local.functions.front()).work;
  const auto devices = static_cast<double>(axis_size * axis_size * axis_size);
  return {devices * part.matmul.count() / whole.matmul.count(),
          devices * part.transcendental.count() / whole.transcendental.count()};
}

}  // namespace

// x[m,k] w1[k,f] -> h[m,f], w2[f,n] -> y[m,n], every factor split over the same axes wherever it
// stands, every axis of the mesh on one factor at most. The axes of a product's own factors share
// its work; each of the others repeats it once per place:
//
//   flops on all devices = flops of the program + repeated
//   repeated = sum over products of flops * (product of the sizes of the axes of other factors - 1)
//
// Example, mesh x=2 y=3, m over x, n over y: the second product (m, f, n) is repeated nowhere, the
// first (m, k, f) on the 3 places of y: repeated = 2 m k f * (3 - 1).
TEST_CASE("flops of all devices are those of the program and what replication repeats", "[flops]") {
  CHECK(rc::check([] {
    const std::map<std::string, double> axes = {{"x", 2}, {"y", 3}, {"z", 2}};
    const std::map<char, double> sizes = {{'m', 24}, {'k', 12}, {'f', 48}, {'n', 36}};
    const Split split = any_split("mkfn");
    double devices = 1;
    for (const auto& [name, size] : axes) devices *= size;
    double whole = 0;
    double repeated = 0;
    for (const std::string factors : {"mkf", "mfn"}) {
      double flops = 2;
      double places = devices;
      for (const char factor : factors) {
        flops *= sizes.at(factor);
        const auto found = split.find(factor);
        if (found == split.end()) continue;
        for (const std::string& axis : found->second) places /= axes.at(axis);
      }
      whole += flops;
      repeated += flops * (places - 1);
    }
    const std::string text = fmt::format(
        R"(module @mlp {{
  sdy.mesh @mesh = <["x"=2, "y"=3, "z"=2]>
  func.func public @main(%arg0: tensor<24x12xf32> {}, %arg1: tensor<12x48xf32> {}, %arg2: tensor<48x36xf32> {}) -> (tensor<24x36xf32> {}) {{
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<24x12xf32>, tensor<12x48xf32>) -> tensor<24x48xf32>
    %1 = stablehlo.tanh %0 : tensor<24x48xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<24x48xf32>, tensor<48x36xf32>) -> tensor<24x36xf32>
    return %2 : tensor<24x36xf32>
  }}
}})",
        text_of(split, "mk"), text_of(split, "kf"), text_of(split, "fn"), text_of(split, "mn"));
    RC_LOG() << text;
    stablehlo::Module program = prepare(stablehlo::parse_module(text, "mlp.mlir"));
    RC_ASSERT(stablehlo::work_of(program, program.functions.front()).work.matmul.count() == whole);
    propagate(program);
    for (const bool like_xla : {true, false}) {
      const stablehlo::Module local = partition(program, {like_xla});
      const auto part = stablehlo::work_of(local, local.functions.front()).work;
      RC_ASSERT(devices * part.matmul.count() == whole + repeated);
    }
  }));
}

// Partial sums are whole again when tanh is taken: axes of the result share it, the others, those
// of the summed factor too, repeat it.
TEST_CASE("work is shared over the axes that split it and repeated over the others", "[flops]") {
  CHECK(rc::check([] {
    const Split split = any_split("bmnk");
    const std::string text = program_text(split, split, split);
    double of_product = axis_size * axis_size * axis_size;
    double of_result = of_product;
    for (const auto& [dim, axes] : split) {
      for (std::size_t i = 0; i < axes.size(); ++i) {
        of_product /= axis_size;
        if (dim != 'k') of_result /= axis_size;
      }
    }
    const Repeated found = repeated(text, /*like_xla=*/true);
    RC_ASSERT(found.matmul == of_product);
    RC_ASSERT(found.tanh == of_result);
  }));
}

TEST_CASE("whatever the shardings, no work is lost", "[flops]") {
  CHECK(rc::check([] {
    const std::string text = program_text(any_split("bmk"), any_split("bkn"), any_split("bmn"));
    const double devices = axis_size * axis_size * axis_size;
    for (const bool like_xla : {true, false}) {
      const Repeated found = repeated(text, like_xla);
      RC_ASSERT(found.matmul >= 1.0);
      RC_ASSERT(found.matmul <= devices);
      RC_ASSERT(found.tanh >= 1.0);
      RC_ASSERT(found.tanh <= devices);
    }
  }));
}
