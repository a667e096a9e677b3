// The words that models of collectives are written by, and those combinations that have none. What
// each word means is the table of collective_model.hpp and of docs/collective.md.
#include "sim/collectives/collective_model.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/collective_cost.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim::collective_model_test {
namespace {

using Catch::Equals;
using testing::mistake_of;

std::string word_of(const CollectiveModel& model) {
  return mistake_of([&] { return name_of(model); });
}

std::vector<CollectiveModel> all_combinations() {
  std::vector<CollectiveModel> all;
  for (const auto estimator : {Estimator::shardsim, Estimator::tpu_scheduler, Estimator::xla_sol}) {
    for (const auto fidelity : {Fidelity::closed_form, Fidelity::flows}) {
      for (const bool calibrated : {true, false}) {
        for (const auto links : {TorusLinks::compiled, TorusLinks::all}) {
          all.push_back({estimator, fidelity, calibrated, links});
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("every word is a model of its own, and the model is printed by it") {
  using enum Estimator;
  using enum Fidelity;
  constexpr auto compiled = TorusLinks::compiled;
  constexpr auto all = TorusLinks::all;
  // docs/collective.md, "Whose time".
  const std::vector<std::pair<std::string, CollectiveModel>> words = {
      {"simulated", {shardsim, closed_form, true, compiled}},
      {"uncalibrated", {shardsim, closed_form, false, compiled}},
      {"all-links", {shardsim, closed_form, false, all}},
      {"tpu-scheduler", {tpu_scheduler, closed_form, false, compiled}},
      {"xla-sol", {xla_sol, closed_form, false, compiled}},
      {"flows", {shardsim, flows, false, all}}};
  REQUIRE(words.size() == collective_models::by_word.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    INFO(words[i].first);
    CHECK(collective_models::by_word.at(i).word == words[i].first);
    CHECK(collective_models::by_word.at(i).model == words[i].second);
    CHECK(name_of(words[i].second) == words[i].first);
  }
  CHECK(collective_models::by_word.front().model == CollectiveModel());  // the default
}

TEST_CASE("models differ when one answer does") {
  const std::vector<CollectiveModel> all = all_combinations();
  REQUIRE(all.size() == 24);  // 3 * 2 * 2 * 2
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      CHECK((all[i] == all[j]) == (i == j));
      CHECK((describe(all[i]) == describe(all[j])) == (i == j));
    }
  }
  CHECK(describe(collective_models::tpu_scheduler) ==
        "estimator tpu-scheduler, fidelity closed-form, uncalibrated, torus links compiled");
}

// 6 of the 24 have a word. name_of() throws for the others, and Placement for what cannot be named.
TEST_CASE("a combination without a word is an error that says why") {
  std::size_t named = 0;
  for (const CollectiveModel& model : all_combinations()) {
    if (word_of(model) == "none") ++named;
  }
  CHECK(named == 6);

  const std::string known =
      "; known are simulated, uncalibrated, all-links, tpu-scheduler, xla-sol, flows";
  CHECK_THAT(
      word_of({.fidelity = Fidelity::flows}),
      Equals("/collectives: there is no model of estimator shardsim, fidelity flows, "
             "calibrated, torus links compiled: flows are uncalibrated and go over all links "
             "of a torus" +
             known));
  CHECK_THAT(word_of({.torus_links = TorusLinks::all}),
             Equals("/collectives: there is no model of estimator shardsim, fidelity closed-form, "
                    "calibrated, torus links all: no calibration is of all links of a torus" +
                    known));
  CHECK_THAT(word_of({.estimator = Estimator::xla_sol, .fidelity = Fidelity::flows}),
             Equals("/collectives: there is no model of estimator xla-sol, fidelity flows, "
                    "calibrated, torus links compiled: xla-sol has a closed form of its own, "
                    "uncalibrated" +
                    known));

  const Machine node = make_machine(load_profile("dgx-h100", {}), 8, std::nullopt, {});
  const Mesh mesh({{"data", 8}});
  const CollectiveModel nameless{.fidelity = Fidelity::flows};
  CHECK(mistake_of([&] { return Placement(mesh, node, nameless); }) == word_of(nameless));
}

}  // namespace shardsim::collective_model_test
