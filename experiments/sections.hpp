// The file's sections of one experiment ("workload", "mesh", ...), with a variant's laid over them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/owned_json.hpp"

namespace shardsim {

[[nodiscard]] const std::vector<std::string>& section_names();

// Each is read at the place that it was written at.
class Sections {
 public:
  // `variant` may be null. Throws InputError for an unknown section.
  Sections(const Json& base, const Json* variant, const Place& base_place,
           const Place& variant_place);

  // Nothing where it is left out or null.
  [[nodiscard]] std::optional<JsonReader> find(const std::string& section) const;
  // Throws InputError with the flag that stands for it.
  [[nodiscard]] JsonReader at(const std::string& section) const;

 private:
  OwnedJson merged_;
  Place root_;
  std::map<std::string, Place> places_;
};

}  // namespace shardsim
