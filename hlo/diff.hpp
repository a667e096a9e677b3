// What two compiled programs do differently: one step under another flag, compiler or sharding.
//
//   before                                        after
//   all-gather  x  bf16  4 MiB  dot_general  x 3  all-gather  x  bf16  4 MiB  dot_general  x 2
//   all-reduce  y  f32   1 MiB  mlp/dot      x 1  reduce-scatter y f32 1 MiB  mlp/dot      x 1
//
//   -> removed  1 all-gather, of which 2 stay;   changed  all-reduce to reduce-scatter
//
// Collectives are a multiset; execution by execution is struck out or paired, in this order:
//   1. equal ones with the same reason       nothing to tell
//   2. equal ones with other reasons         nothing to tell: the operation has another name
//   3. same kind, devices and element type,  changed: combined or split, 3 x 2 MiB -> 1 x 6 MiB
//      and the same payload in all
//   4. same kind and reason                  changed: payload, devices or element type
//   5. same devices and reason               changed: the kind
//   6. what is left                          removed or added
// The differences in wire bytes of all changes add up to the difference between the programs.
#pragma once

#include <string>
#include <vector>

#include "hlo/summary.hpp"

namespace shardsim {

struct CountedCollective {
  CollectiveKey key;
  std::int64_t count = 0;
  [[nodiscard]] Bytes wire_bytes() const { return key.wire_bytes() * count; }
};

// One collective became another, or several of one kind others: rows of one side agree in all but
// payload and count.
struct CollectiveChange {
  std::vector<CountedCollective> before;  // empty: added
  std::vector<CountedCollective> after;   // empty: removed
  std::int64_t staying = 0;               // of an added or removed one, executions both have
  std::vector<std::string> reasons;       // distinct, in order

  [[nodiscard]] Bytes wire_difference() const;  // after less before, per device and step
};

struct WorkChange {
  std::string op_name;
  HloWork before;
  HloWork after;
};

struct OpcodeChange {
  std::string opcode;
  std::int64_t before = 0;
  std::int64_t after = 0;
};

struct HloDiff {
  HloSummary before;
  HloSummary after;
  std::int64_t equal_collectives = 0;         // executions that both have
  std::vector<CollectiveChange> collectives;  // largest difference in wire bytes first
  // Largest first, by share of the larger program's operations plus share of its bytes.
  std::vector<WorkChange> work;
  std::vector<OpcodeChange> opcodes;  // largest difference first
};

[[nodiscard]] HloDiff diff_hlo(HloSummary before, HloSummary after);

}  // namespace shardsim
