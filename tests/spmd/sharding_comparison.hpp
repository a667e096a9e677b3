// Shardings after propagation against those of XLA, for every value of a file of
// tests/golden/xla/propagated (made by jaxlib 0.10.2 with Shardy).
//
// Compared are the axes of each dimension, and unreduced axes. Not compared: whether a dimension is
// open (XLA closes all at the end, so do we), replicated axes (what a dimension does not name is
// replicated; they only kept propagation out), and "no sharding" against "nothing split", which
// the partitioner treats alike.
#pragma once

#include <string>

#include "tests/base/golden_files.hpp"

namespace shardsim::test {

// The file itself, without any sharding that the program (tests/golden/xla/programs) does not give,
// propagated: each value is as it was.
[[nodiscard]] Comparison compare_propagated(const std::string& file);
// The program, prepared and propagated: each value of the file has its equal, found by structure,
// with the same sharding.
[[nodiscard]] Comparison compare_prepared(const std::string& file);
// The same for the program with mhlo.sharding in place of axes, where there is one. Its mesh has
// other axes, therefore it is compared which piece each device holds.
[[nodiscard]] Comparison compare_tiles(const std::string& file);

}  // namespace shardsim::test
