// Programs of a golden folder: those of the repository, or of SHARDSIM_GOLDEN_DIR where it is set.
#pragma once

#include <string>
#include <vector>

namespace shardsim::test {

// Files of the folder whose names end in .mlir or .mlir.gz, in order; empty, and said so, when the
// folder is not there.
[[nodiscard]] std::vector<std::string> golden_programs(const std::string& folder);
// "FILE: N passed, M failed" and the failures.
void report(const std::string& path, int passed, const std::vector<std::string>& failures);

}  // namespace shardsim::test
