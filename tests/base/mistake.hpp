// What an InputError says.
#pragma once

#include <string>

#include "base/error.hpp"

namespace shardsim::testing {

// "none" where `attempt` throws none.
template <class Attempt>
std::string mistake_of(Attempt attempt) {
  try {
    static_cast<void>(attempt());
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace shardsim::testing
