// A part of a layer written down once, operator by operator, of which come both what eager PyTorch
// does of it (count_sketch.hpp) and the ops of a step (models/graph/sketch_graph.cpp). For mixers
// that few families have and that no component of ours is made for: attention in blocks, pairs of
// attention, bottlenecks, convolutions of contents.
//
//   Node draw(Sketch& s, const Mixer& m, Node x) {                  // x[batch, sequence, hidden]
//     const Axis heads = heads_axis(m.heads), dim{"head_dim", m.dim};
//     const Node q = s.linear({"query", /*bias=*/true}, x, {heads, dim});   // rows: heads * dim
//     const Node k = s.seen(s.linear({"key", true}, x, {heads, dim}));      // sequence -> keys
//     Node p = s.product("scores", q, k, {batch, heads, sequence, keys});
//     ...
//   }
//
// Values have axes, by name and size; what an axis is of (batch, sequence, heads) says how it may
// be split. An axis may be named once in a value. What PyTorch alone does for its own sake, copies
// of tensors that do not lie as a product wants them, indices that it keeps, is `lies`, `keeps` and
// `keeps_numbers`: steps of a plan do not have them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "workloads/layers/attention.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

enum class AxisRole : std::uint8_t {
  plain,
  batch,
  sequence,
  keys,
  kept,  // tokens of a cache
  hidden,
  heads,
  group,
  width
};

struct Axis {
  std::string name;
  std::int64_t size = 0;
  AxisRole role = AxisRole::plain;

  bool operator==(const Axis&) const = default;
};
using Axes = std::vector<Axis>;

[[nodiscard]] inline Axis heads_axis(std::int64_t n) { return {"heads", n, AxisRole::heads}; }
[[nodiscard]] inline Axis width_axis(std::int64_t n) { return {"ffn", n, AxisRole::width}; }
[[nodiscard]] std::int64_t elements_of(const Axes& axes);

using Node = int;  // of a Sketch's values
inline constexpr Node no_node = -1;

// Functions of one tensor that sketches have beside activations.
enum class PointFunction : std::uint8_t { sigmoid, tanh, softplus, relu, silu };

class Sketch {
 public:
  Sketch() = default;
  virtual ~Sketch() = default;
  Sketch(const Sketch&) = delete;
  Sketch& operator=(const Sketch&) = delete;

  // A module that is open while this lives.
  class [[nodiscard]] In {
   public:
    In(Sketch& sketch, const std::string& module);
    ~In();
    In(const In&) = delete;
    In& operator=(const In&) = delete;

   private:
    Sketch& sketch_;
    bool opened_;
  };

  // Of the stack.
  [[nodiscard]] virtual Axis batch() const = 0;
  [[nodiscard]] virtual Axis sequence() const = 0;
  [[nodiscard]] virtual Axis keys() const = 0;
  [[nodiscard]] const Axes& axes_of(Node node) const;
  [[nodiscard]] std::int64_t tokens() const { return sequence().size; }

  // nn.Linear over the last `in` axes: weight [out, in]. With `conv1d` GPT-2's, [in, out].
  struct Linear {
    std::string name;
    bool bias = false;
    int in = 1;
    bool conv1d = false;
    // A 1 x 1 convolution of so many groups, weight [out, in / groups, 1]: the first of `in` axes
    // and of out's are the groups (SqueezeBERT).
    bool grouped = false;
    bool bias_apart = false;  // added behind the product, of rows that do not lie together
    // The same as a product for each group, weight [out, in / groups] (DeepSeek-V4).
    bool by_groups = false;
    bool bare = false;  // a parameter of the open module, without a module of its own
    bool fp32 = false;  // its weight is cast first
  };
  virtual Node linear(const Linear& module, Node x, const Axes& out) = 0;
  // x / rms(x) through a matrix without bias; PyTorch divides what the matrix gives.
  virtual Node product_normed(const Norm& norm, const Linear& matrix, Node x, const Axes& over,
                              const Axes& out) = 0;
  // One that is there and does not run.
  virtual void stored(const Linear& module, Node x, const Axes& out) = 0;
  // a . b, summed over every axis that the result lacks.
  virtual Node product(const std::string& name, Node a, Node b, const Axes& result) = 0;
  // Of broadcast values; the first has all axes.
  virtual Node add(Node a, Node b) = 0;
  virtual Node multiply(Node a, Node b) = 0;
  virtual Node apply(PointFunction function, Node x) = 0;
  virtual Node activate(const std::string& activation, Node x) = 0;
  virtual Node scaled(Node x) = 0;  // times a number, or plus a constant
  virtual Node softmax(Node x, const Axis& over, bool fp32) = 0;
  virtual Node dropout(double rate, Node x) = 0;
  virtual Node norm(const Norm& norm, Node x, const Axes& over) = 0;
  virtual Node cast(Node x, DType dtype) = 0;
  virtual Node mean(Node x, const Axis& over) = 0;
  // Of x weighted, summed over one axis, in bf16; PyTorch multiplies and adds up.
  virtual Node weighted_sum(const std::string& name, Node x, Node weights, const Axis& over) = 0;
  // x / sum(x) over rows and over columns in turn, so many times of either, columns first and last.
  virtual Node balanced(Node x, const Axis& rows, const Axis& columns, std::int64_t times) = 0;
  // Which are the largest of an axis: numbers, without a gradient.
  virtual void choose(Node x, const Axis& among, std::int64_t count) = 0;
  // The last `dims` of x's last axis, a head's, turned by tables [batch if so, tokens, dims] that
  // are made for it; `tokens` is an axis of x.
  virtual Node turn_last(Node x, std::int64_t dims, const Axis& tokens, bool by_example) = 0;
  // What runs without being taken back: its parameters are not trained.
  virtual void forward_alone(bool alone) = 0;

  virtual Node parameter(const std::string& name, const Axes& axes) = 0;
  virtual void idle_parameter(const std::string& name, const Axes& axes) = 0;  // does not run
  // nn.Embedding's weight.
  virtual Node table(const std::string& name, const Axes& axes) = 0;
  // nn.Embedding: rows of `table` that numbers pick, made in the step.
  virtual Node look_up(const std::string& name, const Axes& table, const Axes& numbers,
                       const Axes& result) = 0;
  // What all layers of the stack read, and the first makes. `make` is called outside of modules.
  virtual Node handed(const std::string& name, const Axes& axes, bool is_first,
                      const std::function<Node(Sketch&)>& make) = 0;
  virtual Node buffer(const std::string& name, const Axes& axes) = 0;  // of the checkpoint
  // Made of no parameter; under a name that layers share it is one.
  virtual Node constant(DType dtype, const Axes& axes, const std::string& shared = {}) = 0;

  // Seen for each token, as a product of every token's heads with them reads it: PyTorch copies
  // what it repeats for several examples.
  virtual Node repeated(Node x, const Axis& tokens) = 0;
  virtual Node view(Node x, const Axes& axes) = 0;    // as many elements, or a part of them
  virtual Node copy(Node x, const Axes& axes) = 0;    // the same, in memory of its own
  virtual Node expand(Node x, const Axes& axes) = 0;  // seen for each of the axes that it lacks
  virtual std::vector<Node> parts(Node x, const std::vector<Axes>& axes) = 0;
  virtual Node join(const std::vector<Node>& parts, const Axes& axes) = 0;
  // Of as many of `from` as go into one of `to` the largest; `axes` is the result's. Keeps what it
  // reads and which they are.
  virtual Node largest(const std::string& name, Node x, const Axis& from, const Axis& to,
                       const Axes& axes) = 0;
  // Of `value`, whose second axis are places of pictures, numbers between the places that `grid`
  // names, of which `coordinates` is the last axis. Keeps both.
  virtual Node sample(const std::string& name, Node value, Node grid, const Axis& coordinates,
                      const Axes& axes) = 0;
  // Picked by numbers: they are kept.
  virtual Node pick(Node x, const Axes& numbers, const Axes& axes) = 0;
  // Values of the sequence as those of keys: a view.
  [[nodiscard]] Node seen(Node x);
  // `lies` where there are several examples: heads of one lie together as they are.
  [[nodiscard]] Node lies_by_example(Node x) { return batch().size > 1 ? lies(x) : x; }

  // softmax(q k^T) v as one kernel. q [.., queries, heads.., dim], k, v [.., keys, heads.., dim]:
  // the last axis is the head's, the axis `queries` of q and `keys` of k are what is attended over,
  // heads of k may lack the group of q's.
  struct Attend {
    Axis queries, keys;
    double fraction = 1;  // of all pairs that a kernel that knows the mask computes
    double dropout = 0;
    bool fp32_softmax = true;
    bool plain_only = false;  // the class multiplies it out
    Node bias = no_node;      // [.., heads, queries, keys]
    Node sinks = no_node;     // one more score of each head
  };
  virtual Node attend(const std::string& name, Node q, Node k, Node v, const Attend& rules) = 0;
  virtual void turn(const Rotary& rotary, Node& q, Node& k) = 0;
  // nn.Conv1d of each channel alone, `taps` around each token, without a bias.
  virtual Node convolve_each(const std::string& name, Node x, std::int64_t taps) = 0;
  // nn.Conv2d of each head alone along the sequence, of x [batch, sequence, heads, ..]: one filter
  // for all of a head's channels, weight [heads, 1, taps, 1], without a bias.
  virtual Node convolve_heads(const std::string& name, Node x, std::int64_t taps) = 0;
  // Depthwise and causal over the sequence, `taps` long; x [batch, sequence, channels].
  virtual Node convolve_causal(const std::string& name, Node x, std::int64_t taps, bool bias) = 0;

  // Steps of inference. Rows of tokens, [.., sequence, ..], are kept for tokens to come, of a
  // window or of all (0). Answers what attention reads of them, whose tokens are `kept`: x itself
  // or, behind a context, all that there are. Counts as the cache of a token.
  virtual Node keep(const std::string& name, Node x, std::int64_t window) = 0;
  [[nodiscard]] virtual Axis kept(std::int64_t window) = 0;
  // The same of entries, one of so many tokens each: [.., entries, ..] of a prompt, or one more
  // behind a context, [.., sequence, ..].
  virtual Node keep_entries(const std::string& name, Node x, std::int64_t tokens) = 0;
  // Does a step keep anything, and does it read what steps before it kept?
  [[nodiscard]] virtual bool is_inference() const = 0;
  [[nodiscard]] virtual bool is_decoding() const = 0;
  // What a prompt leaves of each sequence, whatever its length, and one token more of it: a kernel
  // that reads the state and writes it, with so many operations for each of its numbers.
  virtual void leave(const std::string& name, Node state) = 0;
  struct Step {
    std::string name;
    std::vector<Node> operands;
    Axes result;
    Axes state;
    double operations = 1;
    DType dtype = DType::bf16;  // of the state
  };
  virtual Node step(const Step& step) = 0;
  // The same over a sequence, in one kernel that keeps its operands and its result; in steps of
  // inference the state it leaves, and behind a context a step. Operations count in no total.
  virtual Node recur(const Step& step) = 0;
  // A matrix of keys by values for each head, and a vector of keys and a number, read by queries: a
  // kernel in chunks of tokens, which keeps what it reads head after head and two numbers of each
  // token and head in fp32.
  struct Memory {
    std::string name;
    Node queries, keys, values;  // [batch, sequence, heads, ..]
    std::vector<Node> gates;     // [batch, sequence, heads]
    Axis heads;
    std::int64_t chunk = 0;
  };
  virtual Node remember(const Memory& memory) = 0;
  // x, [batch, sequence, ..], one token later; in steps of inference the last token is kept.
  virtual Node before(const std::string& name, Node x) = 0;

  // What eager PyTorch alone does or keeps.
  virtual Node lies(Node x) = 0;  // a copy, as a product wants it
  virtual void keeps(Node x) = 0;
  // A product whose result nobody reads.
  virtual void unread_product(Node a, Node b, const Axes& result) = 0;
  // Operations of products that are no op of a step.
  virtual void unread_operations(std::int64_t operations) = 0;
  virtual void keeps_numbers(DType dtype, const Axes& axes) = 0;
  virtual void cache(std::int64_t bytes_per_token, std::int64_t state_bytes) = 0;
  [[nodiscard]] virtual bool is_fused() const = 0;  // does attention run as a kernel?
  virtual void refuse_if(bool has, const std::string& what) const = 0;
  virtual void note(const std::string& text) = 0;

 protected:
  virtual void open(const std::string& module) = 0;
  virtual void close() = 0;
  Node next_node(Axes axes);  // one more value

 private:
  std::deque<Axes> axes_;  // what is told of one stays where it is
};

}  // namespace shardsim::models
