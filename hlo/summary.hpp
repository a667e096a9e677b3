// The figures of one compiled program, per device and step, as two programs are compared by them.
//
//   collectives   equal ones, asked for by the same operation, are one row: kind, devices, element
//                 type, payload, how often a step executes it (loops multiplied out)
//   work          operations and bytes of kernels, loops multiplied out, by op_name; kernels that
//                 have none by their opcode in parentheses: "(copy)"
//   memory        as the compiler accounts for it: argument + output - alias + temp
//   opcodes       instructions in the text, those inside fusions included
//
// Device groups are told by the axes of a mesh (hlo/to_plan.hpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hlo/memory.hpp"
#include "hlo/to_plan.hpp"

namespace shardsim {

// What makes two collectives the same. Ordered by kind, then payload, largest first.
struct CollectiveKey {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes payload;
  std::string over;  // axes "x,y", else groups "{0,3} {1,2}"; of a permute "0>1 1>0"
  std::int64_t group_size = 1;
  DType dtype = DType::bf16;
  friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;
  friend bool operator<(const CollectiveKey& a, const CollectiveKey& b);

  // Sent by one device in one execution.
  [[nodiscard]] Bytes wire_bytes() const;
};

struct CollectiveUse {
  CollectiveKey key;
  std::string reason;
  std::int64_t count = 0;  // executions per step, not 0
};

struct HloWork {
  Flops flops{0};
  Bytes bytes{0};
  friend bool operator==(const HloWork&, const HloWork&) = default;
};

struct HloSummary {
  std::string file;
  std::string name;  // of the module
  Mesh mesh;
  std::vector<CollectiveUse> collectives;  // by key, then reason
  HloWork matmuls;                         // kernels that hold a dot or a convolution
  HloWork others;
  std::map<std::string, HloWork> work;  // by op_name; adds up to the two above
  HloMemory memory;
  std::optional<Bytes> temporaries;  // estimated; nothing when the module is not scheduled
  std::map<std::string, std::int64_t> opcodes;
  std::vector<std::string> notes;  // what was not understood or chosen

  [[nodiscard]] Bytes peak() const {
    return memory.argument + memory.output - memory.alias + temporaries.value_or(Bytes(0));
  }
};

// Throws InputError as plan_from_hlo.
[[nodiscard]] HloSummary summarize_hlo(const HloModule& module, const HloImportOptions& options);

}  // namespace shardsim
