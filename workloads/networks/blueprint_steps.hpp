// Steps that a network is written down in (blueprint.hpp): what each makes of what it reads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "workloads/layers/norm.hpp"
#include "workloads/networks/drawn.hpp"

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
  Plane aspect{1, 1};          // of rows to columns where both are the step's
  std::int64_t times = 1;      // the step's side so often: images beside latents
  bool operator==(const PictureInput&) const = default;
};
struct RowsInput {  // [batch, rows, width], or [batch, width] where rows is 0
  std::string name;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool constant = false;      // computed within the step: kept where it is read
  bool is_text_long = false;  // as many rows as the step has of text
  // Or patches of so many places a side of a picture as PictureInput has it, as many frames of it.
  std::int64_t patch = 0;
  std::int64_t frames = 1;
  Plane aspect{1, 1};
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
  std::int64_t dilation = 1;  // places that the kernel reads are so far apart
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
  // Places from the first to the last that the kernel reads.
  [[nodiscard]] std::int64_t reach(std::size_t side) const {
    return dilation * (kernel[side] - 1) + 1;
  }
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
struct Normed {  // over the width of rows, of heads one by one, or the channels of a picture
  Norm norm;
  bool whole = false;  // over all heads together
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
// put before, [1, 1, width] each; a table [1, rows, width] added to the parts of a vector, which is
// seen as each of them where it is one.
enum class LearnedUse : std::uint8_t { factor, table, before, parts };
struct Learned {
  LearnedUse use = LearnedUse::factor;
  std::string name;
  std::int64_t rows = 1;       // of what is put before
  bool trained = true;         // positions that are computed once
  bool channels_only = false;  // a factor of shape [channels, 1, 1]
  bool by_places = false;      // a table of shape [1, rows, columns, width]
  bool buffered = false;       // a table that is no parameter: a constant
  bool no_batch = false;       // a table of parts of shape [rows, width]
  bool flat = false;           // one row that is put before, of shape [width]
  std::int64_t of = 0;         // a table of so many rows, of which those in the middle are read
  std::int64_t tables = 1;     // in one parameter, [tables, 1, rows, width]; the first is read
  bool operator==(const Learned&) const = default;
};
struct Dropped {
  double rate = 0;
  bool by_example = false;  // stochastic depth: a number for each example
  bool by_channel = false;  // or for each channel of each: nn.Dropout2d
  bool in_place = false;    // which keeps its factors in x's type, not a byte each
  bool operator==(const Dropped&) const = default;
};
// A number times it: Keeps nothing.
struct Scaled {
  bool operator==(const Scaled&) const = default;
};

// In fp32, or back in the type of the step.
struct Cast {
  bool wide = true;
  bool operator==(const Cast&) const = default;
};

// Places as rows and back. A copy where it is asked for, else a view.
struct AsRows {
  bool copied = false;
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
// Rows from `first` on: `count` of them, or all where it is 0; or as many as a second value has,
// one of the same layer or of none. A view, unless it is copied.
struct RowsPart {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool copied = false;
  bool single = false;  // one row, as a vector
  bool picked = false;  // which one numbers of the batch say; in a step it is the first
  bool operator==(const RowsPart&) const = default;
};
struct Joined {  // side by side: channels of pictures, widths of rows; or one behind the other
  bool behind = false;
  bool operator==(const Joined&) const = default;
};

// nn.Linear. `inner`: between two products, as an MLP's: split under tensor parallelism. So are
// `heads` of rows that attention reads. Of `parts` of one size, which lie side by side, each is
// such a row.
struct LinearStep {
  std::string name;
  std::int64_t out = 0;
  bool bias = true;
  bool inner = false;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // that the heads are of, as many to each; 0: of its own
  std::int64_t parts = 1;
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
  bool causal = false;       // a place sees those before it alone
  bool heads_first = false;  // all three are laid out head after head; of these plain ones
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

// `count` of the `of` parts of a row's width or a picture's channels; a view.
struct WidthPart {
  std::int64_t first = 0;
  std::int64_t of = 1;
  std::int64_t count = 1;
  bool operator==(const WidthPart&) const = default;
};
// Rotary positions of heads: pairs of numbers times tables of their angles, in fp32.
struct Turned {
  std::string table;     // of one name is made once for all layers
  bool complex = false;  // one table of complex numbers
  bool given = false;    // enters with the batch
  bool whole = false;    // tables are of all heads of each example, [batch, rows, width]
  bool each = false;     // of each example, [batch, rows, head_dim]
  bool fp64 = false;
  std::int64_t of = 0;  // a table is a view of one of so many rows
  bool operator==(const Turned&) const = default;
};
// softmax(q k^T) v of heads.
struct AttendHeads {
  double dropout = 0;
  bool by_heads = false;  // q lies head after head, and so does what the kernel makes: it is copied
  bool repeats = false;   // keys and values are copied for each head that shares them
  bool operator==(const AttendHeads&) const = default;
};

// v (k^T q) of heads without a softmax (arXiv:2410.10629): relu of queries and keys, values beside
// a one, by whose result the others are divided; in fp32.
struct AttendLinearly {
  bool operator==(const AttendLinearly&) const = default;
};
// A row of a table for each example, by its number: a vector. nn.Embedding.
struct LookedUp {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool operator==(const LookedUp&) const = default;
};
// Rows of a table for the tokens of each example, by their numbers: nn.Embedding. As many as
// `count` says; 0: as the step has of text.
struct TokenRows {
  std::string name;
  std::int64_t table = 0;  // its rows
  std::int64_t width = 0;
  std::int64_t count = 0;
  bool given = true;      // numbers come with the batch, or are stored; else they are made
  bool by_place = false;  // the same for all examples
  bool operator==(const TokenRows&) const = default;
};
// All rows of an example side by side, as a vector.
struct Flattened {
  bool operator==(const Flattened&) const = default;
};

// The same, through which no gradient goes.
struct Detached {
  bool operator==(const Detached&) const = default;
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
// `span`: of two numbers of each row, which row an answer starts in and which it ends in.
enum class LossKind : std::uint8_t { classes, sum, span };
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

// Another name of a module before it, of whose parameters there is one of each.
struct Alias {
  std::string module, name;
  bool operator==(const Alias&) const = default;
};

using StepKind =
    std::variant<PictureInput, RowsInput, Convolve, BatchNormed, GroupNormed, Normed, Activated,
                 Combined, Learned, Dropped, Scaled, AsRows, AsPicture, Windowed, Unwindowed,
                 Merged, LearnedRows, FrozenNormed, RowsPart, Joined, LinearStep, Attend,
                 DistanceBias, WidthPart, Turned, AttendHeads, AttendLinearly, LookedUp, Flattened,
                 Cast, Mean, Pooled, Resized, LossStep, LayerMark, OutsideMark, Stored, Drawn,
                 TokenRows, Detached, Alias>;

// Rows of a transformer's stream, and what a norm makes of them for a branch: the one lies in parts
// between blocks under sequence parallelism, the other is whole.
enum class RowMark : std::uint8_t { none, stream, branch };

struct BlueprintStep {
  StepKind what;
  std::vector<Ref> reads{};
  RowMark mark = RowMark::none;

  bool operator==(const BlueprintStep&) const = default;
};

}  // namespace shardsim::models
