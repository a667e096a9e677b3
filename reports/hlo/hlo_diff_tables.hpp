// The figures of a difference between compiled programs, made once for all formats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/diff.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {

struct KindFigures {
  std::string kind;  // of a collective; "total" in the last row
  std::int64_t count_before = 0;
  std::int64_t count_after = 0;
  Bytes wire_before;
  Bytes wire_after;
};
// Kinds that either program has, and their sum.
[[nodiscard]] std::vector<KindFigures> kind_figures(const HloDiff& diff);

struct MemoryFigure {
  std::string name;
  std::optional<Bytes> before;  // nothing: not known
  std::optional<Bytes> after;
};
[[nodiscard]] std::vector<MemoryFigure> memory_figures(const HloDiff& diff);

// "added", "removed", "changed".
[[nodiscard]] std::string change_name(const CollectiveChange& change);
// "all-gather over x, bf16, 4.0 MiB"; of a changed one what it was and is:
// "all-reduce -> reduce-scatter over y, fp32, 1.0 MiB".
[[nodiscard]] std::string describe(const CollectiveChange& change);
// "step.hlo: jit_step on x=2 x y=4".
[[nodiscard]] std::string title_of(const HloSummary& program);

// In order of reading; those that say nothing are left out.
[[nodiscard]] std::vector<Table> hlo_diff_tables(const HloDiff& diff);
// What tables do not say: that nothing differs, notes that only one program has.
[[nodiscard]] std::vector<std::string> hlo_diff_remarks(const HloDiff& diff);

}  // namespace shardsim
