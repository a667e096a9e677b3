// What a step takes of a device's memory as PyTorch's allocator counts it (caching_allocator.hpp),
// from the lifetimes of its buffers (memory.hpp).
//
// Two steps are gone through: in the first one the optimizer makes its state, in whatever is free
// then, and what comes behind finds less; the second is as all others are. What is there before a
// step is taken first. Gradients that outlive a step are given back before the next.
//
// A buffer is taken on the stream of the task that makes it where that gathers parameters or
// reduces gradients, as FSDP does on streams of its own; on the compute stream otherwise.
//
// Cost: as the allocator, for each buffer twice.
#pragma once

#include <vector>

#include "sim/step/memory.hpp"

namespace shardsim {

struct ReservedMemory {
  Bytes allocated{0};  // the peak of rounded sizes
  Bytes reserved{0};
};

// `lifetimes` of the program's buffers; `workspaces` are there all the time.
[[nodiscard]] ReservedMemory reserve_memory(const Program& program,
                                            const std::vector<BufferLifetime>& lifetimes,
                                            Bytes workspaces);

}  // namespace shardsim
