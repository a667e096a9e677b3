#include "sim/collectives/collective_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/error.hpp"

namespace shardsim {
namespace {

// Of a model that no word is for.
std::string why_there_is_none(const CollectiveModel& model) {
  if (model.estimator != Estimator::shardsim) {
    return fmt::format("{} has a closed form of its own, uncalibrated", name_of(model.estimator));
  }
  if (model.fidelity == Fidelity::flows) {
    return "flows are uncalibrated and go over all links of a torus";
  }
  return "no calibration is of all links of a torus";
}

}  // namespace

std::string_view name_of(Estimator estimator) {
  constexpr std::array<std::string_view, 3> names = {"shardsim", "tpu-scheduler", "xla-sol"};
  return names.at(static_cast<std::size_t>(estimator));
}

std::string_view name_of(Fidelity fidelity) {
  return fidelity == Fidelity::flows ? "flows" : "closed-form";
}

std::string_view name_of(TorusLinks links) { return links == TorusLinks::all ? "all" : "compiled"; }

std::string describe(const CollectiveModel& model) {
  return fmt::format("estimator {}, fidelity {}, {}, torus links {}", name_of(model.estimator),
                     name_of(model.fidelity), model.calibrated ? "calibrated" : "uncalibrated",
                     name_of(model.torus_links));
}

std::string_view name_of(const CollectiveModel& model) {
  std::vector<std::string_view> words;
  for (const auto& [word, named] : collective_models::by_word) {
    if (named == model) return word;
    words.push_back(word);
  }
  throw InputError({"", "/collectives"},
                   fmt::format("there is no model of {}: {}; known are {}", describe(model),
                               why_there_is_none(model), fmt::join(words, ", ")));
}

}  // namespace shardsim
