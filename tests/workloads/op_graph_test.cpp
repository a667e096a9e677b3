// Small graphs by hand.
#include <catch2/catch.hpp>

#include "graph_helpers.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/step/backward.hpp"

using namespace shardsim;

namespace {

// y[batch 8, up 256] = x[batch, heads 4 * dim 16] w[up, heads * dim]
Workload one_matmul() {
  GraphBuilder g("one-matmul", DType::bf16);
  const LabelId batch = g.label("batch", 8);
  const LabelId heads = g.label("heads", 4);
  const LabelId dim = g.label("dim", 16);
  const LabelId up = g.label("up", 256);
  g.begin_layers("net", 3);
  const TensorId x = g.input("x", DType::bf16, {{batch}, {heads, dim}});
  const TensorId w = g.parameter("w", {{up}, {heads, dim}});
  const TensorId y = g.linear("y", x, w, {{batch}, {up}});
  return g.finish(y);
}

}  // namespace

TEST_CASE("Shapes and sizes are products of label sizes") {
  const Workload w = one_matmul();
  const Op& op = w.blocks[0].forward[0];
  CHECK(w.shape(op.operands[0].dims) == std::vector<std::int64_t>{8, 64});
  CHECK(w.elements(op.operands[1].dims) == 256 * 64);
  CHECK(w.bytes(op.results[0].tensor) == Bytes{8 * 256 * 2});
  CHECK(w.elements({}) == 1);  // a scalar
  CHECK(w.label("dim") == 2);
}

// Without a gradient for it a backward pass has none to hand back: a mistake of whoever builds.
TEST_CASE("A value that is handed on and that nobody reads is found when a graph is finished") {
  const auto build = [](bool hands_on, bool reads, bool learns = true) {
    GraphBuilder g("hands-on", DType::bf16);
    const Dim width{g.label("width", 16)};
    g.begin_block("input");
    g.carry_out(g.input("x", DType::bf16, {width}));
    const TensorId keys_in =
        learns ? g.parameter("keys.weight", {width}) : g.input("keys.weight", DType::bf16, {width});
    g.carry_out(g.elementwise(Function::scale, "keys", {keys_in}));
    g.begin_layers("layers.{}", 2);
    TensorId x = g.carry_in("layers.{}.x");
    const TensorId keys = g.carry_in("layers.{}.keys");
    x = g.elementwise(Function::add, "layers.{}.sum", {x, reads ? keys : x});
    g.carry_out(x);
    if (hands_on) g.carry_out(keys);
    g.begin_block("head");
    const TensorId last = g.carry_in("head.x");
    if (hands_on) static_cast<void>(g.carry_in("head.keys"));
    return g.finish(g.mean("loss", last, {}));
  };
  CHECK_NOTHROW(build(/*hands_on=*/false, /*reads=*/true));
  CHECK_NOTHROW(build(/*hands_on=*/false, /*reads=*/false, /*learns=*/false));
  CHECK_THROWS_WITH(
      build(/*hands_on=*/false, /*reads=*/false),
      "layers.{} is handed \"layers.{}.keys\", which nothing in it reads and which it "
      "does not hand on");
  CHECK_THROWS_WITH(
      build(/*hands_on=*/true, /*reads=*/true),
      "head is handed \"head.keys\", which nothing in it reads and which it does not hand on");
}

// d(x + keys) is both's: the block before finds each by what it is the gradient of.
TEST_CASE("A gradient that is another's leaves its block under a name of its own") {
  GraphBuilder g("added", DType::bf16);
  const Dim width{g.label("width", 16)};
  g.begin_block("input");
  for (const char* name : {"x", "keys"}) {
    const TensorId weight = g.parameter(std::string(name) + ".weight", {width});
    g.carry_out(g.elementwise(Function::scale, name, {weight}));
  }
  g.begin_block("head");
  const TensorId x = g.carry_in("head.x");
  const TensorId keys = g.carry_in("head.keys");
  Workload w = g.finish(g.mean("loss", g.elementwise(Function::add, "sum", {x, keys}), {}));
  add_backward(w, {});
  for (const TensorId carried : {x, keys}) {
    int made = 0;
    for (const Op& op : w.blocks[1].backward) {
      for (const Operand& result : op.results) {
        made += w.tensors[static_cast<std::size_t>(result.tensor)].primal == carried ? 1 : 0;
      }
    }
    CHECK(made == 1);
  }
}

TEST_CASE("Factors come in the order of their appearance") {
  const Workload w = one_matmul();
  CHECK(factors(w.blocks[0].forward[0]) == std::vector<LabelId>{0, 1, 2, 3});
}

TEST_CASE("A parameter of a repeated block counts once per instance") {
  const Workload w = one_matmul();
  REQUIRE(parameters(w).size() == 1);
  CHECK(parameters(w)[0].shape == std::vector<std::int64_t>{256, 64});
  CHECK(parameters(w)[0].instances() == 3);
  CHECK(parameter_count(w) == 3 * 256 * 64);
}

TEST_CASE("A matmul costs two operations per point") {
  // 2 * 8 * 64 * 256, three times.
  CHECK(model_flops(one_matmul()).needed.count() == 3 * 2.0 * 8 * 64 * 256);
}
