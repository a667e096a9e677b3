// One rank's list of a schedule over two stages that lie as a V: of every stage the microbatches
// come in order, so that a list is written by saying which stage does what next.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "strategies/schedule/schedule.hpp"

namespace shardsim {

class VRank {
 public:
  enum Way : std::uint8_t { down, up };  // the rank's stage on the way down; the one on the way up

  VRank(std::int32_t ranks, std::int32_t rank)
      : stages_{static_cast<std::int16_t>(rank), static_cast<std::int16_t>(2 * ranks - 1 - rank)} {}

  void forward(Way way) { add(ActionKind::forward, way, forwards_[way]++); }
  void backward(Way way) {
    add(ActionKind::backward, way, inputs_[way]++);
    ++weights_[way];
  }
  void input(Way way) { add(ActionKind::backward_input, way, inputs_[way]++); }
  void weight(Way way) { add(ActionKind::backward_weight, way, weights_[way]++); }
  void input_and_weight(Way way) {
    input(way);
    weight(way);
  }
  // A forward and the whole backward of the other stage.
  void overlapped(Way forward_way, Way backward_way) {
    forward(forward_way);
    actions_.back().with_next = true;
    backward(backward_way);
  }

  [[nodiscard]] std::int32_t forwards(Way way) const { return forwards_[way]; }
  [[nodiscard]] std::int32_t inputs(Way way) const { return inputs_[way]; }
  [[nodiscard]] std::int32_t weights(Way way) const { return weights_[way]; }
  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }

 private:
  void add(ActionKind kind, Way way, std::int32_t microbatch) {
    actions_.push_back({kind, /*with_next=*/false, stages_[way], microbatch});
  }

  std::array<std::int16_t, 2> stages_;
  std::array<std::int32_t, 2> forwards_{};
  std::array<std::int32_t, 2> inputs_{};
  std::array<std::int32_t, 2> weights_{};
  std::vector<Action> actions_;
};

}  // namespace shardsim
