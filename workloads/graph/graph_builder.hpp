// Writes a forward pass down: labels, tensors and ops, block by block.
//
//   GraphBuilder g("two-layer-net", DType::bf16);
//   const Dim batch{g.label("batch", 8, LabelRole::batch)};
//   const Dim hidden{g.label("hidden", 64, LabelRole::hidden)};
//   const Dim ffn{g.label("ffn", 256, LabelRole::width)};
//   g.begin_block("net");
//   const TensorId x = g.input("x", DType::bf16, {batch, hidden});
//   const TensorId w = g.parameter("up.weight", {ffn, hidden});
//   const TensorId y = g.linear("up", x, w, {batch, ffn});        // sums over hidden
//   const TensorId z = g.elementwise(Function::silu, "act", {y});
//
// An activation is named after the op that makes it; further results append ".rstd" and the like.
// Which functions exist, what they cost and how they are differentiated: functions.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

class GraphBuilder {
 public:
  using Dims = std::vector<Dim>;

  GraphBuilder(std::string model, DType compute_dtype, WeightTypes weights = {});

  LabelId label(std::string_view name, std::int64_t size, LabelRole role = LabelRole::none);
  void set_parts(LabelId label, double needed, double held);  // Label::needed, Label::held

  // Blocks follow each other.
  void begin_block(std::string name, std::string runs_module = {});
  // A kind of layer: `numbers` are those of its layers, ascending; "{}" in names stands for them.
  // Kinds that are begun one after the other are one stack: their layers follow each other by their
  // numbers, no two of which are alike.
  //
  //   g.begin_layers("model.layers.{}", {0, 1, 3, 4});   // windowed
  //   g.begin_layers("model.layers.{}", {2, 5});         // full: comes after 1 and after 4
  void begin_layers(std::string name, std::vector<std::int32_t> numbers);
  void begin_layers(std::string name, std::int64_t count);  // 0 to count - 1
  // The next kind begins another stack (a decoder behind an encoder).
  void end_stack();
  // The value that enters the current block: what the block before carries out, under the name that
  // it has here. All kinds of a stack carry the same.
  TensorId carry_in(std::string name);
  void carry_out(TensorId value);

  // Ops that are made while it lives are of this module, or this part of one; of nested ones the
  // inner says so.
  class [[nodiscard]] Within {
   public:
    Within(GraphBuilder& builder, OpModule module);
    Within(GraphBuilder& builder, OpPart part);
    ~Within();
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    GraphBuilder& builder_;
    OpModule module_;  // before
    OpPart part_;
  };

  // What is built while it is idle is stored, not run: of it there are parameters alone.
  void set_idle(bool idle);

  // The same name again is the same parameter (tied embeddings); in another kind of layer it is
  // another.
  TensorId parameter(const std::string& name, Dims dims);
  // Without gradient and optimizer state; else a parameter as any.
  TensorId untrained_parameter(const std::string& name, Dims dims);
  // The same of those that the current block has whose names begin so.
  void leave_untrained(const std::string& prefix);
  TensorId buffer(std::string name, DType dtype, Dims dims);
  TensorId cache(std::string name, DType dtype, Dims dims);
  // The cache with rows of the tokens at hand behind those that it has; of several tensors side by
  // side. Rows have `tokens` where the cache has `places`: each device keeps its own of a sequence
  // that is split, or all have the rows and one keeps them.
  TensorId append(const std::string& name, TensorId cache, const std::vector<TensorId>& rows,
                  LabelId tokens, LabelId places);
  // What a mixer keeps of a sequence: it writes it in place, behind other tokens reads it first.
  struct State {
    TensorId cache = no_tensor;
    bool is_read = false;
  };
  TensorId input(std::string name, DType dtype, Dims dims);
  TensorId constant(std::string name, DType dtype, Dims dims);

  // result = x . weight (+ bias), summed over every label that the result lacks; the bias is added
  // once, to the complete sum. In the compute dtype, unless `dtype` says otherwise.
  TensorId linear(const std::string& name, TensorId x, TensorId weight, Dims result,
                  TensorId bias = no_tensor, std::optional<DType> dtype = {});
  // x . other, whose label `from` is seen as `to`, which is whole: rows of all devices. With
  // `weights` of what the result lacks, by which the kernel multiplies before it sums.
  TensorId product_with_all(const std::string& name, TensorId x, TensorId other, Dims result,
                            LabelId from, LabelId to, TensorId weights = no_tensor);
  // The result has the dims and dtype of the first operand.
  TensorId elementwise(Function function, const std::string& name,
                       const std::vector<TensorId>& operands);
  TensorId cast(const std::string& name, TensorId x, DType dtype);
  // Keeps which numbers were left, a byte each.
  TensorId dropout(const std::string& name, TensorId x);
  // Mean over every label that the result lacks.
  TensorId mean(const std::string& name, TensorId x, Dims result);
  // Rotary embedding: x turned by angles that are tables over (sequence, head_dim).
  TensorId rope(const std::string& name, TensorId x, TensorId cos, TensorId sin, LabelId head_dim);
  // Parts of a fused tensor along `part`, without a copy.
  std::vector<TensorId> split(const std::vector<std::string>& names, TensorId fused, LabelId part);
  // Parts of unlike sizes: each has labels of its own, which with that of the fused tensor are
  // `whole`. concatenate puts such parts together, which is a copy.
  //
  //   x[b, s, head_dim 80] -> turned[b, s, rotary 32], rest[b, s, rest 48]
  struct Part {
    std::string name;
    Dims dims;
  };
  std::vector<TensorId> slices(const std::string& name, TensorId fused,
                               const std::vector<Part>& parts, std::vector<LabelId> whole);
  TensorId concatenate(const std::string& name, const std::vector<TensorId>& parts, Dims result,
                       std::vector<LabelId> whole);
  // Keeps 1/sqrt(mean square + eps) in fp32, and the mean for layer_norm.
  TensorId rms_norm(const std::string& name, TensorId x, TensorId weight, LabelId over);
  TensorId layer_norm(const std::string& name, TensorId x, TensorId weight, TensorId bias,
                      LabelId over);
  // Function::rms_norm or layer_norm over several labels; `affine`: weight and bias, or fewer.
  TensorId norm(Function function, const std::string& name, TensorId x,
                const std::vector<TensorId>& affine, const std::vector<LabelId>& over);
  // x seen for each of the labels that it lacks, without a copy.
  TensorId expand(const std::string& name, TensorId x, Dims result);
  // softmax or normalize over one label, which is whole.
  TensorId over_label(Function function, const std::string& name, TensorId x, LabelId over);
  // The largest of `from`, as many as `choice` has, and their numbers (i64).
  std::pair<TensorId, TensorId> top_k(const std::string& name, TensorId x, LabelId from,
                                      LabelId choice);
  // Rows of tokens for the experts that they visit, and their (weighted) sum for each token.
  TensorId dispatch(const std::string& name, TensorId x, TensorId numbers, Dims rows,
                    LabelId choice);
  TensorId combine(const std::string& name, TensorId rows, TensorId numbers, TensorId weights,
                   Dims result, LabelId choice);
  // Rows that lie by token, [batch, sequence, choice, ...], as they lie by expert, [experts, slots,
  // ...], or the other way round: what devices that hold different experts send each other.
  // `numbers`: of the experts, where how many rows go to whom is told before.
  struct Rows {
    std::string name;  // of the result
    TensorId rows = no_tensor;
    Dims result;
  };
  std::vector<TensorId> exchange(const std::string& name, const std::vector<Rows>& rows,
                                 TensorId numbers = no_tensor);
  // linear where every row of x has the matrix of one of `experts`, a label of weight and bias; of
  // rows that lie by expert a label of x, too.
  TensorId grouped_linear(const std::string& name, TensorId x, TensorId weight, Dims result,
                          LabelId experts, const Routing& routing, TensorId bias = no_tensor);
  struct AttentionParts {
    double fraction = 1;   // of all pairs of queries and keys that is computed: 0.5 if causal
    double documents = 1;  // in each sequence
    // One more score for each head, a parameter (sinks), or a bias of all scores, of labels of
    // queries, keys and heads.
    TensorId added = no_tensor;
    std::optional<LabelId> value_dim{};  // of values and result, where it is not head_dim
    bool merges = false;  // devices may have parts of keys and values; results are put together
    bool drops = false;   // probabilities, at random
  };
  // FlashAttention: keeps the logsumexp of each query in fp32. `key_labels` renames the labels that
  // keys and values have under another name: {sequence, key_sequence}.
  TensorId attention(const std::string& name, TensorId q, TensorId k, TensorId v, LabelId head_dim,
                     const std::vector<std::pair<LabelId, LabelId>>& key_labels,
                     const AttentionParts& parts);
  // Of images [batch, channels, rows, columns] (image_ops.cpp). A tensor under dims of more labels
  // than its own: windows around places, groups of channels.
  struct Seen {
    TensorId tensor = no_tensor;
    Dims dims;
  };
  // nn.Conv2d: x seen as [batch, in*kernel_rows*kernel_columns, places...], a window for each place
  // of the result; weight [out, in, kernel_rows, kernel_columns].
  TensorId image_convolution(const std::string& name, const Seen& x, TensorId weight, Dims result,
                             TensorId bias = no_tensor);
  // x seen as [batch, groups*channels of one, rows, columns]: mean and deviation of each group.
  TensorId group_norm(const std::string& name, const Seen& x, TensorId weight, TensorId bias,
                      LabelId batch, LabelId groups);
  // Of weight, bias, running mean and variance, over the examples that a device has: what it keeps
  // of them, two numbers a channel, is made again.
  TensorId batch_norm(const std::string& name, TensorId x,
                      const std::vector<TensorId>& parameters_and_means);
  // The largest of each window, whose labels are whole; keeps which.
  TensorId largest(const std::string& name, const Seen& x, Dims result,
                   std::vector<LabelId> window);
  // The mean of each window.
  TensorId mean_of_windows(const std::string& name, const Seen& x, Dims result);
  // x under other labels, which with its own are whole: a copy.
  TensorId rearranged(const std::string& name, TensorId x, Dims result, std::vector<LabelId> whole);
  // A copy that lies by itself, of a view.
  TensorId copy(const std::string& name, TensorId x);
  // A mixer's (scan_ops.cpp). Each channel of x with its own taps: weight [channels, 1, taps]; silu
  // in the same kernel, if asked for. The sequence is whole. Of the last tokens `state` is kept.
  TensorId convolution(const std::string& name, TensorId x, TensorId weight, TensorId bias,
                       LabelId sequence, bool silu, const State& state);
  // -exp(log) * softplus(x + bias), in fp32.
  TensorId decay(const std::string& name, TensorId x, TensorId log, TensorId bias);
  // RMS norm over some labels, of x * silu(z) or times it.
  TensorId gated_norm(const std::string& name, TensorId x, TensorId weight, TensorId z,
                      const std::vector<LabelId>& over);
  // A recurrence along the sequence, which is whole.
  struct Scan {
    std::vector<TensorId> operands;  // in the order of the table of functions
    Dims result;
    struct Kept {  // a further result
      std::string name;
      DType dtype;
      Dims dims;
    };
    std::vector<Kept> kept;
    std::vector<LabelId> whole;
    std::vector<Operations> work;
    State state{};
  };
  TensorId scan(Function function, const std::string& name, Scan parts);
  // Says that the backward pass makes an activation again whatever it keeps; answers it.
  TensorId remade(TensorId id);

  // Rows of the table, cast to the compute dtype where they are looked up in another.
  TensorId embedding(const std::string& name, TensorId ids, TensorId weight, Dims result);
  // Mean cross entropy over `classes`, in the logits' type.
  TensorId cross_entropy(TensorId logits, TensorId targets, LabelId classes,
                         const std::string& name = "loss");
  // Beside the one that `finish` is told.
  void further_loss(TensorId loss) { workload_.further_losses.push_back(loss); }

  // Says where an activation stands on the residual stream; answers it.
  TensorId marked(TensorId id, StreamMark mark);
  void leave_gradient_apart(TensorId id);  // Tensor::gradient_apart

  void note(std::string text);
  [[nodiscard]] DType compute_dtype() const { return compute_dtype_; }
  [[nodiscard]] std::int64_t label_size(LabelId label) const;
  [[nodiscard]] const Dims& dims_of(TensorId id) const { return at(id).dims; }
  [[nodiscard]] const std::string& name_of(TensorId id) const { return at(id).name; }
  [[nodiscard]] Workload finish(TensorId loss);

 private:
  void keep(Op& op, const State& state);
  TensorId tensor(Tensor tensor);
  TensorId activation(std::string name, DType dtype, Dims dims);
  // Of operands under their own dims; no_tensor is none.
  [[nodiscard]] Op op_of(Function function, std::string name,
                         const std::vector<TensorId>& operands) const;
  TensorId emit(Op op, DType dtype, Dims dims);  // makes its first result, named after it
  void append(Op op);
  [[nodiscard]] const Tensor& at(TensorId id) const;
  [[nodiscard]] Operand whole_of(TensorId id) const;  // the operand under its own dims
  [[nodiscard]] Block& block();
  // Dims of `id` without the labels of `over`, each label for itself.
  [[nodiscard]] std::vector<LabelId> labels_without(TensorId id,
                                                    const std::vector<LabelId>& over) const;

  Workload workload_;
  std::size_t stack_ = 0;  // the first block of the current stack
  DType compute_dtype_;
  WeightTypes weights_;
  OpModule module_ = OpModule::none;  // Within
  OpPart part_ = OpPart::none;
  bool idle_ = false;
};

}  // namespace shardsim
