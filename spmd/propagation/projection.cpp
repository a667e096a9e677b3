#include "spmd/propagation/projection.hpp"

#include <numeric>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

// The axes of a dimension, handed out from the major end in whole or in part.
class AxisFeed {
 public:
  explicit AxisFeed(const Axes& axes) : axes_(axes) { next(); }

  [[nodiscard]] bool empty() const { return position_ > axes_.size(); }
  [[nodiscard]] std::int64_t size() const { return current_.size; }
  // The major part of that size; it divides what is left of the axis.
  Axis take(std::int64_t size) {
    const Axis taken{current_.index, current_.pre_size, size};
    if (size == current_.size) {
      next();
    } else {
      current_ = {current_.index, taken.end(), current_.size / size};
    }
    return taken;
  }
  void take_all(Axes& into) {
    while (!empty()) append(into, take(size()));
  }

 private:
  void next() {
    if (position_ < axes_.size()) current_ = axes_[position_];
    ++position_;
  }

  const Axes& axes_;
  std::size_t position_ = 0;
  Axis current_;
};

// Fills a factor that others follow; true when axes overflow it.
bool fill(FactorAxes& factor, std::int64_t size, AxisFeed& feed) {
  while (!feed.empty()) {
    const std::int64_t part = std::gcd(size, feed.size());
    if (part == 1) break;
    factor.axes.push_back(feed.take(part));
    size /= part;
  }
  if (size == 1 || feed.empty()) return false;
  feed.take_all(factor.overflow);
  return true;
}

void append_all(Axes& into, const Axes& axes) {
  for (const Axis& axis : axes) append(into, axis);
}

}  // namespace

TensorProjection project(const stablehlo::TensorFactors& tensor,
                         const std::vector<stablehlo::Factor>& factors,
                         const TensorSharding* sharding) {
  static const DimensionAxes unknown;
  TensorProjection result;
  result.factors.resize(factors.size());
  for (std::size_t d = 0; d < tensor.size(); ++d) {
    const DimensionAxes& dimension = sharding == nullptr ? unknown : sharding->dimensions[d];
    AxisFeed feed(dimension.axes);
    bool overflown = false;
    for (const int index : tensor[d]) {
      FactorAxes& factor = result.factors[at(index)];
      factor.present = true;
      factor.minor_most = index == tensor[d].back();
      factor.closed = overflown || !dimension.open;
      if (overflown) continue;
      if (factor.minor_most) {
        feed.take_all(factor.axes);
      } else {
        overflown = fill(factor, factors[at(index)].size, feed);
      }
    }
  }
  if (sharding != nullptr) {
    result.replicated = sharding->replicated;
    result.unreduced = sharding->unreduced;
  }
  return result;
}

TensorSharding unproject(const TensorProjection& projection, const stablehlo::TensorFactors& tensor,
                         const std::vector<stablehlo::Factor>& factors, int mesh) {
  TensorSharding result;
  result.mesh = mesh;
  result.dimensions.reserve(tensor.size());
  for (const stablehlo::DimensionFactors& indices : tensor) {
    DimensionAxes& dimension = result.dimensions.emplace_back();
    for (const int index : indices) {
      const FactorAxes& factor = projection.factors[at(index)];
      if (factor.closed) dimension.open = false;
      append_all(dimension.axes, factor.axes);
      append_all(dimension.axes, factor.overflow);
      const std::int64_t size = factors[at(index)].size;
      if (!factor.overflow.empty() || total_size(factor.axes) < size) break;
    }
  }
  result.replicated = projection.replicated;
  result.unreduced = projection.unreduced;
  return result;
}

}  // namespace shardsim::spmd
