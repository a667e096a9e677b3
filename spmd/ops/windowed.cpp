#include "spmd/ops/windowed.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "spmd/ops/windowed_plan.hpp"

namespace shardsim::spmd {
namespace {

bool any(const Shape& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size != 0; });
}

class WindowedReshard {
 public:
  WindowedReshard(const Sharded& operand, const Window& window, const Tiling& target,
                  ValueId padding, Masking masking)
      : operand_(operand),
        context_(*operand.context),
        builder_(context_.builder()),
        window_(window),
        target_(target),
        padding_(padding),
        masking_(masking) {}

  [[nodiscard]] std::optional<WindowedInput> run() {
    const Shape& local = builder_.shape(operand_.value);
    Dims windowed;
    for (std::size_t i = 0; i < window_.size(); ++i) {
      const auto dim = static_cast<std::int64_t>(i);
      auto plan = plan_window(window_[i], operand_.shape[i], local[i], target_.tiles(dim));
      if (!plan) return {};
      plans_.push_back(std::move(*plan));
      if (!is_trivial(window_[i])) windowed.push_back(dim);
    }
    // With the windowed dimensions whole on every device: pad, and slice.
    const Tiling windows_whole = replicate_dims(target_, windowed);
    const bool is_target = operand_.tiling == target_;
    if (operand_.tiling.is_replicated() || (!is_target && windows_whole == operand_.tiling)) {
      return pad_and_slice();
    }
    if (!is_target) return again(target_);
    const auto result = exchange_all();
    if (result) return finished(*result);
    if (windows_whole == operand_.tiling) return pad_and_slice();
    return again(windows_whole);
  }

 private:
  [[nodiscard]] std::optional<WindowedInput> again(const Tiling& tiling) const {
    return reshard_for_window(reshard(operand_, tiling), window_, target_, padding_,
                              Masking::always);
  }

  [[nodiscard]] WindowedInput finished(ValueId value) {
    WindowedInput result{value, {}, {}};
    for (const WindowPlan& plan : plans_) result.window.push_back(plan.window);
    if (std::all_of(plans_.begin(), plans_.end(),
                    [](const WindowPlan& plan) { return plan.result_start.empty(); })) {
      return result;
    }
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const PerTile& starts = plans_[i].result_start;
      result.result_starts.push_back(scalar_by_tile(
          context_, target_, static_cast<std::int64_t>(i),
          starts.empty() ? PerTile(at(target_.tiles(static_cast<std::int64_t>(i))), 0) : starts));
    }
    return result;
  }

  [[nodiscard]] WindowedInput pad_and_slice() {
    Shape low;
    Shape high;
    Shape sizes;
    std::vector<ValueId> starts;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const auto dim = static_cast<std::int64_t>(i);
      const WindowPlan& plan = plans_[i];
      const bool stays =
          target_.tiles(dim) == 1 || (is_trivial(window_[i]) && !operand_.tiling.is_replicated());
      low.push_back(stays ? 0 : plan.left);
      high.push_back(stays ? 0 : plan.padded_size - plan.left - operand_.shape[i]);
      sizes.push_back(target_.tiles(dim) == 1 ? operand_.shape[i] : plan.tile_size);
      const std::size_t count = at(target_.tiles(dim));
      starts.push_back(
          scalar_by_tile(context_, target_, dim, stays ? PerTile(count, 0) : plan.start));
    }
    ValueId value = operand_.value;
    if (any(low) || any(high)) {
      value = builder_.pad(value, padding_, low, high, Shape(low.size(), 0));
    }
    return finished(builder_.dynamic_slice(value, starts, sizes));
  }

  // The tiling of the tiles that take part.
  [[nodiscard]] Tiling taking_part() const {
    Shape tiles;
    bool all = true;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      tiles.push_back(plans_[i].tiles);
      all = all && plans_[i].tiles == target_.tiles(static_cast<std::int64_t>(i));
    }
    if (all || product(tiles) == 1) return all ? target_ : Tiling();
    std::vector<int> devices;
    target_.each([&](const Dims& index, int device) {
      for (std::size_t i = 0; i < plans_.size(); ++i) {
        const WindowPlan& plan = plans_[i];
        const bool skipped =
            index[i] >= plan.skip_from && index[i] < plan.skip_from + plan.skip_count;
        if (skipped || index[i] >= plan.tiles + plan.skip_count) return;
      }
      devices.push_back(device);
    });
    return Tiling::tiled(std::move(tiles), std::move(devices));
  }

  [[nodiscard]] ValueId prepared() {
    Dims unmasked;
    Shape starts;
    Shape limits;
    bool is_cut = false;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!plans_[i].mask_first) unmasked.push_back(static_cast<std::int64_t>(i));
      starts.push_back(plans_[i].cut_start);
      limits.push_back(plans_[i].cut_limit);
      is_cut =
          is_cut || plans_[i].cut_limit - plans_[i].cut_start != builder_.shape(operand_.value)[i];
    }
    ValueId value = operand_.value;
    if (unmasked.size() != plans_.size()) {
      value = pad_with(operand_, padding_, {}, unmasked).value;
    }
    return is_cut ? builder_.slice(value, starts, limits, Shape(starts.size(), 1)) : value;
  }

  // Nothing: a halo reaches too far.
  [[nodiscard]] std::optional<ValueId> exchange_all() {
    const Tiling tiling = taking_part();
    if (tiling.is_replicated()) return operand_.value;
    ValueId value = prepared();
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const WindowPlan& plan = plans_[i];
      if (!plan.is_exchanged) continue;
      const std::int64_t tile = plan.input_tile;
      const std::size_t count = plan.start.size();
      Halo halo{static_cast<std::int64_t>(i), tiling, linear(count, tile, plan.left) - plan.start,
                plan.limit - linear(count, tile, tile + plan.left)};
      HaloCut cut;
      cut.size = plan.exchanged_size;
      cut.left_padding = plan.left;
      cut.padded_size = plan.padded_size;
      cut.tile_size = plan.tile_size;
      cut.start = plan.start;
      cut.whole = target_;
      cut.ordinal = plan.ordinal;
      cut.padding = padding_;
      cut.mask = masking_ == Masking::always;
      cut.mask_when_compact = masking_ == Masking::when_compact;
      const auto exchanged = exchange_halo_and_cut(context_, value, halo, cut);
      if (!exchanged) return {};
      value = *exchanged;
    }
    return value;
  }

  const Sharded& operand_;
  Context& context_;
  Builder& builder_;
  const Window& window_;
  const Tiling& target_;
  ValueId padding_;
  Masking masking_;
  std::vector<WindowPlan> plans_;
};

}  // namespace

std::optional<WindowedInput> reshard_for_window(const Sharded& operand, const Window& window,
                                                const Tiling& target, ValueId padding,
                                                Masking masking) {
  return WindowedReshard(operand, window, target, padding, masking).run();
}

std::optional<Sharded> slice_tiles(const Sharded& operand, const SliceBounds& bounds,
                                   const Tiling& target) {
  if (target.is_replicated()) return {};
  Builder& builder = operand.context->builder();
  Window window;
  Shape shape;
  for (std::size_t i = 0; i < bounds.starts.size(); ++i) {
    WindowDim dim;
    dim.stride = bounds.strides[i];
    dim.low = -bounds.starts[i];
    dim.high = bounds.limits[i] - operand.shape[i];
    window.push_back(dim);
    shape.push_back(ceil_div(bounds.limits[i] - bounds.starts[i], bounds.strides[i]));
  }
  const ValueId zero = builder.zero(builder.type(operand.value));
  const auto input =
      reshard_for_window(reshard(operand, target), window, target, zero, Masking::none);
  if (!input) return {};
  Shape starts;
  Shape limits = builder.shape(input->value);
  bool is_cut = false;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    starts.push_back(-input->window[i].low);
    limits[i] += input->window[i].high;
    is_cut = is_cut || starts[i] != 0 || bounds.strides[i] != 1 || input->window[i].high != 0;
  }
  // Of another shape: a value of its own, of which nothing is known from before.
  const ValueId value = is_cut ? builder.slice(input->value, starts, limits, bounds.strides)
                               : builder.copy(input->value);
  return Sharded{value, shape, target, operand.context};
}

std::optional<Sharded> pad_tiles(const Sharded& operand, const PaddingSizes& sizes, ValueId padding,
                                 bool is_zero, const Tiling& target) {
  if (target.is_replicated()) return {};
  Builder& builder = operand.context->builder();
  Window window;
  Shape shape = operand.shape;
  bool needs_mask = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t tiles = target.tiles(static_cast<std::int64_t>(i));
    WindowDim dim;
    dim.low = sizes.low[i];
    dim.high = sizes.high[i];
    dim.base_dilation = sizes.interior[i] + 1;
    window.push_back(dim);
    const bool pads = dim.low > 0 || dim.high > 0 || sizes.interior[i] > 0;
    needs_mask = needs_mask || (tiles > 1 && pads && (!is_zero || shape[i] % tiles != 0));
    shape[i] += dim.low + dim.high + std::max<std::int64_t>(shape[i] - 1, 0) * sizes.interior[i];
  }
  const auto input = reshard_for_window(operand, window, target, padding,
                                        needs_mask ? Masking::always : Masking::when_compact);
  if (!input) return {};
  Shape low;
  Shape high;
  Shape interior;
  for (const WindowDim& dim : input->window) {
    low.push_back(dim.low);
    high.push_back(dim.high);
    interior.push_back(dim.base_dilation - 1);
  }
  ValueId value = input->value;
  if (any(low) || any(high) || any(interior)) {
    value = builder.pad(value, padding, low, high, interior);
  }
  if (!input->result_starts.empty()) {
    value = builder.dynamic_slice(value, input->result_starts, shard_shape(shape, target));
  }
  return Sharded{value, shape, target, operand.context};
}

}  // namespace shardsim::spmd
