// Activations that lie on the host between a layer's forward pass and its backward pass: what the
// step says (Tensor::on_host) and what the runtime does.
//
//   forward    each is copied once it is there, beside the layers that follow; the second layer
//              behind waits for the copies, so that no more than two layers' wait for the link
//   backward   a layer's are brought back while the layer before it computes; those of the first
//              that runs at once
//
// As TransformerEngine's offloading does it (transformer_engine/pytorch/cpu_offload.py,
// bulk_offload_group and bulk_reload_group, whose groups are layers).
#include <algorithm>
#include <cassert>
#include <set>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

// Of the backward pass, what its ops read of the forward pass; of ops of a module alone, or all.
std::set<TensorId> read_by(const Block& block, const std::vector<std::string>& modules) {
  std::set<TensorId> read;
  for (const Op& op : block.backward) {
    const bool is_meant = modules.empty() ||
                          std::any_of(modules.begin(), modules.end(),
                                      [&](const std::string& module) { return is_of(op, module); });
    if (!is_meant) continue;
    for (const Operand& operand : op.operands) read.insert(operand.tensor);
  }
  return read;
}

}  // namespace

// Streams are there where something uses them.
void ProgramEmitter::open_host_streams() {
  const ActivationsOnHost& rule = input_.runtime.activations_on_host;
  const auto& blocks = input_.workload.blocks;
  bool uses = false;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    std::vector<ValueId>& values = read_by_backward_.emplace_back();
    if (!blocks[b].is_layer) continue;
    const std::set<TensorId> of_modules = read_by(blocks[b], rule.modules);
    std::set<ValueId> carried;  // the next block's
    for (ValueId value : input_.step.blocks[b].carries_out) {
      while (value != no_value && buffers_.value(value).storage != no_value) {
        value = buffers_.value(value).storage;
      }
      carried.insert(value);
    }
    for (const Item& item : input_.step.blocks[b].backward.body) {
      for (ValueId value : item.operands) {
        const TensorId id = buffers_.value(value).tensor;
        const Tensor& tensor = input_.workload.tensors[at(id)];
        while (buffers_.value(value).storage != no_value) value = buffers_.value(value).storage;
        const Value& stored = buffers_.value(value);
        const bool is_activation = tensor.role == TensorRole::activation &&
                                   tensor.primal == no_tensor && !stored.persistent;
        const bool is_meant =
            tensor.on_host || rule.layers > 0 || (!rule.modules.empty() && of_modules.contains(id));
        const bool is_known = std::find(values.begin(), values.end(), value) != values.end();
        if (is_activation && is_meant && !is_known && !carried.contains(value)) {
          values.push_back(value);
        }
      }
    }
    uses |= !values.empty();
  }
  has_host_streams_ = uses;
  const bool on_host = works_on_host(input_.runtime) && has_backward(input_.workload);
  if (on_host) program_.streams.emplace_back("host");
  if (!uses && !on_host && !input_.runtime.parameters_on_host) return;
  program_.streams.insert(program_.streams.end(), {"copies to the host", "copies from the host"});
  assert(program_.streams.size() <= most_streams);
}

std::vector<ValueId> ProgramEmitter::on_host(const BlockInstance& instance) const {
  std::vector<ValueId> values = read_by_backward_[at(instance.block)];
  const ActivationsOnHost& rule = input_.runtime.activations_on_host;
  const bool all = rule.layers == 0 || layer_of(instance) < rule.layers;
  std::erase_if(values, [&](ValueId value) {
    const TensorId tensor = buffers_.value(value).tensor;
    return !all && !input_.workload.tensors[at(tensor)].on_host;
  });
  return values;
}

TaskId ProgramEmitter::emit_host_copy(TaskKind kind, BufferIndex buffer, std::int32_t name) {
  Task task;
  task.kind = kind;
  task.phase = phase_;
  task.stream = host_copies(kind);
  task.work = tables_.kernel(
      {"copy", KernelClass::memory, DType::u8, Flops(0), buffers_[buffer].buffer.bytes});
  task.name = name;
  task.layer = layer_;
  task.microbatch = microbatch_;
  const TaskId id = add_task(task, after_);
  buffers_.use(buffer, id, task.stream);
  return id;
}

void ProgramEmitter::await_copies() {
  const std::size_t number = segment_copies_.size();
  if (number > 1) awaited_ = std::max(awaited_, segment_copies_[number - 2]);
}

void ProgramEmitter::send_to_host(const Segment& segment) {
  if (!has_host_streams_ || !has_backward(input_.workload)) return;
  TaskId last = no_task;
  const std::int64_t i = segment.instance.ordinal;
  for (const ValueId value : on_host(segment.instance)) {
    BufferIndex& entry = buffers_.entry(value, i);
    if (entry == no_buffer) continue;
    after_ = {buffers_[entry].written_by};
    last = emit_host_copy(TaskKind::to_host, entry, tables_.name_of_value(value));
    copies_[{microbatch_, value, layer_}] = last;
    entry = no_buffer;
  }
  segment_copies_.push_back(last);
}

void ProgramEmitter::bring_from_host(const Segment& segment, TaskId window) {
  const std::int64_t i = segment.instance.ordinal;
  set_place(segment.instance, phase_);
  for (const ValueId value : on_host(segment.instance)) {
    const auto copy = copies_.find({microbatch_, value, layer_});
    if (copy == copies_.end()) continue;
    const BufferIndex buffer = buffers_.open(value, i, static_cast<TaskId>(program_.tasks.size()));
    after_ = {copy->second, window};
    buffers_[buffer].written_by =
        emit_host_copy(TaskKind::from_host, buffer, tables_.name_of_value(value));
    buffers_.entry(value, i) = buffer;
    copies_.erase(copy);
  }
}

// Those of the segment that comes next, once the one before has computed.
void ProgramEmitter::bring_ahead(const std::vector<Segment>& segments, std::size_t k) {
  if (!has_host_streams_) return;
  bring_from_host(segments[k], last_kernel_);
  if (k + 1 < segments.size()) bring_from_host(segments[k + 1], last_kernel_);
  set_place(segments[k].instance, phase_);
}

}  // namespace shardsim
