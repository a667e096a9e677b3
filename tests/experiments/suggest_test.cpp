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
    CHECK(again.result.peak() == suggestion.peak);
    CHECK(again.result.step_time == suggestion.step);
    CHECK(again.result.fits() == suggestion.fits);
  }
}

}  // namespace

TEST_CASE("nothing is suggested for what fits") {
  CHECK(suggest_to_fit(predicted(gpt2_on_one_node("dp", {{"data", 8}}, 8))).empty());
}

TEST_CASE("what fits with one change is suggested, the shortest step first") {
  // 512 sequences on each device: activations alone are hundreds of GiB.
  const Json document = gpt2_on_one_node("dp", {{"data", 8}}, 4096);
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

TEST_CASE("where no change fits, the nearest is told and does not claim to fit") {
  // 16 bytes for each of 405 billion parameters are 6 TiB; eight devices have 640 GiB.
  Json document = gpt2_on_one_node("dp", {{"data", 8}}, 8);
  document["workload"]["model"] = "llama-3.1-405b";
  const Prediction given = predicted(document);
  const std::vector<Suggestion> suggestions = suggest_to_fit(given);
  REQUIRE(suggestions.size() == 1);
  CHECK_FALSE(suggestions[0].fits);
  CHECK(suggestions[0].peak < given.result.peak());
  CHECK(suggestions[0].settings.size() <= most_rounds);
  check_that_settings_give_their_figures(document, suggestions);
}

TEST_CASE("tensor parallelism is told of sequence parallelism") {
  const Json document = gpt2_on_one_node("tp", {{"model", 4}}, 2048);
  const Prediction given = predicted(document);
  REQUIRE_FALSE(given.result.fits());
  const std::vector<Suggestion> suggestions = suggest_to_fit(given);
  REQUIRE_FALSE(suggestions.empty());
  check_that_settings_give_their_figures(document, suggestions);
}

}  // namespace shardsim
