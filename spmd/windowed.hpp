#pragma once
#include <vector>
#include <cstdint>
namespace shardsim::spmd {
struct WindowDim {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t base_dilation = 1;
  std::int64_t window_dilation = 1;
  bool reversed = false;
};
using Window = std::vector<WindowDim>;
}
