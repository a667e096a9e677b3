#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "validate/backends/nccl_plugin.hpp"

namespace shardsim {

// Tests lie in a folder of their own, where no module is.
TEST_CASE("without its module the backend nccl says how to get it") {
  CHECK_THROWS_AS(load_nccl_plugin(), CannotRunError);
  CHECK_THROWS_WITH(load_nccl_plugin(), Catch::Contains("built without CUDA and NCCL"));
}

}  // namespace shardsim
