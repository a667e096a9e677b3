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

// "HloModule ..." against "module @...": whether the text, which may be compressed, is HLO.
[[nodiscard]] bool is_hlo(const std::string& text);
// Throws InputError: what the readers refuse, a mesh with StableHLO (it brings its own).
[[nodiscard]] Plan program_plan(const std::string& path, const ProgramOptions& options);

}  // namespace shardsim
