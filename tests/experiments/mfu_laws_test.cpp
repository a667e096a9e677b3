// MFU by either convention is part of what the devices can do: never above 1, whatever the model,
// the sequence, the machine and the strategy.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {
namespace {

void passes(bool passed) { CHECK(passed); }

Json experiment_of(const std::string& model, std::int64_t sequence, const std::string& machine) {
  return {{"workload", {{"model", model}, {"batch", 8}, {"sequence", sequence}}},
          {"mesh", {{"fsdp", 8}}},
          {"strategy", "fsdp"},
          {"machine", machine}};
}

Prediction predict(const Json& document) {
  return predict(read_experiments(document, "a.json").at(0), {});
}

}  // namespace

TEST_CASE("MFU is never above 100 %") {
  passes(rc::check("mfu", [] {
    Json document = experiment_of(*rc::gen::element<std::string>("llama-3.1-8b", "qwen3-1.7b"),
                                  std::int64_t{1} << *rc::gen::inRange(7, 21),
                                  *rc::gen::elementOf(shipped_profiles()));
    document["workload"]["rematerialization"] =
        *rc::gen::element<std::string>("none", "full", "selective");
    document["workload"]["precision"]["compute"] =
        *rc::gen::element<std::string>("bf16", "fp32", "fp16", "fp8");
    const bool is_tensor_parallel = *rc::gen::arbitrary<bool>();
    if (is_tensor_parallel) document["mesh"] = {{"fsdp", 4}, {"tp", 2}};
    if (is_tensor_parallel) document["strategy"] = "fsdp+tp";
    const Prediction prediction = [&]() -> Prediction {
      try {
        return predict(document);
      } catch (const InputError&) {  // 8 devices are no slice or no nodes of that machine
        document["machine"] = "dgx-h100";
        return predict(document);
      }
    }();
    const Result& result = prediction.result;
    RC_ASSERT(result.mfu > 0);
    RC_ASSERT(result.mfu <= 1);
    RC_ASSERT(result.mfu_full_attention <= 1);
    RC_ASSERT(result.mfu_full_attention == 0 || result.mfu_full_attention > result.mfu);
  }));
}

// Attention takes nearly the whole step: 12 L h s T of 6 N T + 12 L h s T operations are 98 % at
// s = 2^20. With all of them counted, twice what the kernel does at 62 % of the peak would be 124
// %.
TEST_CASE("MFU with full attention is left out where it would be above 100 %, and a note says so") {
  const Prediction prediction = predict(experiment_of("llama-3.1-8b", 1 << 20, "tpu7x"));
  CHECK(prediction.result.mfu < 1);
  const auto& notes = prediction.result.notes;
  const bool is_above = prediction.result.mfu * 1.9 > 1;
  CHECK((prediction.result.mfu_full_attention == 0) == is_above);
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
          return note.starts_with("MFU with full attention is left out");
        }) == is_above);
}

// 8 sequences of 4096 tokens of Llama-3.1-8B: 6 N T and 6 or 12 L h s T, as flops_test.cpp has
// them.
TEST_CASE("The two conventions differ by half of attention") {
  const Prediction prediction = predict(experiment_of("llama-3.1-8b", 4096, "dgx-h100"));
  const double tokens = 8.0 * 4096;
  const double products = 6 * (8'030'261'248.0 - 128256.0 * 4096 - 65.0 * 4096) * tokens;
  const double attention = 12.0 * 32 * (32 * 128) * 4096 * tokens;
  CHECK(prediction.result.mfu_full_attention / prediction.result.mfu ==
        Approx((products + attention) / (products + attention / 2)));
}

}  // namespace shardsim
