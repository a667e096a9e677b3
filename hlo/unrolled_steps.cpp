#include "hlo/unrolled_steps.hpp"

#include <vector>

#include "base/index.hpp"
#include "hlo/callers.hpp"
#include "hlo/trip_count.hpp"

namespace shardsim {
namespace {

// A callee stands before its callers, so one pass over the text does.
class Steps {
 public:
  explicit Steps(const HloModule& module) : module_(module) {
    for (const HloComputation& computation : module.computations()) {
      double sum = computation.end - computation.first;
      for (HloId id = computation.first; id < computation.end; ++id) sum += inside(id);
      steps_.push_back(sum);
    }
  }

  [[nodiscard]] double of(HloComputationId id) const { return steps_[at(id)]; }

 private:
  [[nodiscard]] double inside(HloId id) const {
    const std::string_view opcode = module_.instruction(id).opcode;
    if (opcode == "while") {
      const auto count = static_cast<double>(trip_count(module_, id).value_or(1));
      return count * (of(module_.callee(id, "body")) + of(module_.callee(id, "condition")));
    }
    if (opcode == "call") return of(module_.callee(id, "to_apply"));
    if (opcode == "async-start") return of(module_.callee(id, "calls"));
    if (opcode != "conditional") return 0;
    double sum = 0;
    for (const HloComputationId branch : branches_of(module_, id)) sum += of(branch);
    return sum;
  }

  const HloModule& module_;
  std::vector<double> steps_;
};

}  // namespace

double unrolled_steps(const HloModule& module) { return Steps(module).of(module.entry()); }

}  // namespace shardsim
