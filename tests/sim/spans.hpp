// When the tasks of a program ran, in picoseconds and issue order: what a case derives beside it.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "sim/step/simulate.hpp"

namespace shardsim::testing {

struct Span {
  std::int64_t start;
  std::int64_t end;
  friend bool operator==(const Span&, const Span&) = default;
};
inline std::ostream& operator<<(std::ostream& out, const Span& span) {
  return out << span.start << ".." << span.end;
}

inline std::vector<Span> spans(const ProgramResult& program) {
  std::vector<Span> result;
  for (const TaskTimes& task : program.tasks)
    result.push_back({task.start.count(), task.end.count()});
  return result;
}

}  // namespace shardsim::testing
