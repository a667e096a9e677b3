// Which programs of a plan the groups of a collective join.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim {

// Mesh positions of a program; all of the mesh where it names none.
[[nodiscard]] std::vector<std::int64_t> devices_of(const Plan& plan, const Program& program);

// Of most collectives groups stay within one program, which is looked up once for all over the same
// axes.
class JoinedPrograms {
 public:
  explicit JoinedPrograms(const Plan& plan);

  // With program `p`, itself among them, in order. Throws InputError for a group with devices that
  // no program has.
  [[nodiscard]] std::vector<std::size_t> joined_by(std::size_t p, const Collective& collective);

 private:
  static constexpr int no_program = -1;

  [[nodiscard]] bool stay_within(const std::vector<AxisRef>& axes);
  // Adds the programs of a group that has devices of any in `joined`. Are there more now?
  [[nodiscard]] bool join(const std::vector<std::int64_t>& group, std::size_t p,
                          const Collective& collective, std::set<std::size_t>& joined) const;

  const Plan& plan_;
  std::vector<int> program_of_;  // by device
  std::map<std::vector<AxisRef>, bool> stay_within_;
};

}  // namespace shardsim
