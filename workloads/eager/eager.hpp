// What eager PyTorch does with a model, without doing it: every operator that a module's forward
// calls, on tensors that have a shape and a storage but no data.
//
// From one walk over the modules come, of one source and so never contradicting each other:
//   parameters   names and shapes as the module tree has them, ties, buffers of the checkpoint
//   FLOPs        2 per multiply-add of matmuls, attention and convolutions, as torch's
//                FlopCounterMode counts them, by ATen operator, of forward and of backward
//   saved        the distinct storages that autograd keeps between forward and backward
//
//   Eager e({.place = {"config.json", ""}});
//   const Value x = e.input("x", DType::bf16, {1, 4096, 4096});
//   Scope at(e, "q_proj");
//   e.linear(x, e.parameter("weight", {1024, 4096}));   // "mm", 2 * 4096 * 4096 * 1024 FLOPs;
//                                                       // x is saved: q_proj.weight learns from it
//
// What an operator saves is torch 2.15's derivatives.yaml: a product its factors where the other
// needs a gradient, silu and gelu their input, tanh, sigmoid and softmax their result, a norm its
// input and statistics. A storage counts once, where it is first saved. Parameters, buffers and
// inputs are stored anyway and never count.
//
// Full attention is counted, s x s, whatever mask or window; backward of the fused kernel computes
// five products for the forward pass' two (FlashAttention recomputes the scores).
//
// Errors: InputError at `place` when a size cannot be counted in 63 bits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"

namespace shardsim::models {

using Shape = std::vector<std::int64_t>;

// A tensor: a view of a storage. Views of one storage have its number in common.
struct Value {
  int storage = -1;
  Shape shape;
  DType dtype = DType::bf16;
  bool grad = false;  // autograd follows it

  [[nodiscard]] bool exists() const { return storage >= 0; }
  [[nodiscard]] std::int64_t last() const { return shape.back(); }
};

struct Parameter {
  std::string name;
  Shape shape;
  DType dtype = DType::bf16;
  // Of a stack of experts: how many of how many a token visits. 0 of 0: all of it, always.
  std::int64_t visited = 0;
  std::int64_t experts = 0;
  int embeddings = 0;  // modules of embedding that look it up
  int layer = -1;      // in Eager::layers
};

struct Buffer {  // of the checkpoint, not trained
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
};

// What autograd keeps of one storage.
struct Saved {
  std::string module;  // that saved it first
  DType dtype = DType::bf16;
  std::int64_t bytes = 0;
  int layer = -1;
};

using OperatorFlops = std::map<std::string, std::int64_t, std::less<>>;  // by ATen operator

// A layer of a stack, in order of running.
struct Layer {
  std::string prefix;  // "model.layers.3"
  std::string kind;
  std::int64_t forward_flops = 0;
  std::int64_t backward_flops = 0;
  std::int64_t cache_bytes_per_token = 0;  // keys and values
  std::int64_t state_bytes = 0;            // per sequence, whatever its length
};

enum class AttentionKernel : std::uint8_t {
  fused,  // as F.scaled_dot_product_attention picks: flash, or efficient where flash cannot
  plain,  // matmul, softmax, matmul
};

struct EagerOptions {
  Place place{};
  DType dtype = DType::bf16;  // of parameters and activations
  AttentionKernel attention = AttentionKernel::fused;
};

// How an elementwise function of one tensor is taken back.
enum class Keeps : std::uint8_t { nothing, input, result };

class Eager {
 public:
  explicit Eager(EagerOptions options) : options_(std::move(options)) {}

  [[nodiscard]] const EagerOptions& options() const { return options_; }
  [[nodiscard]] DType dtype() const { return options_.dtype; }

  // Modules. Names are relative to the module that is open.
  void open(std::string_view module);
  void close();
  [[nodiscard]] const std::string& path() const { return path_; }
  // `prefix` is a full name. With a number the layer is told apart by it alone, and "{}" in names
  // within stands for it.
  void open_layer(std::string_view prefix, std::string_view kind, int number = -1);
  void reopen_layer(std::string_view prefix);  // one that was closed goes on
  void close_layer();
  // Modules that are there but do not run: their parameters count, nothing else does.
  void mute(bool muted) { muted_ = muted; }
  // What runs, but of whose result no loss is taken: nothing of it is taken back.
  void run_forward_alone(bool alone) { forward_alone_ = alone; }

  // Leaves. A parameter that is named twice is one.
  Value parameter(std::string_view name, const Shape& shape);
  Value parameter(std::string_view name, const Shape& shape, DType dtype);
  Value embedding_table(std::string_view name, const Shape& shape);
  // Of `visited` of so many experts, whose matrices are in it together or one by one.
  Value expert_parameter(std::string_view name, const Shape& shape, std::int64_t visited,
                         std::int64_t experts);
  void buffer(std::string_view name, const Shape& shape, DType dtype);
  // Another module of embedding looks up the parameter of this full name.
  void look_up_again(const std::string& full_name);
  // `second`, a full name, is another name of the parameter `first`.
  void tie(const std::string& first, const std::string& second);
  // As tie; the parameter goes by the second name: its module stands before the other's.
  void tie_renamed(const std::string& first, const std::string& second);
  // The module `second` is the module `first` again: the parameters that are there are tied.
  void tie_module(const std::string& first, const std::string& second);
  [[nodiscard]] Value named(const std::string& full_name) const;  // a parameter that exists
  Value input(DType dtype, const Shape& shape);     // a batch's tensor: no gradient, never counted
  Value constant(DType dtype, const Shape& shape);  // computed without gradient: counts once saved

  // Views and copies.
  static Value view(const Value& x, const Shape& shape);
  Value copy(const Value& x);  // contiguous(), cat, index: of the same type
  Value copy(const Value& x, const Shape& shape);
  Value cast(const Value& x, DType dtype);  // itself where it has the type

  // Elementwise, of broadcast shapes; the result has the wider type.
  Value add(const Value& a, const Value& b);
  Value multiply(const Value& a, const Value& b);
  Value divide(const Value& a, const Value& b);  // keeps both where b learns
  Value apply(const Value& x, Keeps keeps);      // one result of x's shape
  Value scaled(const Value& x) { return apply(x, Keeps::nothing); }
  Value reduce_last(const Value& x);           // mean or sum of the last dimension, kept as 1
  Value dropout(const Value& x, double rate);  // keeps one bool per element
  // An index that gathers or scatters rows: it is kept, the tensor is not.
  Value index(const Value& x, const Value& positions, const Shape& shape);
  Value embedding(const Value& ids, const Value& table);

  // Matmuls: weight [out, in], `[in, out]` for conv1d (GPT-2's).
  Value linear(const Value& x, const Value& weight, const Value& bias = {});
  Value conv1d_linear(const Value& x, const Value& weight, const Value& bias);
  Value bmm(const Value& a, const Value& b, std::int64_t m, std::int64_t k, std::int64_t n,
            const Shape& shape, std::string_view op = "bmm");
  Value grouped_matmul(const Value& x, const Value& weight, const Value& offsets, std::int64_t out);
  // x [batch, in, places...], weight [out, in / groups, kernel...], result [batch, out, places...].
  // FlopCounterMode counts the weight's gradient as if there were no groups.
  Value convolution(const Value& x, const Value& weight, const Shape& places);

  // Kernels whose result alone is told from outside.
  Value make(const Shape& shape, DType dtype, bool grad);
  void save(const Value& x);
  void count(std::string_view op, std::int64_t forward, std::string_view backward_op,
             std::int64_t backward);
  // Operations of a scan, by formula; no ATen operator, and so in no total.
  void count_scan(std::int64_t forward) { scan_flops_ += muted_ ? 0 : forward; }
  void cache(std::int64_t bytes_per_token, std::int64_t state_bytes);

  // Products of sizes: InputError where they leave 63 bits.
  [[nodiscard]] std::int64_t times(std::int64_t a, std::int64_t b) const;
  [[nodiscard]] std::int64_t elements(const Shape& shape) const;
  void add_up(std::int64_t& sum, std::int64_t more) const;

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Buffer>& buffers() const { return buffers_; }
  [[nodiscard]] const std::vector<std::vector<std::string>>& ties() const { return ties_; }
  [[nodiscard]] const OperatorFlops& forward_flops() const { return forward_; }
  [[nodiscard]] const OperatorFlops& backward_flops() const { return backward_; }
  [[nodiscard]] std::int64_t scan_flops() const { return scan_flops_; }
  [[nodiscard]] const std::vector<Saved>& saved() const { return saved_; }
  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }

 private:
  struct Storage {
    std::int64_t bytes = 0;
    DType dtype = DType::bf16;
    bool counts = true;  // false: a parameter, a buffer, an input
    bool saved = false;
  };

  [[nodiscard]] std::string full_name(std::string_view name) const;
  [[nodiscard]] std::string numbered(std::string_view name) const;  // "{}" replaced
  Value add_parameter(std::string_view name, const Shape& shape, DType dtype);
  void count_matmul(std::string_view op, std::string_view backward_op, std::int64_t flops,
                    const Value& a, const Value& b);

  EagerOptions options_;
  std::string path_;
  std::vector<std::size_t> ends_;  // of path_, before each open module
  bool muted_ = false;
  bool forward_alone_ = false;
  int layer_ = -1;
  int number_ = -1;  // of the layer, for names within
  std::vector<Storage> storages_;
  std::vector<Parameter> parameters_;
  std::vector<int> parameter_storages_;
  std::map<std::string, std::size_t, std::less<>> numbers_;  // of parameters, by name and alias
  std::vector<Buffer> buffers_;
  std::vector<std::vector<std::string>> ties_;
  OperatorFlops forward_, backward_;
  std::int64_t scan_flops_ = 0;
  std::vector<Saved> saved_;
  std::vector<Layer> layers_;
};

// A module that is open while this lives; an empty name opens none.
class Scope {
 public:
  Scope(Eager& eager, std::string_view module) : eager_(eager), opened_(!module.empty()) {
    if (opened_) eager_.open(module);
  }
  ~Scope() {
    if (opened_) eager_.close();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Eager& eager_;
  bool opened_;
};

}  // namespace shardsim::models
