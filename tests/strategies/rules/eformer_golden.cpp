#include "golden.hpp"

namespace shardsim::test {

void add_eformer(GoldenFunctions& functions) { (void)functions; }

}  // namespace shardsim::test
