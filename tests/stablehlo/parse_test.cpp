// Programs in MLIR text. Expectations follow from the text itself; the spellings of ops are those
// that jax's lower().as_text() prints (tests/golden/xla/programs) and those of the StableHLO
// specification (openxla/stablehlo docs/spec.md).
#include <catch2/catch.hpp>

#include "base/index.hpp"
#include "stablehlo/loops.hpp"
#include "stablehlo/module.hpp"
#include "tests/stablehlo/programs.hpp"

using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)
using shardsim::at;
using shardsim::test::parse_body;

namespace {

std::vector<std::string> op_names(const Function& function, const Region& region) {
  std::vector<std::string> names;
  for (const OpId id : region.ops) names.push_back(function.op(id).name);
  return names;
}

std::vector<std::string> names_of(const Function& function, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (const ValueId id : values) {
    names.push_back(function.values[at(id)].name);
  }
  return names;
}

using Strings = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

Numbers integers(const Op& op, const char* name) {
  const Attribute* attribute = find(op.attributes, name);
  REQUIRE(attribute != nullptr);
  return integers_of(*attribute, "test", op.line);
}

}  // namespace

TEST_CASE("a module: meshes, functions, arguments with shardings") {
  const Module module = parse_module(R"(
#loc = loc(unknown)
module @jit_f attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[0, 1, 2, 3, 7, 6, 5, 4]> {note = "any"}
  func.func public @main(%arg0: tensor<16x8xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>, tf.aliasing_output = 0 : i32}, %arg1: tensor<8xf32> loc("b")) -> (tensor<16x8xbf16> {jax.result_info = "out"}) {
    %0 = call @f(%arg0) : (tensor<16x8xbf16>) -> tensor<16x8xbf16>  // a comment
    return %0 : tensor<16x8xbf16> loc(#loc)
  }
  func.func private @f(%arg0: tensor<16x8xbf16>) -> tensor<16x8xbf16> {
    return %arg0 : tensor<16x8xbf16>
  }
}
)",
                                     "f.mlir");
  CHECK(module.name == "jit_f");
  REQUIRE(module.meshes.size() == 1);
  CHECK(module.meshes[0].axes == std::vector<ProgramAxis>{{"x", 2}, {"y", 4}});
  CHECK(module.meshes[0].device_ids == Numbers{0, 1, 2, 3, 7, 6, 5, 4});
  REQUIRE(module.functions.size() == 2);
  const Function& main = module.functions[0];
  CHECK(main.is_public);
  CHECK_FALSE(module.functions[1].is_public);
  CHECK(main.line == 5);
  CHECK(text_of(main.type_of(0)) == "tensor<16x8xbf16>");
  CHECK(main.type_of(0).dtype == shardsim::DType::bf16);
  REQUIRE(main.values[0].sharding.axes);
  CHECK(text_of(*main.values[0].sharding.axes) == R"(<@mesh, [{"x", ?}, {}]>)");
  CHECK(find(main.argument_attributes[0], "tf.aliasing_output")->integer == 0);
  CHECK(find(main.results[0].attributes, "jax.result_info")->text == "out");
  CHECK(op_names(main, main.body()) == Strings{"func.call", "func.return"});
  CHECK(find(main.op(0).attributes, "callee")->text == "f");
  CHECK(module.op_count() == 3);
}

TEST_CASE("clauses between operands and types become attributes") {
  const Module module = parse_body("%a: tensor<4x8x32xf32>, %b: tensor<4x32x16xf32>", R"(
    %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, HIGHEST] {frontend = "kept"} : (tensor<4x8x32xf32>, tensor<4x32x16xf32>) -> tensor<4x8x16xf32>
    %1 = stablehlo.slice %0 [0:4, 1:8:2, 0:16] : (tensor<4x8x16xf32>) -> tensor<4x4x16xf32>
    %2 = stablehlo.compare LT, %1, %1, FLOAT : (tensor<4x4x16xf32>, tensor<4x4x16xf32>) -> tensor<4x4x16xi1>
    %3 = stablehlo.select %2, %1, %1 : tensor<4x4x16xi1>, tensor<4x4x16xf32>
    %4:2 = stablehlo.optimization_barrier %3, %0 : tensor<4x4x16xf32>, tensor<4x8x16xf32>)");
  const Function& function = module.functions[0];
  const Op& dot = function.op(0);
  const Attribute* contracting = find(dot.attributes, "contracting_dims");
  REQUIRE(contracting->items.size() == 2);
  CHECK(integers_of(*contracting, "test", 1) == Numbers{2, 1});
  CHECK(find(dot.attributes, "precision")->items[1].text == "HIGHEST");
  CHECK(find(dot.attributes, "frontend")->text == "kept");
  CHECK(integers(function.op(1), "start_indices") == Numbers{0, 1, 0});
  CHECK(integers(function.op(1), "limit_indices") == Numbers{4, 8, 16});
  CHECK(integers(function.op(1), "strides") == Numbers{1, 2, 1});
  CHECK(find(function.op(2).attributes, "words")->items[1].text == "FLOAT");
  CHECK(text_of(function.type_of(function.op(3).results[0])) == "tensor<4x4x16xf32>");
  CHECK(names_of(function, function.op(4).results) == Strings{"4#0", "4#1"});
  CHECK(text_of(function.type_of(function.op(4).results[1])) == "tensor<4x8x16xf32>");
}

TEST_CASE("the generic form has properties, regions, then attributes") {
  const Module module =
      parse_body("%a: tensor<8x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>", R"(
    %0 = "stablehlo.scatter"(%a, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {note = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>} : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>)");
  const Function& function = module.functions[0];
  const Op& scatter = function.op(0);
  REQUIRE(scatter.regions.size() == 1);
  const Region& region = function.regions[at(scatter.regions[0])];
  CHECK(region.owner == 0);
  CHECK(names_of(function, region.arguments) == Strings{"x", "y"});
  CHECK(op_names(function, region) == Strings{"stablehlo.add", "stablehlo.return"});
  CHECK(integers(scatter, "note") == Numbers{1, 2, 3, 4});
  const AttributeList numbers =
      fields(*find(scatter.attributes, "scatter_dimension_numbers"), "test", 1);
  CHECK(integers_of(*find(numbers, "inserted_window_dims"), "test", 1) == Numbers{0});
}

TEST_CASE("operands of a reduce: inputs, then initial values") {
  const Module module =
      parse_body("%a: tensor<2x64xf32>, %b: tensor<2x64xi32>, %z: tensor<f32>, %n: tensor<i32>", R"(
    %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<2xf32>
    %1:2 = stablehlo.reduce(%a init: %z), (%b init: %n) across dimensions = [0] : (tensor<2x64xf32>, tensor<2x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<64xf32>, tensor<64xi32>)
     reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>)  {
      stablehlo.return %p, %s : tensor<f32>, tensor<i32>
    })");
  const Function& function = module.functions[0];
  CHECK(names_of(function, function.op(0).operands) == Strings{"a", "z"});
  CHECK(find(function.op(0).attributes, "applies")->text == "stablehlo.add");
  const Op& variadic = function.op(1);
  CHECK(names_of(function, variadic.operands) == Strings{"a", "b", "z", "n"});
  const Region& reducer = function.regions[at(variadic.regions[0])];
  CHECK(names_of(function, reducer.arguments) == Strings{"p", "r", "q", "s"});
}

TEST_CASE("the regions of a loop share the names of its variables") {
  const Module module = parse_body("%a: tensor<4xf32>", R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<4xf32>
     cond {
      %n = stablehlo.constant dense<12> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.add %i, %n : tensor<i32>
      %2 = stablehlo.add %x, %a : tensor<4xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
    })");
  const Function& function = module.functions[0];
  const Op& loop = function.op(1);
  CHECK(names_of(function, loop.operands) == Strings{"c", "a"});
  REQUIRE(loop.regions.size() == 2);
  for (const RegionId id : loop.regions) {
    const Region& region = function.regions[at(id)];
    CHECK(names_of(function, region.arguments) == Strings{"i", "x"});
  }
  // 0, 5, 10: three rounds below 12.
  CHECK(trip_count(function, loop) == 3);
}

TEST_CASE("trip counts: directions, steps, and what cannot be known") {
  const auto count = [](const std::string& start, const std::string& condition,
                        const std::string& step) {
    const Module module = parse_body("%a: tensor<i32>", R"(
      %s = stablehlo.constant dense<)" + start + R"(> : tensor<i32>
      %n = stablehlo.constant dense<10> : tensor<i32>
      %d = stablehlo.constant dense<3> : tensor<i32>
      %0 = stablehlo.while(%i = %s) : tensor<i32>
       cond {
        %1 = stablehlo.compare )" + condition + R"( : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.)" + step + R"( : tensor<i32>
        stablehlo.return %1 : tensor<i32>
      })");
    return trip_count(module.functions[0], module.functions[0].op(3));
  };
  CHECK(count("0", "LT, %i, %n", "add %i, %d") == 4);             // 0 3 6 9
  CHECK(count("1", "LE, %i, %n", "add %d, %i") == 4);             // 1 4 7 10
  CHECK(count("1", "GE, %n, %i", "add %i, %d") == 4);             // the same, mirrored
  CHECK(count("16", "GT, %i, %n", "subtract %i, %d") == 2);       // 16 13
  CHECK(count("1", "NE, %i, %n", "add %i, %d") == 3);             // 1 4 7
  CHECK(count("0", "NE, %i, %n", "add %i, %d") == std::nullopt);  // never 10
  CHECK(count("12", "LT, %i, %n", "add %i, %d") == 0);
  CHECK(count("0", "LT, %i, %a", "add %i, %d") == std::nullopt);
  CHECK(count("0", "LT, %i, %n", "multiply %i, %d") == std::nullopt);
  CHECK(count("0", "GT, %i, %n", "subtract %d, %i") == std::nullopt);
}

TEST_CASE("manual computations, constraints and collectives") {
  const Module module = parse_body("%a: tensor<16x8xf32>", R"(
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> : tensor<16x8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%b: tensor<8x8xf32>) {
      %2 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<8x8xf32>) -> tensor<16x8xf32>
      sdy.return %2 : tensor<16x8xf32>
    } : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %3 = stablehlo.custom_call @Sharding(%1) {backend_config = "", mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %4 = stablehlo.add %3, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y":(2)2}]>]>} : tensor<16x8xf32>)");
  const Function& function = module.functions[0];
  const auto sharding = [&](std::size_t op) {
    return function.values[at(function.ops[op].results[0])].sharding;
  };
  CHECK(text_of(*sharding(0).axes) == R"(<@mesh, [{"x"}, {?}]>)");
  const Op& manual = function.op(1);
  CHECK(find(manual.attributes, "manual_axes")->entries[0].name == "x");
  CHECK(find(manual.attributes, "in_shardings")->items[0].text == R"(@mesh, [{"x"}, {}])");
  const Region& body = function.regions[at(manual.regions[0])];
  CHECK(text_of(function.type_of(body.arguments[0])) == "tensor<8x8xf32>");
  CHECK(integers(function.op(2), "replica_groups") == Numbers{0, 1});
  CHECK(find(function.op(2).attributes, "use_global_device_ids")->kind == Attribute::Kind::unit);
  CHECK(text_of(*sharding(4).tiles) == "{devices=[2,1]<=[2]}");
  CHECK(text_of(*sharding(5).axes) == R"(<@mesh, [{}, {"y":(2)2}]>)");
}

TEST_CASE("values of other types than plain tensors") {
  const Module module = parse_body("%a: tensor<2xcomplex<f32>>, %t: !stablehlo.token", R"(
    %values, %indices = chlo.top_k(%a, k = 8) : tensor<2xcomplex<f32>> -> (tensor<1xf8E4M3FN>, tensor<1xi32>)
    %0 = stablehlo.after_all %t, %t : !stablehlo.token
    %1 = stablehlo.constant dense<"0xFF\22"> : tensor<4xui8>)");
  const Function& function = module.functions[0];
  CHECK(function.type_of(0).dtype == shardsim::DType::c64);
  CHECK_FALSE(function.type_of(1).is_tensor);
  CHECK(names_of(function, function.op(0).results) == Strings{"values", "indices"});
  CHECK(find(function.op(0).attributes, "k")->integer == 8);
  CHECK(function.type_of(function.op(0).results[0]).dtype == shardsim::DType::f8_e4m3);
}
