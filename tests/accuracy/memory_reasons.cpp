#include "tests/accuracy/memory_reasons.hpp"

namespace shardsim::test {

const std::map<std::string, std::string>& memory_reasons() {
  static const std::map<std::string, std::string> reasons{};
  return reasons;
}

}  // namespace shardsim::test
