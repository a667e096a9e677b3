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

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/layers/norm.hpp"
#include "workloads/networks/image_step.hpp"

namespace shardsim::models {

using Ref = int;                            // the step that makes a value
using Plane = std::array<std::int64_t, 2>;  // of rows and columns

// What enters. A size of 0 is the step's side; a sound's samples are columns of one row.
struct PictureInput {
  std::string name = "images";
  std::int64_t channels = 3;
  std::int64_t frames = 1;  // rows of each, one after another
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool one_dimension = false;  // [batch, channels, columns]: sounds
  bool learns = false;         // its gradient is computed
  bool is_text_long = false;   // as many columns as the step has of text or samples
  bool operator==(const PictureInput&) const = default;
};
struct RowsInput {  // [batch, rows, width], or [batch, width] where rows is 0
  std::string name;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool constant = false;  // computed within the step: kept where it is read
  bool operator==(const RowsInput&) const = default;
};

// nn.Conv1d to 3d, and their transposed ones. Weight [out, in / groups, kernel...], of sounds
// without the row.
struct Convolve {
  std::string name;
  std::int64_t out = 0;
  Plane kernel{1, 1};
  Plane stride{1, 1};
  Plane padding{0, 0};
  std::int64_t groups = 1;
  bool each = false;  // each channel alone: as many groups as channels
  bool bias = true;
  bool transposed = false;
  // Before each product the weight is made of two parameters, a direction and a length
  // (weight norm over the last dimension).
  bool weight_normed = false;
  std::int64_t cut = 0;  // places at the end that are dropped
  bool same = false;     // zeros around it by an op of their own, as TensorFlow has them
  Plane padded{0, 0};    // zeros behind rows and columns by an op of their own (padding "same")
  // nn.Conv3d over frames, which are rows of the picture one after another: so many are one place.
  std::int64_t tubelet = 0;
  bool frozen = false;  // does not learn
  bool operator==(const Convolve&) const = default;
};
struct BatchNormed {
  std::string name;
  bool operator==(const BatchNormed&) const = default;
};
struct FrozenNormed {  // a batch norm all of whose numbers are buffers
  std::string name;
  bool operator==(const FrozenNormed&) const = default;
};
struct GroupNormed {
  std::string name;
  std::int64_t groups = 1;  // 0: as many as channels
  bool operator==(const GroupNormed&) const = default;
};
struct Normed {  // over the width of rows, or the channels of a picture
  Norm norm;
  bool operator==(const Normed&) const = default;
};
struct Activated {
  std::string function;
  std::string name{};
  bool operator==(const Activated&) const = default;
};
enum class Pointwise : std::uint8_t { add, multiply };
struct Combined {  // of two values, or one and a vector for all its places
  Pointwise function = Pointwise::add;
  bool operator==(const Combined&) const = default;
};
// With a parameter: a factor of each channel; a table for all rows, [1, rows, width]; learned rows
// put before, [1, 1, width] each.
enum class LearnedUse : std::uint8_t { factor, table, before };
struct Learned {
  LearnedUse use = LearnedUse::factor;
  std::string name;
  std::int64_t rows = 1;       // of what is put before
  bool trained = true;         // positions that are computed once
  bool channels_only = false;  // a factor of shape [channels, 1, 1]
  bool by_places = false;      // a table of shape [1, rows, columns, width]
  bool buffered = false;       // a table that is no parameter: a constant
  bool operator==(const Learned&) const = default;
};
struct Dropped {
  double rate = 0;
  bool by_example = false;  // stochastic depth: a number for each example
  bool in_place = false;    // which keeps its factors in x's type, not a byte each
  bool operator==(const Dropped&) const = default;
};
// A number times it: Keeps nothing.
struct Scaled {
  bool operator==(const Scaled&) const = default;
};

// Places as rows and back. A copy where it is asked for, else a view.
struct AsRows {
  bool operator==(const AsRows&) const = default;
};
struct AsPicture {
  bool copied = false;
  bool operator==(const AsPicture&) const = default;
};
// Squares of rows and columns, zeros behind the last where they do not go evenly, and back.
struct Windowed {
  std::int64_t side = 7;
  bool apart =
      false;  // a window is not a square, but all squares' places of one number (MobileViT)
  bool operator==(const Windowed&) const = default;
};
struct Unwindowed {  // reads windows and rows that lay as the result's
  std::int64_t side = 7;
  bool operator==(const Unwindowed&) const = default;
};
// 2 x 2 places side by side.
struct Merged {
  bool operator==(const Merged&) const = default;
};
// A table that every example has as rows, nn.Embedding's weight.
struct LearnedRows {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool operator==(const LearnedRows&) const = default;
};
struct RowsPart {  // rows from `first` on: `count` of them, or all where it is 0; a view
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool single = false;  // one row, as a vector
  bool operator==(const RowsPart&) const = default;
};
struct Joined {  // side by side: channels of pictures, widths of rows; or one behind the other
  bool behind = false;
  bool operator==(const Joined&) const = default;
};

// nn.Linear. `inner`: between two products, as an MLP's: split under tensor parallelism.
struct LinearStep {
  std::string name;
  std::int64_t out = 0;
  bool bias = true;
  bool inner = false;
  bool operator==(const LinearStep&) const = default;
};
// Queries of one value, keys and values of the same or others.
struct Attend {
  std::string name;  // of the module that has the projections
  std::int64_t heads = 1;
  std::int64_t head_dim = 0;   // of queries and keys; 0: the width over heads
  std::int64_t value_dim = 0;  // 0: head_dim
  std::int64_t out = 0;        // width of the result; 0: that of queries
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj";
  std::string qkv{};  // one matrix: all queries, all keys, all values
  bool q_bias = true, k_bias = true, v_bias = true, o_bias = true;
  double dropout = 0;
  bool plain = false;         // multiplied out by the module itself
  bool fp32_softmax = false;  // of these
  // Of queries and keys of length one, times a learned number of each head, of this name.
  std::string cosine{};
  // Scores of queries with two tables of distances, of so many rows and columns (arXiv:2203.16527).
  Plane decomposed{0, 0};
  bool copies_bias = false;  // which each layer makes anew
  bool has_bias = false;     // reads one more value: [heads, queries, keys], or for each window
  bool operator==(const Attend&) const = default;
};
// A bias of scores, [queries, keys, heads], looked up in a table of distances.
struct DistanceBias {
  std::string name;  // of the table, a parameter [distances, heads]
  std::int64_t distances = 0;
  std::int64_t heads = 0;
  std::int64_t places = 0;
  bool stretched = false;  // the table is interpolated first (BEiT)
  std::string shared{};    // numbers that are made once for all layers; empty: a buffer's
  // Or of two products over coordinates, so wide between them, and 16 sigmoid of it (Swin 2); the
  // name is the products' module.
  std::int64_t made_width = 0;
  bool shifted = false;  // reads windows, of which each has a mask
  bool operator==(const DistanceBias&) const = default;
};

struct Mean {  // over all places: a vector
  bool operator==(const Mean&) const = default;
};
// The largest or the mean of windows.
struct Pooled {
  Plane kernel{2, 2};
  Plane stride{2, 2};
  Plane padding{0, 0};
  bool largest = true;
  std::int64_t to = 0;  // or as many places a side (adaptive)
  bool whole = false;   // or the whole picture, by a window that is larger than any
  bool operator==(const Pooled&) const = default;
};
struct Resized {  // by interpolation: as large as the second value, or `times` as large
  std::int64_t times = 0;
  std::int64_t side = 0;  // or so large
  bool to_image = false;  // or as the step's images
  bool operator==(const Resized&) const = default;
};
// Losses; the last is the step's. `sum`: of a result without a loss of its own.
enum class LossKind : std::uint8_t { classes, sum };
struct LossStep {
  LossKind kind = LossKind::sum;
  bool operator==(const LossStep&) const = default;
};

// Marks: steps behind it are of this layer, or of none.
struct LayerMark {
  std::string prefix;
  std::int64_t number = 0;
  std::string kind;
  bool operator==(const LayerMark&) const = default;
};
struct OutsideMark {
  std::string block;
  bool operator==(const OutsideMark&) const = default;
};
// A parameter that does not run, a buffer of the checkpoint.
struct Stored {
  std::string name;
  std::vector<std::int64_t> shape;
  bool buffer = false;
  bool operator==(const Stored&) const = default;
};

using StepKind =
    std::variant<PictureInput, RowsInput, Convolve, BatchNormed, GroupNormed, Normed, Activated,
                 Combined, Learned, Dropped, Scaled, AsRows, AsPicture, Windowed, Unwindowed,
                 Merged, LearnedRows, FrozenNormed, RowsPart, Joined, LinearStep, Attend,
                 DistanceBias, Mean, Pooled, Resized, LossStep, LayerMark, OutsideMark, Stored>;

struct BlueprintStep {
  StepKind what;
  std::vector<Ref> reads{};

  bool operator==(const BlueprintStep&) const = default;
};

struct Blueprint {
  std::vector<BlueprintStep> steps{};
  std::int64_t side = 224;           // of the images that the configuration names
  std::int64_t coarsest = 1;         // what a side has to be a multiple of
  bool takes_one_side = false;       // tables have as many places as the configuration's images
  std::int64_t text = 0;             // tokens beside an image, or samples of a sound
  std::vector<std::string> parts{};  // for the reader, a line each

  bool operator==(const Blueprint&) const = default;
};

// Rows and columns of zeros that an op of their own puts around a picture of these sides.
[[nodiscard]] Plane zeros_around(const Convolve& convolution, const Plane& sides);

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
  Ref norm(Norm norm, Ref x);
  Ref activate(const std::string& function, Ref x, const std::string& name = "act");
  Ref sum(Ref a, Ref b) { return add(Combined{Pointwise::add}, {a, b}); }
  Ref product(Ref a, Ref b) { return add(Combined{Pointwise::multiply}, {a, b}); }
  Ref factor(const std::string& name, Ref x, bool channels_only = false);
  Ref table(const std::string& name, Ref x, bool trained = true);
  Ref place_table(const std::string& name, Ref x);
  Ref constant_table(const std::string& name, Ref x);
  Ref before(const std::string& name, Ref x, std::int64_t rows = 1);
  Ref drop(double rate, Ref x) { return rate > 0 ? add(Dropped{rate}, {x}) : x; }
  Ref drop_in_place(double rate, Ref x);
  Ref drop_path(double rate, Ref x);
  Ref scaled(Ref x) { return add(Scaled{}, {x}); }
  Ref rows(Ref x) { return add(AsRows{}, {x}); }
  Ref picture(Ref x) { return add(AsPicture{}, {x}); }
  Ref copied_picture(Ref x) { return add(AsPicture{.copied = true}, {x}); }
  Ref windows(std::int64_t side, Ref x) { return add(Windowed{side}, {x}); }
  Ref places_apart(std::int64_t side, Ref x) { return add(Windowed{side, /*apart=*/true}, {x}); }
  Ref from_windows(std::int64_t side, Ref x, Ref like) { return add(Unwindowed{side}, {x, like}); }
  Ref merge(Ref x) { return add(Merged{}, {x}); }
  Ref learned_rows(const std::string& name, std::int64_t rows, std::int64_t width);
  Ref frozen_norm(const std::string& name, Ref x) { return add(FrozenNormed{within(name)}, {x}); }
  Ref part(RowsPart part, Ref x) { return add(part, {x}); }
  Ref beside(std::vector<Ref> parts) { return add(Joined{false}, std::move(parts)); }
  Ref behind(std::vector<Ref> parts) { return add(Joined{true}, std::move(parts)); }
  Ref linear(LinearStep linear, Ref x);
  Ref attend(Attend attention, Ref q, Ref k, Ref v, std::optional<Ref> bias = {});
  Ref distance_bias(DistanceBias bias, std::optional<Ref> windows = {});
  Ref mean(Ref x) { return add(Mean{}, {x}); }
  Ref pool(Pooled pooled, Ref x) { return add(pooled, {x}); }
  Ref resize(Resized resized, Ref x) { return add(resized, {x}); }
  Ref resize_as(Ref x, Ref like) { return add(Resized{}, {x, like}); }
  void classes(Ref logits) { add(LossStep{LossKind::classes}, {logits}); }
  void sum_loss(Ref x) { add(LossStep{LossKind::sum}, {x}); }
  void layer(const std::string& prefix, std::int64_t number, const std::string& kind);
  void outside(const std::string& block) { add(OutsideMark{block}, {}); }
  void stored(const std::string& name, std::vector<std::int64_t> shape, bool buffer = false);
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
