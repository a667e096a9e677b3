#include "strategies/partition/state_exchange.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Of chunked_scan (x, step, b, c, ...).
constexpr std::size_t scanned = 0, steps = 1, group_inputs = 2;

std::vector<const Op*> makers(const Workload& workload) {
  std::vector<const Op*> maker(workload.tensors.size());
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      for (const Operand& result : op.results) maker[at(result.tensor)] = &op;
    }
  }
  return maker;
}

bool is_read_by(const Workload& workload, TensorId id, Function function) {
  return std::any_of(workload.blocks.begin(), workload.blocks.end(), [&](const Block& block) {
    return std::any_of(block.forward.begin(), block.forward.end(), [&](const Op& op) {
      return op.function == function &&
             std::any_of(op.operands.begin(), op.operands.end(),
                         [&](const Operand& operand) { return operand.tensor == id; });
    });
  });
}

}  // namespace

Workload with_heads_exchanged(Workload workload, std::int64_t devices) {
  std::set<LabelId> chunks;
  for (Block& block : workload.blocks) {
    for (std::vector<Op>* ops : {&block.forward, &block.backward}) {
      for (Op& op : *ops) {
        if (kind_of(op) != OpKind::chunked_scan && op.function != Function::convolution &&
            op.function != Function::convolution_backward) {
          continue;
        }
        std::erase_if(op.whole, [&](LabelId label) {
          return workload.labels[at(label)].role == LabelRole::sequence;
        });
        const bool has_states = op.function == Function::chunked_scan && op.results.size() > 1;
        if (has_states) chunks.insert(op.results[1].dims[1].front());
      }
    }
  }
  for (const LabelId label : chunks) {
    Label& states = workload.labels[at(label)];
    states.size = ceil_div(states.size, devices);
  }
  return workload;
}

StateExchange::StateExchange(SpmdBuilder& builder, const Layout& layout)
    : builder_(builder),
      axes_(layout.sequence_axes),
      model_devices_(Mesh::size_of(layout.model_axes)) {
  if (layout.context.states != StateMethod::heads || Mesh::size_of(axes_) == 1) return;
  const Workload& workload = builder.workload();
  const std::vector<const Op*> maker = makers(workload);
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      if (op.function == Function::chunked_scan) find_sent(workload, maker, op);
    }
  }
}

StateExchange::Piece StateExchange::piece(TensorId id, std::int64_t copies) const {
  const std::vector<std::int64_t> shape = builder_.shape(id);
  return {builder_.tensor(id).name,
          std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()),
          copies};
}

void StateExchange::find_sent(const Workload& workload, const std::vector<const Op*>& maker,
                              const Op& scan) {
  const Op& of_convolved = *maker[at(scan.operands[scanned].tensor)];
  const TensorId convolved =
      maker[at(of_convolved.operands.front().tensor)]->operands.front().tensor;
  const Op& of_projected = *maker[at(scan.operands[steps].tensor)];
  const TensorId y = scan.results.front().tensor;
  const bool gates_in_norm = is_read_by(workload, y, Function::gated_rms_norm);
  std::int64_t groups = 1;
  for (const LabelId label : factors(scan)) {
    const Label& one = workload.labels[at(label)];
    if (one.role == LabelRole::mixer_groups) groups = one.size;
  }
  const std::int64_t own = std::max<std::int64_t>(groups / model_devices_, 1);
  const std::int64_t copies = std::max<std::int64_t>(Mesh::size_of(axes_) / own, 1);
  for (const Operand& part : of_projected.results) {
    Sent sent{{piece(part.tensor)}, 1, true};
    const bool is_gate = part.tensor != convolved && part.tensor != scan.operands[steps].tensor;
    if (is_gate && gates_in_norm && !has_backward(workload)) sent.times = 2;
    if (part.tensor == convolved) {
      sent.pieces.clear();
      for (const Operand& each : of_convolved.results) {
        const bool is_of_group =
            std::any_of(scan.operands.begin() + group_inputs, scan.operands.end(),
                        [&](const Operand& operand) { return operand.tensor == each.tensor; });
        sent.pieces.push_back(piece(each.tensor, is_of_group ? copies : 1));
      }
    }
    sent_[part.tensor] = std::move(sent);
  }
  sent_[y] = {{piece(y)}, 1, false};
}

void StateExchange::copy(const Op& op, const std::vector<ValueId>& from,
                         const std::vector<ValueId>& to, std::int64_t passes,
                         BlockPass& pass) const {
  Item item = builder_.slice(op.name + " order", from, to, Stream::compute);
  item.recompute = op.recompute;
  item.kernel.bytes = passes * item.kernel.bytes;
  pass.body.push_back(std::move(item));
}

ValueId StateExchange::exchange(const Op& op, const Sent& sent, bool enters, ValueId value,
                                BlockPass& pass) const {
  const Value made = builder_.value(value);
  std::int64_t elements = 0;
  for (const Piece& one : sent.pieces) elements += one.elements;
  const auto add = [&](const Piece& one) {
    const ValueId added =
        builder_.add_value(made.tensor, made.sharding, made.dtype, BufferCategory::communication);
    builder_.value(added).bytes = made.bytes * one.elements / elements * one.copies;
    builder_.value(added).name = one.name;
    return added;
  };
  std::vector<ValueId> leave, arrive;
  for (const Piece& one : sent.pieces) leave.push_back(add(one));
  // Parts for each device one after the other; what comes back is put in the attention's order.
  copy(op, {value}, leave, 1, pass);
  for (std::size_t i = 0; i < sent.pieces.size(); ++i) {
    arrive.push_back(add(sent.pieces[i]));
    const Value& one = builder_.value(arrive.back());
    Item item;
    item.kind = TaskKind::collective;
    item.stream = Stream::activations;
    item.name = op.name;
    item.recompute = op.recompute;
    item.collective.kind = CollectiveKind::all_to_all;
    item.collective.axes = axes_;
    item.collective.dtype = made.dtype;
    item.collective.payload = one.bytes;
    item.collective.parts = {{one.name, one.bytes}};
    item.reason = HeadsExchanged{&op, enters};
    item.operands = {leave[i]};
    item.results = {arrive.back()};
    pass.body.push_back(std::move(item));
  }
  const ValueId joined =
      builder_.add_value(made.tensor, made.sharding, made.dtype, BufferCategory::temporaries);
  // What enters is joined and then put in the sequence's order.
  copy(op, arrive, {joined}, enters ? 2 : 1, pass);
  return joined;
}

ValueId StateExchange::send(const Op& op, TensorId id, ValueId made, BufferCategory arrives_as,
                            BlockPass& pass) const {
  const Tensor& tensor = builder_.tensor(id);
  const bool is_gradient = tensor.role == TensorRole::activation_gradient;
  const auto found = sent_.find(is_gradient ? tensor.primal : id);
  if (found == sent_.end()) return made;
  ValueId arrived = made;
  for (int i = 0; i < found->second.times; ++i) {
    const bool enters = (found->second.enters != is_gradient) == (i == 0);
    arrived = exchange(op, found->second, enters, arrived, pass);
  }
  builder_.value(made).category = BufferCategory::temporaries;
  builder_.value(arrived).category = arrives_as;
  return arrived;
}

}  // namespace shardsim
