// Memory per device of a step of a real model beside what XLA's compiler allocated: a record of
// tests/golden/xla_models.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"

namespace shardsim::test {

struct MemoryComparison {
  std::string id;
  std::string model;
  std::string step;  // train, prefill, decode
  std::string platform;
  std::string chip;

  Bytes arguments;
  Bytes peak;
  bool fits = false;
  Bytes expected_arguments;
  Bytes expected_peak;
  bool expected_fits = false;

  // Of the peak: 0.1 where it is 10 percent too high.
  [[nodiscard]] double error() const;
};

[[nodiscard]] std::string memory_program(const std::string& record);
// `record` is the path of its file. Throws InputError.
[[nodiscard]] MemoryComparison compare_memory(const std::string& record);

// Of the errors' sizes.
[[nodiscard]] double median_error(const std::vector<MemoryComparison>& all);
[[nodiscard]] int count_within(const std::vector<MemoryComparison>& all, double error);

}  // namespace shardsim::test
