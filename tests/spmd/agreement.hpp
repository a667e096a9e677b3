// Collectives of a plan against those of XLA's partitioner, for one record of
// tests/golden/xla/expected.
//
//   identical    the same multiset of (kind, axes or groups or pairs, element type, payload, count)
//   same bytes   for each kind and axes the same sum of payload times count
//   cheaper      other collectives, fewer wire bytes in all
//   different    other collectives, as many wire bytes or more
//   failed       no plan: an error
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/json_reader.hpp"
#include "plan/plan.hpp"

namespace shardsim::test {

enum class Agreement { identical, same_bytes, cheaper, different, failed };
[[nodiscard]] std::string name_of(Agreement agreement);

struct ProgramAgreement {
  std::string name;
  Agreement agreement = Agreement::failed;
  double expected_bytes = 0;  // wire bytes per device
  double bytes = 0;
  std::string text;  // what differs, or the error
};

// The plan is asked to name groups by the record's mesh.
[[nodiscard]] ProgramAgreement compare_program(const JsonReader& record,
                                               const std::function<Plan()>& make);

// Programs in which XLA is not followed on purpose, with the reason.
[[nodiscard]] const std::map<std::string, std::string>& known_differences();

}  // namespace shardsim::test
