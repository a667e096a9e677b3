#include "golden.hpp"

namespace shardsim::test {

void add_fsdp_tutorial(GoldenFunctions& functions) { (void)functions; }

}  // namespace shardsim::test
