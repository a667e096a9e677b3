// The order in which a dimension is looked for that can be sharded: the largest first, of equals
// the later one. It is that of `np.argsort(shape)[::-1]`, which big_vision's fsdp and the FSDP
// tutorial of uvadlc_notebooks write.
//
//   (1024, 1024) -> 1, 0     (768, 3072, 768) -> 1, 2, 0     (3, 3, 1024, 1024) -> 3, 2, 1, 0
//
// np.argsort is stable for up to 16 elements in numpy < 1.25. Later versions sort by SIMD on some
// processors and then are not stable (numpy issues 24064, 25610, 27725): from rank 4 on they may
// take the earlier of two equal dimensions. shardsim keeps the stable order everywhere.
#pragma once

#include <cstdint>
#include <vector>

namespace shardsim {

[[nodiscard]] std::vector<std::size_t> largest_dimensions_first(
    const std::vector<std::int64_t>& shape);

}  // namespace shardsim
