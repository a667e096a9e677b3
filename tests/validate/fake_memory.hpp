// Memory that is taken in granules, each of one buffer, and never given back to the device.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/error.hpp"
#include "validate/backends/device_memory.hpp"

namespace shardsim::testing {

class FakeMemory : public DeviceMemory {
 public:
  explicit FakeMemory(Bytes granule, Bytes capacity = Bytes(std::int64_t{1} << 50))
      : granule_(granule), capacity_(capacity) {}

  void allocate(BufferId buffer, Bytes bytes) override {
    const Bytes taken = granule_ * ceil_div(bytes.count(), granule_.count());
    if (in_use_ + taken > capacity_) throw CannotRunError("no memory");
    taken_[buffer] = taken;
    in_use_ += taken;
    reserved_ = std::max(reserved_, in_use_);
    most_buffers = std::max(most_buffers, static_cast<std::int64_t>(taken_.size()));
  }
  void free(BufferId buffer) override {
    in_use_ -= taken_.at(buffer);
    taken_.erase(buffer);
  }
  [[nodiscard]] Bytes in_use() const override { return in_use_; }
  [[nodiscard]] Bytes reserved() const override { return reserved_; }
  [[nodiscard]] Bytes allowance() const override { return capacity_; }
  [[nodiscard]] std::string shared_by() const override { return "here"; }

  std::int64_t most_buffers = 0;  // at once

 private:
  Bytes granule_;
  Bytes capacity_;
  std::map<BufferId, Bytes> taken_;
  Bytes in_use_{0};
  Bytes reserved_{0};
};

}  // namespace shardsim::testing
