#include "golden.hpp"

namespace shardsim::test {

void add_pathways(GoldenFunctions& functions) { (void)functions; }

}  // namespace shardsim::test
