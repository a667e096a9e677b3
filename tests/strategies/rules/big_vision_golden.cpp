#include "golden.hpp"

namespace shardsim::test {

void add_big_vision(GoldenFunctions& functions) { (void)functions; }

}  // namespace shardsim::test
