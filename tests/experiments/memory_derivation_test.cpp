// Peak memory of the shipped comparison, Llama-3.1-8B on 8 H100, derived by hand from the model's
// dimensions. Full rematerialization keeps of a layer what enters it.
//
// Per parameter between steps: 2 bytes in bf16, 12 of fp32 master copy and moments.
// At the loss, per token of a device: the 33 values on the residual stream and the last norm's
// result, 2h each; its rstd, 4; log-softmax, its gradient and that of the logits in fp32, 3 x 4V.
#include <catch2/catch.hpp>

#include "experiments/experiment.hpp"

#include "base/json.hpp"

using namespace shardsim;

namespace {

constexpr std::int64_t h = 4096, kv = 1024, f = 14336, heads = 32, V = 128256, L = 32,
                       sequence = 8192;
constexpr std::int64_t matrices_of_layer = 2 * h * h + 2 * kv * h + 3 * f * h;
constexpr std::int64_t norms = (2 * L + 1) * h;
constexpr std::int64_t all_parameters = 2 * V * h + L * matrices_of_layer + norms;
static_assert(all_parameters == 8'030'261'248);

// Token ids and labels in int64; rotary cos and sin in bf16, whole on every device.
constexpr std::int64_t inputs(std::int64_t tokens) {
  return 2 * 8 * tokens + 2 * 2 * sequence * 128;
}
constexpr std::int64_t at_the_loss(std::int64_t tokens, std::int64_t vocabulary) {
  return tokens * (2 * h * (L + 1) + 2 * h + 4 + 3 * 4 * vocabulary);
}

const Prediction& prediction(const std::string& name) {
  static const std::vector<Prediction> all = [] {
    const std::string file = SHARDSIM_SOURCE_DIR "/examples/llama-3.1-8b-8xh100.json";
    std::vector<Prediction> predictions;
    for (const Experiment& experiment : read_experiments(load_json(file), file)) {
      predictions.push_back(predict(experiment, {}));
    }
    return predictions;
  }();
  for (const Prediction& p : all) {
    if (p.experiment.name == name) return p;
  }
  FAIL("no variant " << name);
  return all.front();
}

std::int64_t peak(const std::string& name) { return prediction(name).result.peak().count(); }

}  // namespace

TEST_CASE("fsdp over 8: an eighth of the state; one sequence at the loss") {
  CHECK(peak("fsdp") == 14 * all_parameters / 8 + inputs(sequence) + at_the_loss(sequence, V));
}

TEST_CASE(
    "tp over 8: an eighth of the matrices, whole norms; eight sequences, an eighth of the "
    "vocabulary") {
  const std::int64_t state = 14 * ((all_parameters - norms) / 8 + norms);
  CHECK(peak("tp") == state + inputs(8 * sequence) + at_the_loss(8 * sequence, V / 8));
}

TEST_CASE("fsdp over 4 with tp over 2: norms are split over fsdp only") {
  const std::int64_t state = 14 * ((all_parameters - norms) / 8 + norms / 4);
  CHECK(peak("fsdp+tp") == state + inputs(2 * sequence) + at_the_loss(2 * sequence, V / 2));
}

TEST_CASE("dp: everything on every device; the peak is in the first layer's backward pass") {
  // Gradients of what comes after it are there, whole, in bf16: the head, the last norm, 31 layers,
  // and of layer 0 its down_proj, whose gradients are being made.
  const std::int64_t gradients = 2 * (V * h + h + (L - 1) * (matrices_of_layer + 2 * h) + h * f);
  // Per token: the layer's input; what was computed again: attention residual, two norm results, q,
  // attention's result (2h each), k and v, the four feed-forward values, logsumexp, two rstd; and
  // the gradients of the layer's result and of down_proj's input.
  const std::int64_t again = 5 * 2 * h + 2 * 2 * kv + 4 * 2 * f + 4 * heads + 2 * 4;
  const std::int64_t tokens = sequence * (2 * h + again + 2 * h + 2 * f);
  CHECK(peak("dp") == 14 * all_parameters + inputs(sequence) + gradients + tokens);
}

TEST_CASE("dp does not fit; the others do") {
  CHECK_FALSE(prediction("dp").result.fits());
  CHECK(prediction("fsdp").result.fits());
  CHECK(prediction("tp").result.fits());
  CHECK(prediction("fsdp+tp").result.fits());
}
