// An input that a rule system refuses, under the exception type that the original raises, so that
// its users recognize it and tests compare by type:
//
//   a.json: /strategy/rules/0: KeyError: unknown axis "modle", did you mean "model"?
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace shardsim {

class RuleError : public InputError {
 public:
  RuleError(std::string_view type, const Place& place, std::string_view message,
            std::string_view suggestion = {})
      : InputError(place, std::string(type) + ": " + std::string(message), suggestion),
        type_(type) {}

  [[nodiscard]] const std::string& type() const { return type_; }  // "KeyError"

 private:
  std::string type_;
};

}  // namespace shardsim
