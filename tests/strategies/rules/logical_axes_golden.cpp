#include "golden.hpp"

namespace shardsim::test {

void add_logical_axes(GoldenFunctions& functions) { (void)functions; }

}  // namespace shardsim::test
