#include "tests/spmd/agreement.hpp"

#include <array>

#include "tests/plan/golden_collectives.hpp"

namespace shardsim::test {

std::string name_of(Agreement agreement) {
  constexpr std::array<const char*, 5> names{"identical", "same bytes", "cheaper", "different",
                                             "failed"};
  return names.at(static_cast<std::size_t>(agreement));
}

ProgramAgreement compare_program(const JsonReader& record, const std::function<Plan()>& make) {
  ProgramAgreement result;
  result.name = record.at("name").string();
  const JsonReader rows = record.at("collectives");
  result.expected_bytes = expected_wire_bytes(rows);
  try {
    const Plan plan = told_by(make(), golden_mesh(record.at("mesh")));
    result.bytes = actual_wire_bytes(plan);
    result.text = difference(expected_collectives(rows), actual_collectives(plan));
    if (result.text.empty()) {
      result.agreement = Agreement::identical;
    } else if (bytes_by_axes(rows) == bytes_by_axes(plan)) {
      result.agreement = Agreement::same_bytes;
    } else {
      const bool is_less = result.bytes < result.expected_bytes;
      result.agreement = is_less ? Agreement::cheaper : Agreement::different;
    }
  } catch (const std::exception& error) {
    result.text = std::string("    ") + error.what() + "\n";
  }
  return result;
}

const std::map<std::string, std::string>& known_differences() {
  static const std::map<std::string, std::string> reasons{
      {"while_dynamic",
       "An all-reduce stands in the condition of its loop. It runs; the reference counts bodies of "
       "loops only."}};
  return reasons;
}

}  // namespace shardsim::test
