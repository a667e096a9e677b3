#include "workloads/networks/blueprint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::models {

Draft::In::In(Draft& draft, const std::string& module) : draft_(draft), before_(draft.scope_) {
  draft.scope_ = draft.within(module);
}

Draft::In::~In() { draft_.scope_ = before_; }

std::string Draft::within(const std::string& name) const {
  if (name.empty()) return scope_;
  return scope_.empty() ? name : scope_ + "." + name;
}

Ref Draft::add(StepKind what, std::vector<Ref> reads) {
  net_.steps.push_back({std::move(what), std::move(reads)});
  return static_cast<Ref>(net_.steps.size()) - 1;
}

Ref Draft::image(std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  return add(PictureInput{.channels = channels, .rows = rows, .columns = columns}, {});
}

Ref Draft::convolve(Convolve convolution, Ref x) {
  convolution.name = within(convolution.name);
  return add(std::move(convolution), {x});
}

Ref Draft::group_norm(const std::string& name, std::int64_t groups, Ref x) {
  return add(GroupNormed{within(name), groups}, {x});
}

Ref Draft::norm(Norm norm, Ref x, bool whole) {
  norm.name = within(norm.name);
  return add(Normed{std::move(norm), whole}, {x});
}

Ref Draft::marked(Ref x, RowMark mark) {
  net_.steps[static_cast<std::size_t>(x)].mark = mark;
  return x;
}

Ref Draft::width_part(std::int64_t first, std::int64_t of, Ref x, std::int64_t count) {
  return add(WidthPart{.first = first, .of = of, .count = count}, {x});
}

Ref Draft::table_of(const std::string& name, std::int64_t rows, bool buffered, Ref x) {
  return add(
      Learned{.use = LearnedUse::table, .name = within(name), .buffered = buffered, .of = rows},
      {x});
}

Ref Draft::looked_up(const std::string& name, std::int64_t rows, std::int64_t width) {
  return add(LookedUp{within(name), rows, width}, {});
}

Ref Draft::tokens(TokenRows rows) {
  rows.name = within(rows.name);
  return add(std::move(rows), {});
}

Ref Draft::draw(Drawn drawn, std::vector<Ref> reads) {
  drawn.module = within(drawn.module);
  return add(std::move(drawn), std::move(reads));
}

Ref Draft::table_of_parts(const std::string& name, std::int64_t parts, Ref x, bool no_batch) {
  return add(
      Learned{.use = LearnedUse::parts, .name = within(name), .rows = parts, .no_batch = no_batch},
      {x});
}

Ref Draft::activate(const std::string& function, Ref x, const std::string& name) {
  return add(Activated{function, within(name)}, {x});
}

Ref Draft::factor(const std::string& name, Ref x, bool channels_only) {
  return add(
      Learned{.use = LearnedUse::factor, .name = within(name), .channels_only = channels_only},
      {x});
}

Ref Draft::table(const std::string& name, Ref x, bool trained) {
  return add(Learned{.use = LearnedUse::table, .name = within(name), .trained = trained}, {x});
}

Ref Draft::first_table(const std::string& name, std::int64_t tables, Ref x) {
  return add(Learned{.use = LearnedUse::table, .name = within(name), .tables = tables}, {x});
}

Ref Draft::place_table(const std::string& name, Ref x) {
  return add(Learned{.use = LearnedUse::table, .name = within(name), .by_places = true}, {x});
}

Ref Draft::constant_table(const std::string& name, Ref x) {
  return add(Learned{.use = LearnedUse::table, .name = within(name), .buffered = true}, {x});
}

Ref Draft::before(const std::string& name, Ref x, std::int64_t rows) {
  return add(Learned{.use = LearnedUse::before, .name = within(name), .rows = rows}, {x});
}

Ref Draft::before_flat(const std::string& name, Ref x) {
  return add(Learned{.use = LearnedUse::before, .name = within(name), .flat = true}, {x});
}

Ref Draft::drop_in_place(double rate, Ref x) {
  return rate > 0 ? add(Dropped{.rate = rate, .in_place = true}, {x}) : x;
}

Ref Draft::drop_path(double rate, Ref x) {
  return rate > 0 ? add(Dropped{rate, /*by_example=*/true}, {x}) : x;
}

Ref Draft::drop_channels(double rate, Ref x) {
  return rate > 0 ? add(Dropped{.rate = rate, .by_channel = true}, {x}) : x;
}

Ref Draft::linear(LinearStep linear, Ref x) {
  linear.name = within(linear.name);
  return add(std::move(linear), {x});
}

Ref Draft::attend(Attend attention, Ref q, Ref k, Ref v, std::optional<Ref> bias) {
  attention.name = within(attention.name);
  attention.has_bias = bias.has_value();
  std::vector<Ref> reads{q, k, v};
  if (bias) reads.push_back(*bias);
  return add(std::move(attention), std::move(reads));
}

Ref Draft::distance_bias(DistanceBias bias, std::optional<Ref> windows) {
  bias.name = within(bias.name);
  bias.shifted = windows.has_value();
  return add(std::move(bias), windows ? std::vector<Ref>{*windows} : std::vector<Ref>{});
}

Ref Draft::learned_rows(const std::string& name, std::int64_t rows, std::int64_t width) {
  return add(LearnedRows{within(name), rows, width}, {});
}

void Draft::layer(const std::string& prefix, std::int64_t number, const std::string& kind) {
  add(LayerMark{prefix, number, kind}, {});
}

void Draft::stored(const std::string& name, std::vector<std::int64_t> shape, bool buffer) {
  add(Stored{within(name), std::move(shape), buffer}, {});
}

Ref Draft::mlp(const std::string& up, const std::string& down, std::int64_t width, std::int64_t out,
               const std::string& activation, Ref x) {
  x = linear({.name = up, .out = width, .inner = true}, x);
  return linear({.name = down, .out = out}, activate(activation, x));
}

Blueprint Draft::finish(Blueprint about) {
  about.steps = std::move(net_.steps);
  about.parts = std::move(net_.parts);
  return about;
}

std::int64_t columns_of(std::int64_t side, const Plane& aspect, std::int64_t multiple) {
  if (aspect[0] == aspect[1]) return side;
  return std::max(side * aspect[1] / aspect[0] / multiple, std::int64_t{1}) * multiple;
}

Plane zeros_around(const Convolve& convolution, const Plane& sides) {
  if (!convolution.same) return convolution.padded;
  Plane zeros{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t rest = sides[i] % convolution.stride[i];
    zeros[i] = std::max<std::int64_t>(
        convolution.reach(i) - (rest == 0 ? convolution.stride[i] : rest), 0);
  }
  return zeros;
}

Plane places_of(const Convolve& convolution, const Plane& sides, const Place& place) {
  const Plane zeros = zeros_around(convolution, sides);
  const std::int64_t frames = std::max<std::int64_t>(convolution.tubelet, 1);
  Plane places{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t all = (sides[i] + zeros[i]) / (i == 0 ? frames : 1);
    const std::int64_t around = 2 * convolution.padding[i];
    const std::int64_t room = all + around - convolution.reach(i);
    if (convolution.transposed) {
      places[i] = (all - 1) * convolution.stride[i] - around + convolution.kernel[i];
    } else if (room >= 0) {
      places[i] = room / convolution.stride[i] + 1;
    }
  }
  if (places[0] < 1 || places[1] < 1) {
    throw InputError(place, fmt::format("what enters is too small: {} x {} places are fewer than "
                                        "the {} x {} of {}",
                                        sides[0], sides[1], convolution.kernel[0],
                                        convolution.kernel[1], convolution.name));
  }
  return places;
}

namespace {

// Whether a step reads its second value for its size alone.
bool reads_size_of_second(const StepKind& what) {
  return std::holds_alternative<Resized>(what) || std::holds_alternative<RowsPart>(what) ||
         std::holds_alternative<Unwindowed>(what);
}

}  // namespace

std::vector<bool> learning_steps(const Blueprint& net) {
  std::vector<bool> learns(net.steps.size(), false);
  for (std::size_t i = net.steps.size(); i-- > 0;) {
    if (std::holds_alternative<LossStep>(net.steps[i].what)) learns[i] = true;
    if (!learns[i] || std::holds_alternative<Detached>(net.steps[i].what)) continue;
    const std::vector<Ref>& reads = net.steps[i].reads;
    const std::size_t count = reads_size_of_second(net.steps[i].what) ? 1 : reads.size();
    for (std::size_t k = 0; k < count; ++k) learns[static_cast<std::size_t>(reads[k])] = true;
  }
  return learns;
}

}  // namespace shardsim::models
