// Steps of a network that are drawn as sketches are (layers/sketch.hpp): what no other step does,
// of one value or several.
//
// Of what is read first rows are the sketch's sequence, [batch, sequence, hidden], or [batch,
// windows, sequence, hidden] where they lie in windows. Rows of others have an axis of their own,
// "beside_1"; pictures are [batch, channels, rows, columns], vectors [batch, hidden]; what another
// sketch made has the axes that it had there.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "workloads/layers/coupled_layer.hpp"
#include "workloads/layers/deformable_attention.hpp"
#include "workloads/layers/divided_attention.hpp"
#include "workloads/layers/gated_distance_attention.hpp"
#include "workloads/layers/grounded_classes.hpp"
#include "workloads/layers/layout_attention.hpp"
#include "workloads/layers/pooled_attention.hpp"

namespace shardsim::models {

struct Drawn {
  std::variant<DistanceScores, GatedDistanceAttention, LayoutAttention, GroundedClasses,
               UnreadProducts, FramePositions, DividedAttention, PooledAttention, WindowPositions,
               DeformableAttention, ChosenRows, CoupledLayer>
      what;
  std::string module{};  // in which it stands

  bool operator==(const Drawn&) const = default;
};

[[nodiscard]] Node draw(Sketch& s, const Drawn& drawn, const std::vector<Node>& reads);

// Of the n-th value that a step reads, [batch, windows, rows, width] where it lies in windows.
[[nodiscard]] Axes axes_of_read(const std::vector<std::int64_t>& shape, bool is_picture,
                                std::size_t n);
// Whether values of these axes are pictures, or rows as other steps have them.
[[nodiscard]] bool are_pictures(const Axes& axes);
[[nodiscard]] bool are_rows(const Axes& axes);
[[nodiscard]] bool are_windows(const Axes& axes);

}  // namespace shardsim::models
