// What passes between blocks, and what a rank does between computations: messages, and stages that
// are gathered, given back and reduced as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {
namespace {

// Behind the streams of a step: activations there and back, then gradients.
std::uint8_t message_stream(bool sends, bool is_gradient) {
  return static_cast<std::uint8_t>(stream_count + (is_gradient ? 2 : 0) + (sends ? 0 : 1));
}

}  // namespace

// What has come into the stage.
std::vector<BufferIndex> ProgramEmitter::take(const Inlet& inlet) {
  const auto found = inlets_.find(inlet);
  if (found == inlets_.end()) return {};
  std::vector<BufferIndex> carried = std::move(found->second);
  inlets_.erase(found);
  return carried;
}

void ProgramEmitter::enter(const std::vector<ValueId>& values,
                           const std::vector<BufferIndex>& carried, std::int64_t i) {
  for (std::size_t k = 0; k < values.size() && k < carried.size(); ++k) {
    if (values[k] != no_value) buffers_.entry(values[k], i) = carried[k];
  }
}

std::vector<BufferIndex> ProgramEmitter::leave(const std::vector<ValueId>& values, std::int64_t i) {
  std::vector<BufferIndex> carried;
  for (const ValueId v : values) {
    carried.push_back(v == no_value ? no_buffer : buffers_.buffer_of(v, i));
  }
  return carried;
}

// The values on both sides of the border that the message of a call crosses: as the stage that
// sends them has them, and as the one that receives them.
Border ProgramEmitter::border_of(const Call& call) const {
  const bool is_gradient = call.action.kind != ActionKind::forward;
  const bool sends = call.kind == Call::Kind::send;
  // The stage before the border, in the order of the model.
  const int before = call.action.stage - (sends == is_gradient ? 1 : 0);
  const BlockInstance last = instances_of(static_cast<std::int16_t>(before)).back();
  const BlockInstance first = instances_of(static_cast<std::int16_t>(before + 1)).front();
  const BlockProgram& above = program_of(last);
  const BlockProgram& below = program_of(first);
  const std::vector<ValueId>& out = is_gradient ? below.gradients_of_carries_in : above.carries_out;
  const std::vector<ValueId>& in = is_gradient ? above.gradients_of_carries_out : below.carries_in;
  Border border{.is_gradient = is_gradient,
                .from = is_gradient ? first : last,
                .to = is_gradient ? last : first};
  const auto stages =
      std::pair{static_cast<std::int16_t>(before), static_cast<std::int16_t>(before + 1)};
  border.receiver = is_gradient ? stages.first : stages.second;
  const std::int16_t peer = sends ? border.receiver : is_gradient ? stages.second : stages.first;
  border.peer = input_.schedule.shape.rank_of_stage[at(peer)];
  for (std::size_t k = 0; k < std::max(out.size(), in.size()); ++k) {
    const bool crosses = k < out.size() && k < in.size() && out[k] != no_value && in[k] != no_value;
    border.values.emplace_back(crosses ? out[k] : no_value, crosses ? in[k] : no_value);
  }
  return border;
}

Task ProgramEmitter::message(const Call& call, const Border& border, ValueId value) {
  const bool sends = call.kind == Call::Kind::send;
  const Value& v = buffers_.value(value);
  Transfer transfer;
  transfer.peer_program = border.peer;
  transfer.sends = sends;
  transfer.dtype = v.dtype;
  transfer.payload = v.bytes;
  transfer.channel = border.is_gradient ? 1 : 0;
  transfer.reason =
      fmt::format("{} {} stage {}", v.name, sends ? "for" : "of",
                  sends ? border.receiver : border.receiver + (border.is_gradient ? 1 : -1));
  Task task;
  task.kind = TaskKind::transfer;
  task.phase = border.is_gradient ? Phase::backward : Phase::forward;
  task.stream = message_stream(sends, border.is_gradient);
  task.work = tables_.transfer(transfer);
  task.name = tables_.name(v.name);
  task.layer = layer_of(border.from);
  task.microbatch = call.action.microbatch;
  return task;
}

// The kernel behind waits for what was sent at that place of the calls, which is held until then.
void ProgramEmitter::await_sends(std::size_t place) {
  const auto found = sends_.find(place);
  if (found == sends_.end()) return;
  for (const auto& [send, sent] : found->second) {
    awaited_sends_.push_back(send);
    buffers_.use(sent, last_kernel_, static_cast<std::size_t>(Stream::compute));
  }
  sends_.erase(found);
}

TaskId ProgramEmitter::issued_before(bool is_gradient) const {
  const TaskId of_pair = pair_ends_[is_gradient ? 1 : 0];
  return of_pair == no_task ? last_kernel_ : of_pair;
}

void ProgramEmitter::send(const Call& call, std::size_t place) {
  const Border border = border_of(call);
  const std::vector<BufferIndex> carried =
      take({border.receiver, call.action.microbatch, border.is_gradient});
  for (std::size_t k = 0; k < carried.size(); ++k) {
    const ValueId value = border.values[k].first;
    if (value == no_value) continue;
    const Task task = message(call, border, value);
    after_ = {issued_before(border.is_gradient), buffers_[carried[k]].written_by};
    const TaskId id = add_task(task, after_);
    buffers_.use(carried[k], id, task.stream);
    sends_[place].emplace_back(id, carried[k]);
  }
  if (input_.sends == Sends::next_kernel) await_sends(place);
  if (input_.sends != Sends::next_send) return;
  const std::size_t before = std::exchange(last_send_[border.is_gradient ? 1 : 0], place);
  await_sends(before);
}

void ProgramEmitter::receive(const Call& call) {
  const Border border = border_of(call);
  std::vector<BufferIndex>& carried =
      inlets_[{border.receiver, call.action.microbatch, border.is_gradient}];
  for (const auto& [sent, received] : border.values) {
    if (sent == no_value) {
      carried.push_back(no_buffer);
      continue;
    }
    // The names are the sender's, who has made it; sizes are equal.
    assert(buffers_.value(sent).bytes == buffers_.value(received).bytes);
    const Task task = message(call, border, sent);
    after_ = {issued_before(border.is_gradient)};
    const TaskId id = add_task(task, after_);
    const BufferIndex buffer = buffers_.open(received, border.to.ordinal, id);
    buffers_[buffer].written_by = id;
    buffers_.use(buffer, id, task.stream);
    if (input_.receives == Receives::exchanged) awaited_sends_.push_back(id);
    carried.push_back(buffer);
  }
}

// The root, then layer by layer.
void ProgramEmitter::gather(std::int16_t stage) {
  for (const BlockInstance& instance : root_first(stage)) {
    const ResolvedPass& pass = tables_.block(instance.block).forward;
    for (const Of unit : {Of::block, Of::within}) {
      const bool stays = !(unit == Of::block ? pass.kept : pass.kept_within).empty();
      if (!stays || is_gathered(pass, unit, instance.ordinal)) continue;
      set_place(instance, Phase::forward);
      emit_gathers(pass, unit, instance.ordinal, last_kernel_);
      copy_out(pass, unit, instance.ordinal);
    }
  }
}

void ProgramEmitter::give_back(std::int16_t stage) {
  for (const BlockInstance& instance : instances_of(stage)) {
    block_ = instance.block;
    give_back(tables_.block(instance.block).backward, instance.ordinal);
  }
}

// What the last stage has made of all microbatches, side by side for the caller
// (torch.distributed.pipelining, schedules.py, _merge_outputs).
void ProgramEmitter::join_outputs(std::int16_t stage) {
  if (!input_.runtime.returns_outputs || at(stage) + 1 != input_.stages.size()) return;
  const std::vector<BufferIndex> parts = buffers_.kept_to_end();
  if (parts.empty()) return;
  const std::vector<Value>& values = input_.step.values;
  const auto output =
      std::find_if(values.begin(), values.end(), [](const Value& value) { return value.to_end; });
  Buffer joined = buffers_[parts.front()].buffer;
  joined.name = tables_.name("outputs");
  joined.bytes = static_cast<std::int64_t>(parts.size()) * joined.bytes;
  const BufferIndex whole = buffers_.open_of_program(joined);
  set_phase(Phase::optimizer);
  buffers_[whole].buffer.allocated_by =
      emit_kernel({"copy", KernelClass::memory, output->dtype, Flops(0), 2 * joined.bytes},
                  "outputs joined", parts, {whole});
}

// Layer by layer, then the root: each is given back and reduced.
void ProgramEmitter::reduce(std::int16_t stage) {
  std::vector<BlockInstance> instances = root_first(stage);
  std::stable_partition(instances.begin(), instances.end(),
                        [&](const BlockInstance& instance) { return layer_of(instance) >= 0; });
  issued_after_ = last_kernel_;
  for (const BlockInstance& instance : instances) {
    const ResolvedPass& pass = tables_.block(instance.block).backward;
    set_place(instance, Phase::backward);
    give_back(pass, instance.ordinal);
    emit_items(pass.last_reductions, instance.ordinal);
    last_reduced_ = static_cast<TaskId>(program_.tasks.size()) - 1;
  }
  issued_after_ = no_task;
  held_gradients_.give_back(last_reduced_);  // all are waited for
}

std::vector<BlockInstance> ProgramEmitter::root_first(std::int16_t stage) const {
  std::vector<BlockInstance> instances = instances_of(stage);
  std::stable_partition(instances.begin(), instances.end(),
                        [&](const BlockInstance& instance) { return layer_of(instance) < 0; });
  return instances;
}

void ProgramEmitter::set_place(const BlockInstance& instance, Phase phase) {
  phase_ = phase;
  block_ = instance.block;
  layer_ = layer_of(instance);
}

}  // namespace shardsim
