#include "strategies/partition/partition.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/index.hpp"
#include "strategies/layout/context_axes.hpp"
#include "strategies/layout/factors.hpp"
#include "strategies/partition/kernel_bytes.hpp"
#include "strategies/partition/kernel_product.hpp"
#include "strategies/partition/parameter_values.hpp"
#include "strategies/partition/ring_attention.hpp"
#include "strategies/partition/row_exchange.hpp"
#include "strategies/partition/saved_inputs.hpp"
#include "strategies/partition/shared_beside.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "strategies/partition/state_exchange.hpp"
#include "strategies/partition/statistics.hpp"
#include "workloads/step/outputs.hpp"

namespace shardsim {
namespace {

class Partitioner {
 public:
  Partitioner(const Workload& workload, const Mesh& mesh, const Layout& layout,
              const TensorShardings& shardings, const PartialSums& sums)
      : workload_(workload),
        shardings_(shardings),
        builder_(workload, mesh),
        partial_sums_(sums),
        layout_(layout),
        ring_(ring_axes(layout)),
        heads_(head_axes(layout)),
        home_(workload.tensors.size(), no_value),
        trains_(has_backward(workload)),
        saved_inputs_(builder_, shardings, home_, layout.saves_sharded_inputs,
                      inputs_beside(workload, layout)),
        states_(builder_, layout) {
    if (trains_) kept_for_backward_ = kept_for_backward(workload);
  }

  SpmdStep run() {
    const std::size_t count = workload_.blocks.size();
    builder_.step.blocks.resize(count);
    add_parameters(builder_, layout_);
    add_inputs();
    for (std::size_t b = 0; b < count; ++b) forward(b);
    add_outputs(builder_.step.blocks.back().forward);
    for (std::size_t b = count; trains_ && b-- > 0;) backward(b);
    builder_.step.loss = home_of(workload_.loss);
    return std::move(builder_.step);
  }

 private:
  // The value of a parameter that `op` reads; that it has to be there is a need of the pass.
  ValueId readable(const Op& op, TensorId parameter, BlockPass& pass) const {
    const ParameterValues& values = builder_.step.parameters.at(parameter);
    if (kind_of(op) == OpKind::lookup && values.looked_up != values.computed) {
      return values.looked_up;
    }
    const bool known = std::count(pass.reads.begin(), pass.reads.end(), parameter) > 0;
    if (values.computed != values.stored && !known) pass.reads.push_back(parameter);
    return values.computed;
  }

  void add_inputs() {
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& tensor = workload_.tensors[t];
      if (!is_given(tensor.role)) continue;
      const auto id = static_cast<TensorId>(t);
      const auto enters = layout_.entering.find(id);
      const bool as_read = enters == layout_.entering.end();
      home_[t] = builder_.add_value(id, as_read ? shardings_.of(id) : enters->second, tensor.dtype,
                                    tensor.role == TensorRole::buffer  ? BufferCategory::parameters
                                    : tensor.role == TensorRole::cache ? BufferCategory::cache
                                                                       : BufferCategory::inputs);
      builder_.value(home_[t]).persistent = true;
    }
  }

  // Inputs of the block that lie otherwise than they are read, before anything reads them.
  void bring_inputs(std::size_t b, BlockPass& pass) {
    for (const auto& input : layout_.entering) {
      const TensorId id = input.first;
      if (builder_.tensor(id).block != static_cast<int>(b)) continue;
      const ValueId entered = home_[at(id)];
      const InputEnters reason{entered, shardings_.of(id)};
      const Sharding first = with_axes_that_stay_first(input.second, shardings_.of(id));
      if (first != input.second) {
        home_[at(id)] = builder_.permute(entered, first, Stream::activations, reason, pass.body);
      }
      home_[at(id)] =
          builder_.bring(home_[at(id)], shardings_.of(id), Stream::activations, reason, pass.body);
    }
  }

  void forward(std::size_t b) {
    const Block& block = workload_.blocks[b];
    BlockProgram& program = builder_.step.blocks[b];
    forget_brought();
    repeats_ = repeats_forward(block);
    for (const TensorId carry : block.carries_in) program.carries_in.push_back(home_of(carry));
    bring_inputs(b, program.forward);
    for (const Op& op : block.forward) visit(op, program.forward);
    for (const TensorId carry : block.carries_out) program.carries_out.push_back(home_of(carry));
  }

  // They are there when the step ends, and a program has their place from its start.
  void add_outputs(BlockPass& pass) {
    for (const TensorId id : outputs_of(workload_)) {
      const auto leaving = layout_.leaving.find(id);
      const Sharding& leaves =
          leaving != layout_.leaving.end() ? leaving->second : shardings_.of(id);
      const ValueId output =
          builder_.bring(home_of(id), leaves, Stream::activations, OutputLeaves{id}, pass.body);
      builder_.step.outputs.push_back(output);
      ValueId memory = output;
      while (builder_.value(memory).storage != no_value) memory = builder_.value(memory).storage;
      if (builder_.value(memory).persistent) continue;
      Value place = builder_.value(memory);
      place.name += " (output)";
      place.persistent = true;
      builder_.step.values.push_back(std::move(place));
      builder_.value(memory).storage = static_cast<ValueId>(builder_.step.values.size()) - 1;
    }
  }

  void backward(std::size_t b) {
    const Block& block = workload_.blocks[b];
    BlockProgram& program = builder_.step.blocks[b];
    forget_brought();
    for (const TensorId carry : block.carries_out) {
      const TensorId entering = entering_gradient(workload_, block, carry);
      program.gradients_of_carries_out.push_back(entering == no_tensor ? no_value
                                                                       : home_of(entering));
    }
    for (const Op& op : block.backward) {
      saved_inputs_.gather(op, block, program.backward);
      visit(op, program.backward);
    }
    for (const TensorId carry : block.carries_in) {
      // A gradient that only passes through enters and leaves as the same tensor.
      TensorId leaving = last_gradient(workload_, block, carry);
      if (leaving == no_tensor) leaving = entering_gradient(workload_, block, carry);
      program.gradients_of_carries_in.push_back(leaving == no_tensor ? no_value : home_of(leaving));
    }
  }

  // The backward pass reads the same inputs: token numbers are not gathered twice.
  void forget_brought() {
    std::erase_if(brought_, [&](const auto& brought) {
      return builder_.tensor(brought.first).role != TensorRole::input;
    });
  }

  // The value that stands for a tensor, under the sharding that propagation gave it.
  ValueId home_of(TensorId tensor) {
    ValueId& home = home_[at(tensor)];
    if (home == no_value) {
      home = builder_.add_value(tensor, shardings_.of(tensor), builder_.tensor(tensor).dtype,
                                category_of(tensor));
    }
    return home;
  }

  [[nodiscard]] BufferCategory category_of(TensorId tensor) const {
    const Tensor& t = workload_.tensors[at(tensor)];
    if (t.role == TensorRole::parameter_gradient) return BufferCategory::gradients;
    if (t.role == TensorRole::activation && t.primal == no_tensor &&
        kept_for_backward_.contains(tensor)) {
      return BufferCategory::activations;
    }
    return BufferCategory::temporaries;
  }

  void visit(const Op& op, BlockPass& pass) {
    if (kind_of(op) == OpKind::exchange) {
      visit_exchange(op, pass);
      return;
    }
    const FactorAxes factors = partial_sums_.factors_of(op);
    if (splits_context(op) && !ring_.empty()) {
      return visit_ring(op, factors, pass);
    }
    if (op.view) return visit_view(op, factors, pass);
    Item item;
    item.name = op.name;
    item.recompute = op.recompute;
    item.drops = op.drops;
    for (const Operand& operand : op.operands)
      item.operands.push_back(read(op, operand, factors, pass));
    for (const Statistic& statistic : op.statistics)
      reduce_statistic(builder_, op, statistic, factors, item, pass);
    std::vector<ValueId> made;
    for (const Operand& result : op.results) made.push_back(make(result, factors));
    for (const InPlace& place : op.in_place) {
      builder_.value(made[at(place.result)]).storage = item.operands[at(place.operand)];
    }
    item.results = made;
    item.kernel = kernel_of(op, factors, item);
    pass.body.push_back(std::move(item));
    const bool exchanges_heads =
        op.function == Function::attention && splits_context(op) && !heads_.empty();
    const bool merges = std::any_of(op.statistics.begin(), op.statistics.end(),
                                    [](const Statistic& one) { return one.is_gathered; });
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      const TensorId id = op.results[r].tensor;
      if (exchanges_heads && kept_for_backward_.contains(id)) before_exchange_[id] = made[r];
      if ((exchanges_heads || merges) && r > 0) {  // statistics, which backward alone reads
        home_[at(id)] = made[r];
      } else {
        reshard_result(op, op.results[r], made[r], pass);
      }
    }
  }

  // Results that are parts of an operand: no work, no memory of their own.
  void visit_view(const Op& op, const FactorAxes& factors, BlockPass& pass) {
    const ValueId whole = read(op, op.operands.front(), factors, pass);
    for (const Operand& result : op.results) {
      const ValueId part = make(result, factors);
      builder_.value(part).storage = whole;
      reshard_result(op, result, part, pass);
    }
  }

  void visit_exchange(const Op& op, BlockPass& pass) {
    std::vector<ValueId> operands, results;
    for (const Operand& operand : op.operands) operands.push_back(home_of(operand.tensor));
    for (const Operand& result : op.results) {
      results.push_back(builder_.add_value(result.tensor, shardings_.of(result.tensor),
                                           builder_.tensor(result.tensor).dtype,
                                           category_of(result.tensor)));
      home_[at(result.tensor)] = results.back();
    }
    exchange_rows(builder_, *layout_.experts, op, operands, results, pass);
  }

  [[nodiscard]] bool splits_context(const Op& op) const { return partial_sums_.splits_context(op); }

  // What lies over the sequence's axes, seen over the parts that a ring and heads have of them.
  ValueId in_parts(ValueId value) {
    const Sharding cut = with_sequence_cut(builder_.value(value).sharding, layout_);
    return cut == builder_.value(value).sharding ? value : builder_.add_view(value, cut);
  }

  // Keys and values stay in parts that go round.
  void visit_ring(const Op& op, const FactorAxes& factors, BlockPass& pass) {
    FactorAxes parts = factors;
    const LabelId tokens = key_tokens(workload_, op);
    parts[tokens] = ring_;
    const auto has_keys = [&](const Operand& operand) {
      return std::find(operand.dims.begin(), operand.dims.end(), Dim{tokens}) != operand.dims.end();
    };
    RingAttention ring{op, ring_, layout_.context, {}, {}, {}, {}};
    Item item;
    for (const Operand& operand : op.operands) {
      const auto merged = merged_.find(operand.tensor);
      const ValueId value =
          merged != merged_.end() ? merged->second : read(op, operand, parts, pass);
      (has_keys(operand) ? ring.keys : ring.reads).push_back(value);
      item.operands.push_back(value);
    }
    for (const Operand& result : op.results) {
      ring.results.push_back(
          builder_.add_value(result.tensor, sharding_of(result.dims, parts, workload_.labels),
                             builder_.tensor(result.tensor).dtype, category_of(result.tensor)));
    }
    item.results = ring.results;
    ring.whole = kernel_of(op, factors, item);
    const std::vector<ValueId> left = add_ring_attention(builder_, ring, pass);
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      const TensorId id = op.results[r].tensor;
      if (left[r] != ring.results[r]) merged_[id] = ring.results[r];
      if (!heads_.empty() && op.function == Function::attention) {
        if (kept_for_backward_.contains(id)) before_exchange_[id] = left[r];
        if (r > 0) {  // statistics, which backward alone reads
          home_[at(id)] = left[r];
          continue;
        }
      }
      const Sharding target = with_sequence_cut(shardings_.of(id), layout_);
      const ValueId back = builder_.bring(left[r], target, Stream::activations,
                                          OpMakes{&op, left[r], target}, pass.body);
      home_[at(id)] =
          target == shardings_.of(id) ? back : builder_.add_view(back, shardings_.of(id));
    }
  }

  ValueId read(const Op& op, const Operand& operand, const FactorAxes& factors, BlockPass& pass) {
    const TensorId tensor = operand.tensor;
    const bool parameter = builder_.tensor(tensor).role == TensorRole::parameter;
    const ValueId home = parameter ? readable(op, tensor, pass) : home_of(tensor);
    Sharding needed = sharding_of(operand.dims, factors, workload_.labels);
    needed.partial = builder_.value(home).sharding.partial;
    if (builder_.value(home).sharding == needed) return home;
    const auto before = before_exchange_.find(tensor);
    if (before != before_exchange_.end() && builder_.value(before->second).sharding == needed) {
      return before->second;
    }
    for (const ValueId known : brought_[tensor]) {
      if (builder_.value(known).sharding == needed && !partial_sums_.gathers_again(op))
        return known;
    }
    const ValueId brought = builder_.bring(in_parts(home), needed, Stream::activations,
                                           OpReads{&op, home, needed}, pass.body);
    brought_[tensor].push_back(brought);
    const bool keeps_gathered = layout_.context.keeps_gathered && (op.recompute || !repeats_);
    const bool keeps_brought = keeps_gathered || !heads_.empty();
    if (keeps_brought && splits_context(op) && op.function == Function::attention &&
        kept_for_backward_.contains(tensor)) {
      builder_.value(brought).category = BufferCategory::activations;
      builder_.value(home).category = BufferCategory::temporaries;
      home_[at(tensor)] = brought;
    }
    return brought;
  }

  // The result as the op leaves it.
  ValueId make(const Operand& result, const FactorAxes& factors) {
    Sharding sharding = sharding_of(result.dims, factors, workload_.labels);
    sharding.partial = partial_sums_.made(result.tensor);
    return builder_.add_value(result.tensor, sharding, builder_.tensor(result.tensor).dtype,
                              category_of(result.tensor));
  }

  // From how the op made it to the sharding that propagation gave it.
  void reshard_result(const Op& op, const Operand& result, ValueId made, BlockPass& pass) {
    const TensorId id = result.tensor;
    const Tensor& tensor = builder_.tensor(id);
    if (tensor.role == TensorRole::parameter_gradient && !partial_sums_.is_summand(id)) {
      pass.writes.push_back({tensor.primal, made, pass.body.size()});
      return;
    }
    const auto& further = workload_.further_losses;
    if (id == workload_.loss || std::count(further.begin(), further.end(), id) >
                                    0) {  // for the eye of one device: nobody waits for its sum
      home_[at(id)] = made;
      return;
    }
    const AxisList kept = partial_sums_.kept(id);
    // Gradients made apart are reduced to where they are kept, then added up.
    const auto apart = tensor.role == TensorRole::parameter_gradient
                           ? shardings_.summed.find(tensor.primal)
                           : shardings_.summed.end();
    const bool reduces = apart != shardings_.summed.end();
    AxisList left = partial_sums_.added_to(id);
    left.insert(left.end(), kept.begin(), kept.end());
    Sharding target = without(reduces ? apart->second : shardings_.of(id), left);
    target.partial = kept;
    if (reduces) {
      const GradientsReduced reason{builder_.tensor(tensor.primal).name, {tensor.primal}};
      home_[at(id)] = builder_.bring(made, target, Stream::reductions, reason, pass.body);
    } else {
      const OpMakes reason{&op, made, target};
      const ValueId brought = builder_.bring(made, target, Stream::activations, reason, pass.body);
      home_[at(id)] = states_.send(op, id, brought, category_of(id), pass);
      if (kept_for_backward_.contains(id)) saved_inputs_.keep(id, made);
    }
  }

  Kernel kernel_of(const Op& op, const FactorAxes& factors, const Item& item) {
    const Bytes bytes = moved_bytes(workload_, builder_.step.values, op, factors, item);
    const DType dtype =
        op.multiplied_in.value_or(builder_.tensor(op.operands.front().tensor).dtype);
    return {std::string(name_of(op.function)),
            class_of(op),
            dtype,
            Flops(local_operations(workload_, op, factors)),
            bytes,
            product_of(workload_, op, factors)};
  }

  const Workload& workload_;
  const TensorShardings& shardings_;
  SpmdBuilder builder_;
  const PartialSums& partial_sums_;
  const Layout& layout_;
  AxisList ring_;   // of attention over a sequence that is split
  AxisList heads_;  // or where these split its heads in its place
  std::vector<ValueId> home_;
  bool trains_, repeats_ = false;  // backward of this block computes again, which gathers again
  std::map<TensorId, std::vector<ValueId>> brought_;  // other shardings at hand
  std::map<TensorId, ValueId> merged_;                // of a ring, as its backward pass reads it
  std::map<TensorId, ValueId> before_exchange_;       // of attention by heads, as backward reads it
  std::set<TensorId> kept_for_backward_;
  SavedInputs saved_inputs_;
  StateExchange states_;
};

}  // namespace

SpmdStep partition(const Workload& workload, const Mesh& mesh, const Layout& layout,
                   const TensorShardings& shardings, const PartialSums& sums) {
  return Partitioner(workload, mesh, layout, shardings, sums).run();
}

}  // namespace shardsim
