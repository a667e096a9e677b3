// Where the compiler put every value: the file *-buffer-assignment.txt that --xla_dump_to writes
// beside the HLO.
//
//   allocation 0: size 4096, parameter 1, shape |f32[8,128]| at ShapeIndex {}, maybe-live-out:
//    value: <38 x @0> (size=4096,offset=0): f32[8,128]{1,0}
//   allocation 1: size 16416, preallocated-temp:
//
// Its sums are what `compiled.memory_analysis()` answers: arguments are allocations of parameters,
// results those that live on (of parameters: aliased), temporaries the preallocated heap. Constants
// and what threads of the host keep are no part of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/memory.hpp"

namespace shardsim {

struct HloAllocation {
  Bytes bytes;
  std::optional<std::int64_t> parameter;
  bool lives_on = false;  // holds a result
  bool is_heap = false;   // of temporaries
};

struct BufferAssignment {
  std::vector<HloAllocation> allocations;

  [[nodiscard]] HloMemory memory() const;
  [[nodiscard]] Bytes temporaries() const;
  [[nodiscard]] Bytes peak() const;  // argument + output - alias + temporaries
};

// Throws InputError: no such file, sizes out of range.
[[nodiscard]] BufferAssignment parse_buffer_assignment(std::string_view text,
                                                       const std::string& file);

}  // namespace shardsim
