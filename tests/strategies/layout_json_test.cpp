// Layouts that are written out, of any shape: a plan is made of each, and keeps what plans promise
// (verify). That the layout of a strategy gives the strategy's plan is held for all recorded plans
// (tests/fingerprints).
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"
#include "strategies/layout/layout_json.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/step/backward.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

constexpr std::int64_t layout_batch = 8, layout_width = 16, layout_tokens = 12;

// x -> look-up -> (up, silu, down, + x) twice -> the table again -> loss
Workload tied_net() {
  GraphBuilder g("net", DType::bf16);
  const Dim b{g.label("batch", layout_batch, LabelRole::batch)},
      h{g.label("hidden", layout_width, LabelRole::hidden)},
      v{g.label("vocab", layout_tokens, LabelRole::vocab)},
      w{g.label("width", 2 * layout_width, LabelRole::width)};
  g.begin_block("in");
  const TensorId x = g.input("x", DType::i64, {b});
  const TensorId table = g.parameter("table", {v, h});
  g.carry_out(g.embedding("look_up", x, table, {b, h}));
  g.begin_layers("layers.{}", 2);
  const TensorId in = g.carry_in("layers.{}.input");
  const TensorId up =
      g.linear("layers.{}.up", in, g.parameter("layers.{}.up.weight", {w, h}), {b, w});
  const TensorId act = g.elementwise(Function::silu, "layers.{}.act", {up});
  const TensorId down =
      g.linear("layers.{}.down", act, g.parameter("layers.{}.down.weight", {h, w}), {b, h});
  g.carry_out(g.elementwise(Function::add, "layers.{}.sum", {in, down}));
  g.begin_block("out");
  const TensorId y = g.carry_in("out.input");
  const TensorId logits = g.cast("cast", g.linear("head", y, table, {b, v}), DType::f32);
  Workload workload = g.finish(g.cross_entropy(logits, g.input("t", DType::i64, {b}), v.front()));
  add_backward(workload, {});
  add_optimizer(workload, {});
  return workload;
}

const Mesh& layout_mesh() {
  static const Mesh one({{"a", 2}, {"b", 4}});
  return one;
}

CompiledStep compile_with(const Workload& workload, const Json& layout) {
  const Json json = {{"name", "replicate"}, {"layout", layout}};
  return compile(workload, {}, layout_mesh(),
                 read_strategy(JsonReader(json, {"e.json", ""}), layout_mesh()));
}

// Each axis on a dimension, on another, or on none.
Json arbitrary_spec(std::size_t rank) {
  std::vector<Json> dims(rank, Json::array());
  for (const char* axis : {"a", "b", "b:(1)2"}) {
    const auto at = *rc::gen::inRange<std::size_t>(0, 2 * rank + 1);
    const bool clashes =
        std::string(axis) == "b:(1)2" && std::any_of(dims.begin(), dims.end(), [](const Json& dim) {
          return std::find(dim.begin(), dim.end(), "b") != dim.end();
        });
    if (at < rank && !clashes) dims[at].push_back(axis);
  }
  Json spec = Json::array();
  for (const Json& dim : dims) {
    spec.push_back(dim.empty() ? Json(nullptr) : dim.size() == 1 ? dim.front() : dim);
  }
  return spec;
}

}  // namespace

TEST_CASE("any layout that fits gives a sound plan, and is printed as it was written") {
  const Workload workload = tied_net();
  CHECK(rc::check("layouts", [&] {
    Json parameters = Json::object();
    for (const char* name : {"table", "layers.{0-1}.up.weight", "layers.{0-1}.down.weight"}) {
      for (const char* key : {"stored", "compute", "look_up", "gradient", "optimizer"}) {
        parameters[name][key] = arbitrary_spec(2);
      }
      parameters[name]["by"] = "hand";
    }
    const Json layout = {{"parameters", parameters},
                         {"pinned", {{"x", arbitrary_spec(1)}, {"t", arbitrary_spec(1)}}},
                         {"data_axes", {"a", "b"}}};
    RC_LOG() << layout.dump();
    const CompiledStep step = compile_with(workload, layout);  // verifies
    RC_ASSERT(step.layout->at("parameters") == parameters);
    const auto read = [&](const Json& json) {
      return read_layout(JsonReader(json, {"e.json", ""}), workload, layout_mesh());
    };
    RC_ASSERT(read(*step.layout) == read(layout));
  }));
}

TEST_CASE("what a written layout leaves out follows from what is stored") {
  const Workload workload = tied_net();
  const Json layout = {{"parameters",
                        {{"table", {{"stored", {"a", "b"}}}},
                         {"layers.{0-1}.up.weight", {{"stored", {nullptr, {"a", "b"}}}}},
                         {"layers.{0-1}.down.weight", {{"stored", {nullptr, nullptr}}}}}},
                       {"data_axes", {"a"}}};
  const Layout read = read_layout(JsonReader(layout, {"e.json", ""}), workload, layout_mesh());
  const ParameterLayout& table = read.parameters.front();
  CHECK(to_string(table.stored, layout_mesh()) == "[a, b]");
  CHECK(to_string(table.compute, layout_mesh()) == "[-, b]");  // gathered over the data axis
  CHECK(table.look_up == table.compute);
  CHECK(table.gradient == table.stored);
  CHECK(table.optimizer == table.stored);
}
