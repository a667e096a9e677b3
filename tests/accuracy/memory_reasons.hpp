// Why the peak of a record of tests/golden/xla_models is more than a tenth off, or its verdict
// another: read from the compiler's own account of its temporaries.
#pragma once

#include <map>
#include <string>

namespace shardsim::test {

[[nodiscard]] const std::map<std::string, std::string>& memory_reasons();  // by id

}  // namespace shardsim::test
