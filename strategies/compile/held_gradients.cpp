#include "strategies/compile/held_gradients.hpp"

#include <utility>

namespace shardsim {

void HeldGradients::hold_copied_in(const std::vector<BufferIndex>& copied, const UnitPass& unit,
                                   TaskId copied_at) {
  if (copied.empty()) return;
  if (std::exchange(unit_, unit) != unit) {
    for (const BufferIndex buffer : std::exchange(copied_in_, {})) {
      if (copied_at < buffers_[buffer].buffer.allocated_by) continue;
      buffers_.use(buffer, copied_at, static_cast<std::size_t>(Stream::compute));
    }
  }
  copied_in_.insert(copied_in_.end(), copied.begin(), copied.end());
}

void HeldGradients::give_back(TaskId last_reduction) {
  copied_in_.clear();
  for (const BufferIndex sum : std::exchange(sums_, {})) {
    buffers_.use(sum, last_reduction, static_cast<std::size_t>(Stream::reductions));
  }
}

}  // namespace shardsim
