#include "golden.hpp"

namespace shardsim::test {

void add_praxis(GoldenFunctions& functions) { (void)functions; }

}  // namespace shardsim::test
