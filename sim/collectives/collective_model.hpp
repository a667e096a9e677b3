// By which model collectives are priced: a value, of which every field answers one question.
//
//   word           estimator      fidelity     calibrated  torus links
//   simulated      shardsim       closed_form  yes         compiled
//   uncalibrated   shardsim       closed_form  no          compiled
//   all-links      shardsim       closed_form  no          all
//   flows          shardsim       flows        no          all
//   tpu-scheduler  tpu_scheduler  closed_form  no          compiled
//   xla-sol        xla_sol        closed_form  no          compiled
//
// These are all that there are. A calibration is what machines alike have taken over the closed
// form (calibrated_cost.hpp): it is of clusters, and of nothing but shardsim's closed form. Flows
// go by the rings of the library and along all dimensions of a slice, whatever its compiler
// chooses. XLA's estimators have closed forms of their own.
//
// Example: what correction machines alike have taught is the difference between `simulated` and
// `uncalibrated`; what one gets from a better compiler for TPUs that between `uncalibrated` and
// `all-links`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardsim {

// Whose numbers.
enum class Estimator : std::uint8_t {
  shardsim,
  tpu_scheduler,  // what the TPU compiler's scheduler reckons with (tpu/compiler_choice.hpp)
  xla_sol         // what XLA's GPU scheduler reckons with, at the speed of light (xla_sol.hpp)
};
[[nodiscard]] std::string_view name_of(Estimator estimator);  // "tpu-scheduler"

enum class Fidelity : std::uint8_t {
  closed_form,
  flows  // every message over the links that it crosses (network_cost.hpp)
};
[[nodiscard]] std::string_view name_of(Fidelity fidelity);  // "closed-form"

// On a slice of TPUs.
enum class TorusLinks : std::uint8_t {
  compiled,  // those that XLA's compiler goes over, by what it chooses
  all        // all that could help
};
[[nodiscard]] std::string_view name_of(TorusLinks links);  // "compiled"

struct CollectiveModel {
  Estimator estimator = Estimator::shardsim;
  Fidelity fidelity = Fidelity::closed_form;
  bool calibrated = true;
  TorusLinks torus_links = TorusLinks::compiled;

  friend bool operator==(const CollectiveModel&, const CollectiveModel&) = default;
};

// "estimator shardsim, fidelity flows, uncalibrated, torus links all"
[[nodiscard]] std::string describe(const CollectiveModel& model);

namespace collective_models {

inline constexpr CollectiveModel simulated;
inline constexpr CollectiveModel uncalibrated{.calibrated = false};
inline constexpr CollectiveModel all_links{.calibrated = false, .torus_links = TorusLinks::all};
inline constexpr CollectiveModel tpu_scheduler{.estimator = Estimator::tpu_scheduler,
                                               .calibrated = false};
inline constexpr CollectiveModel xla_sol{.estimator = Estimator::xla_sol, .calibrated = false};
inline constexpr CollectiveModel flows{
    .fidelity = Fidelity::flows, .calibrated = false, .torus_links = TorusLinks::all};

struct Named {
  std::string_view word;  // in JSON and on the command line
  CollectiveModel model;
};

// By which words are read and printed, the default first.
inline constexpr std::array<Named, 6> by_word = {{{"simulated", simulated},
                                                  {"uncalibrated", uncalibrated},
                                                  {"all-links", all_links},
                                                  {"tpu-scheduler", tpu_scheduler},
                                                  {"xla-sol", xla_sol},
                                                  {"flows", flows}}};

}  // namespace collective_models

// The word. Throws InputError for a combination that has none.
[[nodiscard]] std::string_view name_of(const CollectiveModel& model);

}  // namespace shardsim
