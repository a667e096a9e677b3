// One step as a value, and the graph that it makes of a model.
#include "workloads/step/step.hpp"

#include <catch2/catch.hpp>

#include "graph_helpers.hpp"

namespace shardsim::step_test {
using namespace shardsim::test;
namespace {

const Step usual{.batch = 8, .sequence = 64};

ModelConfig gpt2() { return load_model_config("gpt2", "", {}); }

std::int64_t batch_of(const Workload& w) {
  return w.labels[static_cast<std::size_t>(w.label("batch"))].size;
}

template <class Change>
Step with(const Change& change) {
  Step step = usual;
  change(step);
  return step;
}

}  // namespace

TEST_CASE("Steps are the same when all that they say is") {
  CHECK(usual == Step{.batch = 8, .sequence = 64});
  CHECK(usual != with([](Step& s) { s.kind = StepKind::forward; }));
  CHECK(usual != with([](Step& s) { s.batch = 16; }));
  CHECK(usual != with([](Step& s) { s.sequence = 65; }));
  CHECK(usual != with([](Step& s) { s.sequence.reset(); }));
  CHECK(usual != with([](Step& s) { s.microbatches = 2; }));
  CHECK(usual != with([](Step& s) { s.metrics = {"loss"}; }));
  CHECK(usual != with([](Step& s) { s.outputs = {"logits"}; }));
  CHECK(usual != with([](Step& s) { s.precision.compute = DType::f32; }));
  CHECK(usual != with([](Step& s) { s.precision.weights.norms = DType::f32; }));
  CHECK(usual != with([](Step& s) { s.precision.weights.look_ups = DType::f32; }));
  CHECK(usual != with([](Step& s) { s.precision.indices = DType::i32; }));
  CHECK(usual != with([](Step& s) { s.optimizer.donate = false; }));
  CHECK(usual != with([](Step& s) { s.optimizer.master.reset(); }));
  CHECK(usual !=
        with([](Step& s) { s.rematerialization.policy = Rematerialization::Policy::full; }));
}

// 8 sequences in 4 microbatches are 2 in each; the optimizer is there once, whatever their number.
TEST_CASE("A step's graph is that of one microbatch") {
  const Workload w = build_step(gpt2(), with([](Step& s) { s.microbatches = 4; }));
  CHECK(batch_of(w) == 2);
  CHECK(w.tokens == 2 * 64);
  CHECK(has_backward(w));
  std::size_t updated = 0;
  for (const Block& block : w.blocks) updated += block.optimizer.size();
  CHECK(updated == parameters(w).size());
}

TEST_CASE("A forward step has neither backward pass nor optimizer") {
  const Workload w = build_step(gpt2(), with([](Step& s) { s.kind = StepKind::forward; }));
  CHECK(batch_of(w) == 8);
  CHECK_FALSE(has_backward(w));
  for (const Block& block : w.blocks) CHECK(block.optimizer.empty());
}

// What twelve layers have more than eleven; no embedding, no head, no optimizer's state.
TEST_CASE("A layer alone is what one more of them adds") {
  const auto layers = [](int count) {
    const Json config = {{"base", "gpt2"}, {"n_layer", count}};
    return build_step(load_model_config(JsonReader(config, {"model", ""}), ""), usual);
  };
  const Workload whole = layers(12), less = layers(11);
  const Workload w = build_step(gpt2(), with([](Step& s) {
                                  s.kind = StepKind::layer;
                                  s.optimizer.kind = "none";
                                }));
  CHECK(parameter_count(w) == parameter_count(whole) - parameter_count(less));
  CHECK(model_flops(w).needed.count() ==
        Approx(model_flops(whole).needed.count() - model_flops(less).needed.count()));
  CHECK(w.tokens == 8 * 64);
  const Workload forward = build_step(gpt2(), with([](Step& s) {
                                        s.kind = StepKind::layer;
                                        s.layer_backward = false;
                                      }));
  CHECK_FALSE(has_backward(forward));
  CHECK_THROWS_WITH(build_step(gpt2(), with([](Step& s) {
                                 s.kind = StepKind::layer;
                                 s.layer.number = 12;
                               })),
                    Catch::Contains("the model has no layer 12: its layers are 0 to 11"));
}

// In one order: what the model reads, how the batch is cut, what leaves the step.
TEST_CASE("Errors of a step name its keys, or the model's file where it is written nowhere") {
  const auto error = [](const Step& step, const Place& place) -> std::string {
    try {
      static_cast<void>(build_step({"gpt2", "gpt2.json", gpt2().json}, step, place));
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  const Place written{"a.json", "/workload"};
  Step step{.batch = 10, .microbatches = 4, .outputs = {"logit"}};
  CHECK(error(step, written) ==
        "a.json: /workload: a sequence length is needed: this model reads tokens");
  step.sequence = 64;
  CHECK(error(step, {}) == "gpt2.json: a batch of 10 does not divide into 4 microbatches");
  CHECK(error(step, written) ==
        "a.json: /workload/microbatches: a batch of 10 does not divide into 4 microbatches");
  step.batch = 12;
  CHECK(error(step, written) ==
        "a.json: /workload/outputs: outputs of a step of several microbatches are not supported");
  step.microbatches = 1;
  CHECK(error(step, written) ==
        "a.json: /workload/outputs: unknown output \"logit\", did you mean \"logits\"?");
  step.outputs = {"logits", "logits"};
  CHECK(error(step, written) == "a.json: /workload/outputs: \"logits\" is there twice");
  step.outputs = {"logits"};
  CHECK(error(step, written).empty());
}

// Buffers, too: a router's bias is of its layer. A stage that has only the last layers must not ask
// for what lies with others.
TEST_CASE("Layers of a kind that is split read what is theirs") {
  const Json json = {{"base", "deepseek-v3"}, {"num_hidden_layers", 8}};
  Step step{.batch = 8, .sequence = 16};
  step.precision.products.format = ProductFormat::mxfp8;
  step.precision.products.last_wide = 1;
  const Workload w = build_step(load_model_config(JsonReader(json, {"test", ""}), ""), step);
  int of_layers = 0;
  for (std::size_t b = 0; b < w.blocks.size(); ++b) {
    for (const Op& op : w.blocks[b].forward) {
      for (const Operand& operand : op.operands) {
        const Tensor& tensor = w.tensors[static_cast<std::size_t>(operand.tensor)];
        const bool of_step =
            tensor.role == TensorRole::input || tensor.role == TensorRole::constant;
        if (of_step || !w.blocks[static_cast<std::size_t>(tensor.block)].is_layer) continue;
        CHECK(static_cast<std::size_t>(tensor.block) == b);
        of_layers += tensor.role == TensorRole::buffer;
      }
    }
  }
  CHECK(of_layers == 2);  // the bias of routers, in both kinds
}

}  // namespace shardsim::step_test
