// The experiment that a record of Megatron-Core's step is of.
#pragma once

#include "base/json.hpp"
#include "strategies/compile/compile.hpp"

namespace shardsim::megatron_test {

[[nodiscard]] CompiledStep compile_record(const Json& record);

}  // namespace shardsim::megatron_test
