#include "launch/pax_classes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/json.hpp"

namespace shardsim {
namespace {

const PaxClass* known_class(std::string_view name) {
  for (const auto* table : {&pax_base_classes(), &pax_c4_classes()}) {
    for (const PaxClass& one : *table) {
      if (one.name == name) return &one;
    }
  }
  return nullptr;
}

// Bases as Python looks for an attribute in them: the class, then each base with its own. No class
// of Pax's has one base twice that says something.
class Chain {
 public:
  Chain(const std::vector<PaxFileClass>& classes, Place place)
      : classes_(classes), place_(std::move(place)) {}

  void add(const std::string& name) {
    if (!seen_.insert(name).second) return;
    const auto own = std::find_if(classes_.begin(), classes_.end(),
                                  [&](const PaxFileClass& one) { return one.name == name; });
    const PaxClass* known = known_class(name);
    if (own == classes_.end() && known == nullptr) return;  // of inputs, or of Python's own
    if (own != classes_.end()) {
      for (const Entry& entry : own->constants) keep(entry);
    }
    if (known != nullptr) add_known(*known, own != classes_.end());
    if (own != classes_.end()) {
      for (const std::string& base : own->bases) add(base);
    }
  }

  [[nodiscard]] std::vector<Entry> entries() && { return std::move(entries_); }

 private:
  void keep(const Entry& entry) {
    if (said_.insert(entry.key).second) entries_.push_back(entry);
  }

  // Of a class that the file has itself only what its task() does.
  void add_known(const PaxClass& known, bool in_file) {
    const Json constants = Json::parse(known.constants);
    for (const auto& [key, value] : constants.items()) {
      if (in_file && !key.starts_with("task.")) continue;
      keep({key, key, OwnedJson(value), {place_.file, fmt::format("{}: {}", known.name, key)}});
    }
    if (in_file) return;
    std::istringstream bases{std::string(known.bases)};
    for (std::string base; bases >> base;) add(base);
  }

  const std::vector<PaxFileClass>& classes_;
  Place place_;
  std::set<std::string> seen_, said_;
  std::vector<Entry> entries_;
};

}  // namespace

std::vector<std::string> pax_experiment_names() {
  std::vector<std::string> names;
  for (const auto* table : {&pax_base_classes(), &pax_c4_classes()}) {
    for (const PaxClass& one : *table) {
      if (one.registered) names.emplace_back(one.name);
    }
  }
  return names;
}

std::vector<Entry> pax_constants(const std::string& experiment,
                                 const std::vector<PaxFileClass>& classes, const Place& place) {
  const std::string name = experiment.substr(experiment.rfind('.') + 1);
  std::vector<std::string> known = pax_experiment_names();
  const bool in_file = std::any_of(classes.begin(), classes.end(),
                                   [&](const PaxFileClass& one) { return one.name == name; });
  if (!in_file && std::find(known.begin(), known.end(), name) == known.end()) {
    for (const PaxFileClass& one : classes) known.push_back(one.name);
    throw InputError(place, fmt::format("no experiment \"{}\"", name), closest(name, known));
  }
  Chain chain(classes, place);
  chain.add(name);
  return std::move(chain).entries();
}

}  // namespace shardsim
