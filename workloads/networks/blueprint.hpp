// A network written down step by step, once: of one list come parameters, FLOPs and what eager
// PyTorch keeps (blueprint_count.cpp), and the ops of a step (blueprint_graph.cpp). For what is no
// stack of like layers and no network of its own: families of images, sounds and videos whose rows
// become pictures and pictures rows.
//
//   Draft d;
//   Ref x = d.image(3);                                                // [batch, 3, side, side]
//   x = d.rows(d.convolve({.name = "projection", .out = 64, .kernel = {7, 7}, .stride = {4, 4},
//                          .padding = {3, 3}}, x));                    // [batch, places, 64]
//   d.layer("stages", 0, "stage");                                     // names: "stages.0.norm"
//   x = d.norm(layer_norm("norm"), x);
//   d.outside("head");
//   d.classes(d.linear({.name = "classifier", .out = 1000}, d.mean(x)));
//   Blueprint net = d.finish({.side = 224});
//
// Values are pictures [batch, channels, rows, columns], rows [batch, places, width], windows of
// rows [batch, windows, places, width] and vectors [batch, width]. Their sizes follow from the
// image's; rows know the places of the picture that they were. A transpose is a view: pictures that
// rows were made into lie channels last, rows of a picture lie apart, and what reads them makes the
// copies that PyTorch makes.
//
// Layers that follow each other and are alike are one kind in the graph. Steps whose result no loss
// reads run forward alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "workloads/networks/blueprint_steps.hpp"
#include "workloads/networks/image_step.hpp"

namespace shardsim::models {

struct Blueprint {
  std::vector<BlueprintStep> steps{};
  std::int64_t side = 224;    // of the images that the configuration names
  std::int64_t coarsest = 1;  // what a side has to be a multiple of
  bool sequences = false;     // rows are a transformer's: marks on them count, contexts split them
  bool takes_one_side = false;       // tables have as many places as the configuration's images
  std::int64_t text = 0;             // tokens beside an image, or samples of a sound
  std::vector<std::string> parts{};  // for the reader, a line each

  bool operator==(const Blueprint&) const = default;
};

// Rows and columns of zeros that an op of their own puts around a picture of these sides.
[[nodiscard]] Plane zeros_around(const Convolve& convolution, const Plane& sides);
// The places that it makes of `sides`. Throws InputError at `place` where there are none.
[[nodiscard]] Plane places_of(const Convolve& convolution, const Plane& sides, const Place& place);

// Columns of a picture of so many rows, a multiple of what its patches are.
[[nodiscard]] std::int64_t columns_of(std::int64_t side, const Plane& aspect,
                                      std::int64_t multiple);

// Of each step whether a loss reads what it makes.
[[nodiscard]] std::vector<bool> learning_steps(const Blueprint& net);

// Writes steps down; names are within the module that is open.
class Draft {
 public:
  class [[nodiscard]] In {  // a module that is open while this lives
   public:
    In(Draft& draft, const std::string& module);
    ~In();
    In(const In&) = delete;
    In& operator=(const In&) = delete;

   private:
    Draft& draft_;
    std::string before_;
  };

  Ref image(std::int64_t channels, std::int64_t rows = 0, std::int64_t columns = 0);
  Ref enter(PictureInput input) { return add(std::move(input), {}); }
  Ref enter(RowsInput input) { return add(std::move(input), {}); }
  Ref convolve(Convolve convolution, Ref x);
  Ref batch_norm(const std::string& name, Ref x) { return add(BatchNormed{within(name)}, {x}); }
  Ref group_norm(const std::string& name, std::int64_t groups, Ref x);
  Ref norm(Norm norm, Ref x, bool whole = false);
  Ref activate(const std::string& function, Ref x, const std::string& name = "act");
  Ref sum(Ref a, Ref b) { return add(Combined{Pointwise::add}, {a, b}); }
  Ref product(Ref a, Ref b) { return add(Combined{Pointwise::multiply}, {a, b}); }
  Ref factor(const std::string& name, Ref x, bool channels_only = false);
  Ref table(const std::string& name, Ref x, bool trained = true);
  // The first of several tables of one parameter.
  Ref first_table(const std::string& name, std::int64_t tables, Ref x);
  Ref place_table(const std::string& name, Ref x);
  Ref constant_table(const std::string& name, Ref x);
  Ref before(const std::string& name, Ref x, std::int64_t rows = 1);
  Ref before_flat(const std::string& name, Ref x);
  Ref drop(double rate, Ref x) { return rate > 0 ? add(Dropped{rate}, {x}) : x; }
  Ref drop_in_place(double rate, Ref x);
  Ref drop_path(double rate, Ref x);
  Ref drop_channels(double rate, Ref x);
  Ref scaled(Ref x) { return add(Scaled{}, {x}); }
  Ref rows(Ref x) { return add(AsRows{}, {x}); }
  Ref copied_rows(Ref x) { return add(AsRows{.copied = true}, {x}); }
  Ref picture(Ref x) { return add(AsPicture{}, {x}); }
  Ref copied_picture(Ref x) { return add(AsPicture{.copied = true}, {x}); }
  Ref windows(std::int64_t side, Ref x) { return add(Windowed{side}, {x}); }
  Ref places_apart(std::int64_t side, Ref x) { return add(Windowed{side, /*apart=*/true}, {x}); }
  Ref from_windows(std::int64_t side, Ref x, Ref like) { return add(Unwindowed{side}, {x, like}); }
  Ref merge(Ref x) { return add(Merged{}, {x}); }
  Ref learned_rows(const std::string& name, std::int64_t rows, std::int64_t width);
  Ref frozen_norm(const std::string& name, Ref x) { return add(FrozenNormed{within(name)}, {x}); }
  Ref part(RowsPart part, Ref x) { return add(part, {x}); }
  Ref part_like(Ref like, RowsPart part, Ref x) { return add(part, {x, like}); }
  // One of so many parts of a width, or `count` of them.
  Ref width_part(std::int64_t first, std::int64_t of, Ref x, std::int64_t count = 1);
  Ref marked(Ref x, RowMark mark);
  Ref stream(Ref x) { return marked(x, RowMark::stream); }
  Ref branch(Ref x) { return marked(x, RowMark::branch); }
  Ref wide(Ref x) { return add(Cast{.wide = true}, {x}); }
  Ref narrow(Ref x) { return add(Cast{.wide = false}, {x}); }
  Ref turn(const Turned& how, Ref x) { return add(how, {x}); }
  Ref attend_heads(const AttendHeads& how, Ref q, Ref k, Ref v) { return add(how, {q, k, v}); }
  Ref attend_linearly(Ref q, Ref k, Ref v) { return add(AttendLinearly{}, {q, k, v}); }
  Ref looked_up(const std::string& name, std::int64_t rows, std::int64_t width);
  Ref tokens(TokenRows rows);
  // `drawn.module` is within the module that is open.
  Ref draw(Drawn drawn, std::vector<Ref> reads);
  Ref flattened(Ref x) { return add(Flattened{}, {x}); }
  // The middle of a table of so many rows, a parameter or a buffer of the checkpoint.
  Ref table_of(const std::string& name, std::int64_t rows, bool buffered, Ref x);
  Ref table_of_parts(const std::string& name, std::int64_t parts, Ref x, bool no_batch = false);
  Ref beside(std::vector<Ref> parts) { return add(Joined{false}, std::move(parts)); }
  Ref behind(std::vector<Ref> parts) { return add(Joined{true}, std::move(parts)); }
  Ref linear(LinearStep linear, Ref x);
  Ref attend(Attend attention, Ref q, Ref k, Ref v, std::optional<Ref> bias = {});
  Ref distance_bias(DistanceBias bias, std::optional<Ref> windows = {});
  Ref detached(Ref x) { return add(Detached{}, {x}); }
  Ref mean(Ref x) { return add(Mean{}, {x}); }
  Ref pool(Pooled pooled, Ref x) { return add(pooled, {x}); }
  Ref resize(Resized resized, Ref x) { return add(resized, {x}); }
  Ref resize_as(Ref x, Ref like) { return add(Resized{}, {x, like}); }
  void classes(Ref logits) { add(LossStep{LossKind::classes}, {logits}); }
  void span(Ref logits) { add(LossStep{LossKind::span}, {logits}); }
  void sum_loss(Ref x) { add(LossStep{LossKind::sum}, {x}); }
  void layer(const std::string& prefix, std::int64_t number, const std::string& kind);
  void outside(const std::string& block) { add(OutsideMark{block}, {}); }
  void stored(const std::string& name, std::vector<std::int64_t> shape, bool buffer = false);
  void alias(const std::string& module, const std::string& name) { add(Alias{module, name}, {}); }
  void note(std::string part) { net_.parts.push_back(std::move(part)); }

  // Two products and what is between them, each under its name.
  Ref mlp(const std::string& up, const std::string& down, std::int64_t width, std::int64_t out,
          const std::string& activation, Ref x);

  [[nodiscard]] Blueprint finish(Blueprint about);  // its steps are these

 private:
  Ref add(StepKind what, std::vector<Ref> reads);
  [[nodiscard]] std::string within(const std::string& name) const;

  Blueprint net_;
  std::string scope_;
};

[[nodiscard]] inline std::int64_t coarsest(const Blueprint& net) { return net.coarsest; }
// The last value; losses are among the steps. InputError: images of a size that tables do not have.
Value run(Eager& e, const Blueprint& net, const ImageStep& step);

}  // namespace shardsim::models
