// What the processes of one job say, so that people read it once.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "command.hpp"
#include "validate/exchange/exchange.hpp"

namespace shardsim {

// "error: ..." on standard error.
void say(const std::string& error);

// What all processes try, and some may fail at.
class Attempts {
 public:
  explicit Attempts(Exchange& exchange) : exchange_(exchange) {}

  // The result; nothing where any of them failed, which has been said then.
  template <class Try>
  auto operator()(const Try& attempt) -> std::optional<decltype(attempt())> {
    std::optional<decltype(attempt())> result;
    std::string error;
    try {
      result = attempt();
    } catch (const UsageError& wrong) {
      error = wrong.what();
      exit_code_ = exit_wrong_usage;
    } catch (const InputError& wrong) {
      error = wrong.what();
    }
    const std::optional<std::string> mine = disagreement(exchange_, error);
    if (!mine) return result;
    if (!mine->empty()) say(*mine);
    return std::nullopt;
  }

  [[nodiscard]] int exit_code() const { return exit_code_; }  // where one failed

 private:
  Exchange& exchange_;
  int exit_code_ = exit_invalid_input;
};

}  // namespace shardsim
