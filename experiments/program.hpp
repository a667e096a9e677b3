// Somebody's program as a plan: StableHLO with shardings, which is propagated and partitioned, or
// HLO that XLA compiled.
//
//   Plan plan = program_plan("step.mlir.gz", {});
#pragma once

#include <optional>
#include <string>

#include "plan/plan.hpp"
#include "spmd/memory/device_memory.hpp"

namespace shardsim {

struct ProgramOptions {
  Mesh mesh;  // for HLO, which has none: axes to tell groups by; empty: one axis "device"
  // For HLO: *-buffer-assignment.txt of --xla_dump_to, which says what the program holds between
  // arguments and results; empty: an estimate.
  std::string buffers;
  // For StableHLO: who allocates its temporaries, and in how much memory.
  std::optional<spmd::MemoryTarget> target;
  std::optional<Bytes> capacity;
  // For StableHLO: reshard in XLA's steps. Else cheaper ways are taken where there are any, and a
  // note says what they save; a plan never sends more than XLA's.
  bool like_xla = false;
};

// "HloModule ..." against "module @...": whether the text is HLO.
[[nodiscard]] bool is_hlo(const std::string& text);
// Throws InputError: what the readers refuse, a mesh with StableHLO (it brings its own).
[[nodiscard]] Plan program_plan(const std::string& path, const ProgramOptions& options);
// The same of text that has been read already; `path` is for messages.
[[nodiscard]] Plan program_plan(const std::string& text, const std::string& path,
                                const ProgramOptions& options);

// Tries what the remedies of a StableHLO program's plan propose, one annotation at a time, the most
// expensive collectives first, and adds to each remedy what a device sends in a step then:
//   "annotate argument 3 as [{x}, {}, {}]: ...; tried: a device then sends 9.0 MiB per step instead
//   of 10.5 MiB"
// Where the remedy names several ways, the last is tried. What spares no bytes, since others take
// their place, or cannot be partitioned is taken out. At most `remedies_tried`, each at the cost of
// program_plan(). Compiled HLO is left as it is.
inline constexpr std::size_t remedies_tried = 12;
void try_remedies(const std::string& path, Plan& plan);

}  // namespace shardsim
