#include "golden.hpp"

namespace shardsim::test {

void add_named_sharding(GoldenFunctions& functions) { (void)functions; }

}  // namespace shardsim::test
