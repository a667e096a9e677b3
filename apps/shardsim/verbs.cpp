#include "verbs.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"

namespace shardsim {

namespace {

constexpr std::array verbs{run_verb,     compare_verb,   plan_verb,       specs_verb,
                           reshard_verb, model_verb,     profiles_verb,   collective_verb,
                           kernel_verb,  calibrate_verb, validate_verb,   import_verb,
                           hlo_verb,     check_verb,     completion_verb, man_verb};

}  // namespace

std::vector<Verb> all_verbs() {
  std::vector<Verb> all;
  for (const auto& verb : verbs) all.push_back(verb());
  return all;
}

Verb find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (Verb& verb : all_verbs()) {
    if (name == verb.name) return std::move(verb);
    names.emplace_back(verb.name);
  }
  const std::string suggestion = closest(name, names);
  throw UsageError(fmt::format("unknown command \"{}\"{}", name,
                               suggestion.empty()
                                   ? std::string("; shardsim --help lists them")
                                   : fmt::format(", did you mean \"{}\"?", suggestion)));
}

}  // namespace shardsim
