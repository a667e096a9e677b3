#include "sharding/reshard.hpp"

#include <algorithm>
#include <cassert>

namespace shardsim {
namespace {

// Carries a sharding from `from` to `to`, recording the collectives on the way.
class Resharding {
 public:
  Resharding(const std::vector<std::int64_t>& shape, Sharding from, Sharding to)
      : shape_(shape), now_(std::move(from)), to_(std::move(to)) {}

  std::vector<ReshardStep> steps() && {
    scatter_partial_sums();
    slice();
    reduce_partial_sums();
    exchange();
    gather();
    slice();  // what could not be sliced while another axis was in the way
    return std::move(steps_);
  }

 private:
  [[nodiscard]] std::int64_t elements() const { return shard_elements(shape_, now_); }

  void record(CollectiveKind kind, const AxisList& axes, std::int64_t payload) {
    steps_.push_back({kind, merged(axes), payload, now_});
  }

  // The next axis that dimension d still has to be split over, if what it has is a prefix of what
  // it should have.
  [[nodiscard]] const AxisRef* next_axis(std::size_t d) const {
    const AxisList& have = now_.dims[d].axes;
    const AxisList& want = to_.dims[d].axes;
    if (!is_prefix(have, want) || have.size() == want.size()) return nullptr;
    return &want[have.size()];
  }

  void split(std::size_t d, const AxisRef& axis) {
    now_.dims[d].axes.push_back(axis);
    now_.dims[d].blocks = to_.dims[d].blocks;
  }

  void scatter_partial_sums() {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const std::int64_t payload = elements();
      AxisList axes;
      while (const AxisRef* axis = next_axis(d)) {
        if (!contains(now_.partial, *axis)) break;
        axes.push_back(*axis);
        std::erase(now_.partial, *axis);
        split(d, *axis);
      }
      if (axes.empty()) continue;
      // Padded to whole shards: every device of the group receives as many elements.
      record(CollectiveKind::reduce_scatter, axes,
             std::max(payload, elements() * Mesh::size_of(axes)));
    }
  }

  void slice() {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      while (const AxisRef* axis = next_axis(d)) {
        if (overlaps_any(*axis, now_.partial) || overlaps_any(*axis, split_axes(now_))) break;
        split(d, *axis);
      }
    }
  }

  void reduce_partial_sums() {
    AxisList axes;
    for (const AxisRef& axis : now_.partial) {
      if (!contains(to_.partial, axis)) axes.push_back(axis);
    }
    if (axes.empty()) return;
    std::erase_if(now_.partial, [&](const AxisRef& axis) { return contains(axes, axis); });
    record(CollectiveKind::all_reduce, axes, elements());
  }

  // An axis that leaves the end of one dimension for the end of another.
  void exchange() {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const AxisRef* axis = next_axis(d);
      if (axis == nullptr) continue;
      for (std::size_t from = 0; from < shape_.size(); ++from) {
        AxisList& axes = now_.dims[from].axes;
        if (from == d || axes.empty() || axes.back() != *axis) continue;
        const AxisRef moved = *axis;
        const std::int64_t payload = elements();
        axes.pop_back();
        split(d, moved);
        record(CollectiveKind::all_to_all, {moved}, std::max(payload, elements()));
        break;
      }
    }
  }

  // Takes off what is beyond the common prefix, minor axes first.
  void gather() {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      DimSharding& dim = now_.dims[d];
      AxisList gathered;
      while (!is_prefix(dim.axes, to_.dims[d].axes) ||
             (dim.blocks != to_.dims[d].blocks && !dim.axes.empty())) {
        gathered.insert(gathered.begin(), dim.axes.back());
        dim.axes.pop_back();
      }
      if (dim.axes.empty()) dim.blocks = 1;
      if (gathered.empty()) continue;
      // Every device contributes a whole, padded shard.
      DimSharding before = dim;
      before.axes.insert(before.axes.end(), gathered.begin(), gathered.end());
      const std::int64_t padded = shard_size(shape_[d], before) * Mesh::size_of(gathered);
      const std::int64_t payload =
          elements() / shard_size(shape_[d], dim) * std::max(padded, shard_size(shape_[d], dim));
      record(CollectiveKind::all_gather, gathered, payload);
    }
  }

  const std::vector<std::int64_t>& shape_;
  Sharding now_;
  Sharding to_;
  std::vector<ReshardStep> steps_;
};

}  // namespace

std::vector<ReshardStep> reshard(const std::vector<std::int64_t>& shape, const Sharding& from,
                                 const Sharding& to) {
  assert(from.dims.size() == shape.size() && to.dims.size() == shape.size());
  return Resharding(shape, from, to).steps();
}

std::int64_t wire_elements(const std::vector<ReshardStep>& steps) {
  std::int64_t total = 0;
  for (const ReshardStep& step : steps) {
    total +=
        wire_bytes_per_device(step.kind, Mesh::size_of(step.axes), Bytes(step.elements)).count();
  }
  return total;
}

}  // namespace shardsim
