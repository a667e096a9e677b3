#include "spmd/propagation/factor_propagation.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace shardsim::spmd {
namespace {

// The axes on which tensors seen so far agree.
struct Agreement {
  Axes axes;
  bool can_grow = true;  // no conflict yet, and the direction allows it

  void add(const Axes& other);
};

void Agreement::add(const Axes& other) {
  Axes agreed;
  const std::size_t both = std::min(axes.size(), other.size());
  const auto stop = [&] {
    axes = std::move(agreed);
    can_grow = false;
  };
  for (std::size_t i = 0; i < both; ++i) {
    const Axis& mine = axes[i];
    const Axis& theirs = other[i];
    if (mine == theirs) {
      agreed.push_back(mine);
    } else if (is_prefix(theirs, mine)) {
      // What comes after their shorter part cannot continue it, or they would be one.
      if (i + 1 < other.size()) {
        agreed.push_back(theirs);
        return stop();
      }
      agreed.push_back(mine);
    } else if (is_prefix(mine, theirs)) {
      if (!can_grow || i + 1 < axes.size()) {
        agreed.push_back(mine);
        return stop();
      }
      agreed.push_back(theirs);
    } else {
      return stop();
    }
  }
  const auto rest = [&](const Axes& list) {
    agreed.insert(agreed.end(), list.begin() + static_cast<std::ptrdiff_t>(both), list.end());
  };
  rest(axes);
  if (can_grow) rest(other);
  axes = std::move(agreed);
}

void agree(Agreement& agreement, const std::vector<TensorProjection>& tensors, std::size_t factor) {
  for (const TensorProjection& tensor : tensors) {
    if (tensor.factors[factor].present) agreement.add(tensor.factors[factor].axes);
  }
}

Axes agreed_axes(const Projection& projection, std::size_t factor, Direction direction) {
  Agreement agreement;
  if (direction == Direction::none) return {};
  const bool backward = direction == Direction::backward;
  agree(agreement, backward ? projection.results : projection.operands, factor);
  // The other side may only object.
  if (direction != Direction::both) agreement.can_grow = false;
  agree(agreement, backward ? projection.operands : projection.results, factor);
  return std::move(agreement.axes);
}

// Where a factor's axes come from: the largest tensor that has them all.
struct Source {
  double size = -1;
  int tensor = -1;
};

std::vector<Source> sources_of(const Projection& projection,
                               const std::vector<stablehlo::Factor>& factors,
                               const std::vector<Axes>& agreed) {
  std::vector<Source> sources(factors.size());
  int index = 0;
  const auto look_at = [&](const TensorProjection& tensor) {
    double size = 1;
    for (std::size_t f = 0; f < factors.size(); ++f) {
      if (tensor.factors[f].present) size *= static_cast<double>(factors[f].size);
    }
    for (std::size_t f = 0; f < factors.size(); ++f) {
      if (!tensor.factors[f].present || agreed[f].empty() || size <= sources[f].size) continue;
      if (is_prefix(agreed[f], tensor.factors[f].axes)) sources[f] = {size, index};
    }
    ++index;
  };
  for (const TensorProjection& tensor : projection.operands) look_at(tensor);
  for (const TensorProjection& tensor : projection.results) look_at(tensor);
  return sources;
}

std::vector<std::size_t> order_of(const std::vector<Source>& sources,
                                  const std::vector<Axes>& agreed, bool elementwise) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t f) {
    const std::int64_t parts = elementwise ? total_size(agreed[f]) : 0;
    return std::make_tuple(-sources[f].size, -parts, sources[f].tensor, f);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

// What of `axis` the factor can have after axes of `parts` pieces.
std::optional<Axis> fitting(const Axis& axis, const TensorProjection& tensor,
                            const FactorAxes& factor, std::int64_t parts, std::int64_t size) {
  std::optional<Axis> free = prefix_without(axis, tensor.replicated);
  if (free) free = prefix_without(*free, tensor.unreduced);
  if (!free) return std::nullopt;
  if (std::any_of(factor.axes.begin(), factor.axes.end(),
                  [&](const Axis& own) { return contains(own, *free); })) {
    return free;
  }
  if (!factor.closed && factor.overflow.empty()) {
    if (factor.minor_most) return free;
    if (size % parts == 0) {
      const std::int64_t part = std::gcd(size / parts, free->size);
      if (part > 1) return Axis{free->index, free->pre_size, part};
    }
  }
  if (!factor.axes.empty() && is_prefix(factor.axes.back(), *free)) return factor.axes.back();
  return std::nullopt;
}

// Cuts the list where `allowed(axis, pieces before)` allows less than all of an axis.
template <typename Allowed>
void truncate(Axes& axes, Allowed allowed) {
  std::int64_t parts = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::optional<Axis> rest = allowed(axes[i], parts);
    if (!rest) {
      axes.resize(i);
      return;
    }
    if (*rest != axes[i]) {
      axes[i] = *rest;
      axes.resize(i + 1);
      return;
    }
    parts *= rest->size;
  }
}

// What the tensor takes of `axes` for the factor; empty when it is no more than it has.
Axes takes(const TensorProjection& tensor, std::size_t index, Axes axes, std::int64_t size) {
  const FactorAxes& factor = tensor.factors[index];
  truncate(axes, [&](const Axis& axis, std::int64_t parts) {
    return fitting(axis, tensor, factor, parts, size);
  });
  if (!is_strict_prefix(factor.axes, axes)) return {};
  truncate(axes, [&](const Axis& axis, std::int64_t /*parts*/) {
    std::optional<Axis> rest = axis;
    for (std::size_t f = 0; f < tensor.factors.size() && rest; ++f) {
      if (f == index) continue;
      rest = prefix_without(*rest, tensor.factors[f].overflow);
      if (rest) rest = prefix_without(*rest, tensor.factors[f].axes);
    }
    return rest;
  });
  return axes;
}

}  // namespace

Direction either(Direction a, Direction b) {
  if (a == Direction::none || a == b) return b;
  return b == Direction::none ? a : Direction::both;
}

Direction both_of(Direction a, Direction b) {
  if (a == Direction::both || a == b) return b;
  return b == Direction::both ? a : Direction::none;
}

Updated propagate_factors(Projection& projection, const std::vector<stablehlo::Factor>& factors,
                          const std::vector<Direction>& directions, bool elementwise) {
  Updated updated;
  std::vector<Axes> agreed(factors.size());
  for (std::size_t f = 0; f < factors.size(); ++f) {
    agreed[f] = agreed_axes(projection, f, directions[f]);
  }
  if (std::all_of(agreed.begin(), agreed.end(), [](const Axes& axes) { return axes.empty(); })) {
    return updated;
  }
  const std::vector<std::size_t> order =
      order_of(sources_of(projection, factors, agreed), agreed, elementwise);
  const auto expand = [&](std::vector<TensorProjection>& tensors, std::vector<char>& changed,
                          bool is_operand) {
    changed.assign(tensors.size(), 0);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      for (const std::size_t f : order) {
        FactorAxes& factor = tensors[t].factors[f];
        if (!factor.present || agreed[f].empty()) continue;
        Axes axes = takes(tensors[t], f, agreed[f], factors[f].size);
        if (axes.empty()) continue;
        if (is_operand && elementwise) {
          for (const TensorProjection& result : projection.results) {
            const FactorAxes& own = result.factors[f];
            if (own.present && is_strict_prefix(own.axes, axes)) axes = own.axes;
          }
        }
        if (!is_strict_prefix(factor.axes, axes)) continue;
        factor.axes = std::move(axes);
        changed[t] = 1;
        updated.any = true;
      }
    }
  };
  expand(projection.results, updated.results, /*is_operand=*/false);
  expand(projection.operands, updated.operands, /*is_operand=*/true);
  return updated;
}

}  // namespace shardsim::spmd
