// Small graphs by hand.
#include <catch2/catch.hpp>

#include "graph_helpers.hpp"
#include "workloads/graph/graph_builder.hpp"

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
