// Work as kernels of a plan describe it, done by one core of a CPU.
//
// Products (work_shape.hpp) are of fp32, whatever the plan has. Any other kernel reads and writes
// its bytes: a = s * a + b over arrays that caches do not hold.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.hpp"
#include "validate/backends/work_shape.hpp"

namespace shardsim {

class CpuWork {
 public:
  CpuWork();
  void run(const Kernel& kernel);

 private:
  void multiply(const WorkShape& shape);
  void move(Bytes bytes);

  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> product_;
  std::size_t next_ = 0;  // element from which on the next bytes are moved
};

}  // namespace shardsim
