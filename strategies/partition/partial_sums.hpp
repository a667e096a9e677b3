// Which values may stay partial sums: those whose only reader is a linear op all of whose operands
// are partial over the same axes. Summing first and reducing once is what Megatron does with the
// input gradients of q, k and v: one all-reduce, not three. Where the layout says that each product
// reduces its own (InputGradients::apart), no gradient of an activation stays one.
//
// What is of no example (a bias of distances, a weight that is normed before it is read: made of
// parameters alone) has gradients that each device leaves as its own examples made them, within
// blocks and from one to the next: they are reduced over what splits the batch when they have
// become the parameter's.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "sharding/sharding.hpp"
#include "strategies/layout/assign.hpp"
#include "strategies/layout/factors.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// The gradient of `primal` that the backward pass of `block` ends with, or no_tensor.
[[nodiscard]] TensorId last_gradient(const Workload& workload, const Block& block, TensorId primal);
// The gradient of `carry` that enters the backward pass: ops of it read it without any of them
// making it, or the block hands it on as it is.
[[nodiscard]] TensorId entering_gradient(const Workload& workload, const Block& block,
                                         TensorId carry);

class PartialSums {
 public:
  PartialSums(const Workload& workload, const TensorShardings& shardings, const Layout& layout);

  // choose_factors, without the axes that a linear op passes on as partial sums; of attention over
  // heads that are exchanged for the sequence by heads.
  [[nodiscard]] FactorAxes factors_of(const Op& op) const;
  // Axes over which the op that makes `tensor` gives partial sums; empty when no op makes it.
  [[nodiscard]] AxisList made(TensorId tensor) const;
  // Of a gradient: is its only reader an op of the backward pass, which adds it to others?
  [[nodiscard]] bool is_summand(TensorId tensor) const;
  // Of the axes it is made partial over, those that are left for that reader to carry on.
  [[nodiscard]] AxisList kept(TensorId tensor) const;
  // Of a whole gradient, the axes over which those that it is added to stay sums.
  [[nodiscard]] AxisList added_to(TensorId gradient) const;
  // Has the op gradients of tokens gathered for it that others have had gathered before it?
  // (torchtitan, at the boundaries of routed and of shared experts.)
  [[nodiscard]] bool gathers_again(const Op& op) const {
    return sums_tokens(op) && op.function == Function::combine_backward;
  }
  // Is it an attention whose sequence is split? One token behind a context is whole on all devices.
  [[nodiscard]] bool splits_context(const Op& op) const;

 private:
  // Of a linear op: the axes over which all its activations and gradients are partial; of others
  // none.
  [[nodiscard]] AxisList passed_on(const Op& op) const;
  [[nodiscard]] bool adds_gradients(const Op& op) const;
  [[nodiscard]] bool adds_rows(const Op& op) const;
  [[nodiscard]] FactorAxes factors_of(const Op& op, const AxisList& passed) const;
  void leave_whole(const Operand& result, FactorAxes& factors) const;
  void split_heads(const Op& op, FactorAxes& factors) const;

  [[nodiscard]] bool is_left_apart(TensorId gradient) const;
  [[nodiscard]] bool is_of_no_example(TensorId gradient) const;
  [[nodiscard]] AxisList batch_axes() const;
  // Are all gradients that the op reads, one at least, of no example? What it makes is linear in
  // them, as all of a backward pass is.
  [[nodiscard]] bool goes_back_without_examples(const Op& op) const;
  [[nodiscard]] AxisList passed_without_examples(const Op& op) const;

  // Of a backward op of what makes latents and reads them: are its results sums where the gradient
  // that it reads is one (InputGradients::late)?
  [[nodiscard]] bool is_late(const Op& op) const;
  // Of what takes rows of experts to tokens, and back: are sums of rows carried on to tokens, which
  // are fewer (InputGradients::late)? Of its operands the one that the sums come in by.
  [[nodiscard]] bool sums_tokens(const Op& op) const;
  [[nodiscard]] AxisList passed_to_tokens(const Op& op) const;
  [[nodiscard]] bool is_activation_gradient(const Operand& operand) const;
  // Is it read as a sum by all that read it, if by any?
  [[nodiscard]] bool may_stay(TensorId tensor) const;

  struct Use {
    std::vector<const Op*> ops;
    int readers = 0;  // a carry counts as one
  };

  const Workload& workload_;
  const TensorShardings& shardings_;
  const Layout& layout_;
  AxisList ring_;   // of attention over a sequence that is split (layout/context_axes.hpp)
  AxisList heads_;  // that split its heads in its place
  bool sums_rows_;  // of experts that lie whole on every device, as tokens
  std::vector<const Op*> maker_;
  std::vector<Use> use_;
  std::set<TensorId> leaving_;  // last gradients of what blocks carry in
};

}  // namespace shardsim
