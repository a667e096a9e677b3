// What the processes of one job say, so that people read it once.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "validate/backend.hpp"

namespace shardsim {

// "error: ..." on standard error.
void say(const std::string& error);

// Of what may fail on some processes and not on others, the result; nothing where it failed on any,
// which has been said then.
template <class Try>
auto together(Backend& backend, const Try& attempt) -> std::optional<decltype(attempt())> {
  std::optional<decltype(attempt())> result;
  std::string error;
  try {
    result = attempt();
  } catch (const InputError& wrong) {
    error = wrong.what();
  }
  const std::optional<std::string> mine = disagreement(backend, error);
  if (!mine) return result;
  if (!mine->empty()) say(*mine);
  return std::nullopt;
}

}  // namespace shardsim
