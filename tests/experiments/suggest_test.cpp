// Suggestions hold what the experiment takes when it is run with their settings: that is their
// contract, and it needs no figure of its own.
#include "experiments/suggest.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.hpp"

namespace shardsim {
namespace {

Json gpt2_on_one_node(const Json& strategy, const Json& mesh, std::int64_t batch) {
  return {{"workload", {{"model", "gpt2"}, {"batch", batch}, {"sequence", 1024}}},
          {"mesh", mesh},
          {"strategy", strategy},
          {"machine", "dgx-a100"}};
}

Prediction predicted(const Json& document) {
  return predict(read_experiments(document, "test.json").at(0), {});
}

void check_that_settings_give_their_figures(const Json& document,
                                            const std::vector<Suggestion>& suggestions) {
  for (const Suggestion& suggestion : suggestions) {
    Json changed = document;
    for (const auto& [path, value] : suggestion.settings) apply_override(changed, path, value);
    const Prediction again = predicted(changed);
    CHECK(again.result.process() == suggestion.peak);
    CHECK(again.result.step_time == suggestion.step);
    CHECK(again.result.fits() == suggestion.fits);
  }
}

}  // namespace

TEST_CASE("nothing is suggested for what fits") {
  CHECK(suggest_to_fit(predicted(gpt2_on_one_node("dp", {{"data", 8}}, 8))).empty());
}

TEST_CASE("what fits with one change is suggested, the shortest step first") {
  // 128 sequences on each device: log_softmax, its gradient and that of the logits are 12 bytes for
  // each of 128 x 1024 x 50257, 74 GiB, and the rest is more than the 5 GiB that are left.
  const Json document = gpt2_on_one_node("dp", {{"data", 8}}, 1024);
  const Prediction given = predicted(document);
  REQUIRE_FALSE(given.result.fits());
  const std::vector<Suggestion> suggestions = suggest_to_fit(given);
  REQUIRE_FALSE(suggestions.empty());
  CHECK(suggestions.size() <= most_suggestions);
  for (const Suggestion& suggestion : suggestions) {
    CHECK(suggestion.fits);
    CHECK(suggestion.settings.size() == suggestions.front().settings.size());
  }
  CHECK(std::is_sorted(suggestions.begin(), suggestions.end(),
                       [](const auto& a, const auto& b) { return a.step < b.step; }));
  check_that_settings_give_their_figures(document, suggestions);
}

// GPT-2's cache: 12 layers, keys and values of 768 in 2 bytes, 36 KiB a token. 80 GiB are
// 2.3 million of these; 4,000 sequences of 1,000 tokens are 4 million.
TEST_CASE("of a cache that does not fit, what would") {
  const Json document = {
      {"workload", {{"model", "gpt2"}, {"step", "decode"}, {"batch", 4000}, {"context", 999}}},
      {"mesh", {{"tp", 1}}},
      {"strategy", "megatron"},
      {"machine", "dgx-a100"}};
  const Prediction given = predicted(document);
  REQUIRE_FALSE(given.result.fits());
  const std::vector<Suggestion> suggestions = suggest_to_fit(given);
  check_that_settings_give_their_figures(document, suggestions);
  const auto named = [&](const std::string& path) {
    return std::any_of(suggestions.begin(), suggestions.end(), [&](const Suggestion& one) {
      return one.fits && one.settings.front().path == path;
    });
  };
  CHECK(named("workload.batch"));
  CHECK(named("workload.context"));
  CHECK(named("workload.precision.kv_cache"));
  // What is suggested leaves little: temporaries of the sequences that are left out.
  for (const Suggestion& one : suggestions) {
    if (one.settings.front().path == "workload.precision.kv_cache") continue;
    CHECK(static_cast<double>(one.peak.count()) >
          0.98 * static_cast<double>(given.result.capacity.count()));
  }
}

TEST_CASE("where no change fits, the nearest is told and does not claim to fit") {
  // 16 bytes for each of 405 billion parameters are 6 TiB; eight devices have 640 GiB.
  Json document = gpt2_on_one_node("dp", {{"data", 8}}, 8);
  document["workload"]["model"] = "llama-3.1-405b";
  const Prediction given = predicted(document);
  const std::vector<Suggestion> suggestions = suggest_to_fit(given);
  REQUIRE(suggestions.size() == 1);
  CHECK_FALSE(suggestions[0].fits);
  CHECK(suggestions[0].peak < given.result.process());
  CHECK(suggestions[0].settings.size() <= most_rounds);
  check_that_settings_give_their_figures(document, suggestions);
}

TEST_CASE("tensor parallelism is told of sequence parallelism") {
  // Over by so little that what it splits is enough.
  const Json document = gpt2_on_one_node("tp", {{"model", 4}}, 300);
  const Prediction given = predicted(document);
  REQUIRE_FALSE(given.result.fits());
  const std::vector<Suggestion> suggestions = suggest_to_fit(given);
  CHECK(std::any_of(suggestions.begin(), suggestions.end(), [](const Suggestion& suggestion) {
    return suggestion.settings.front().path == "strategy.sequence_parallel";
  }));
  check_that_settings_give_their_figures(document, suggestions);
}

}  // namespace shardsim
