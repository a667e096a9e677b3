// Units of parameters in one program: who asks for them and when, what is there already, and what
// is given back.
#include <algorithm>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

bool ProgramEmitter::reads_parameter(const Item& item) const {
  return std::any_of(item.operands.begin(), item.operands.end(), [&](ValueId operand) {
    const TensorId tensor = buffers_.value(operand).tensor;
    return input_.workload.tensors[at(tensor)].role == TensorRole::parameter;
  });
}

TaskId ProgramEmitter::window(std::size_t others) const {
  const auto segment = static_cast<std::int64_t>(segment_ends_.size() + others);
  const std::int64_t opens = segment - 1 - input_.runtime.gathers.ahead;
  return opens >= 0 ? segment_ends_[at(opens)] : no_task;
}

// A stage that begins with a layer gathers its root before that, as a module's own hook runs before
// those of what it holds.
void ProgramEmitter::gather_root(std::int16_t stage, Phase phase) {
  if (!has_stages_) return;
  for (const BlockInstance& instance : instances_of(stage)) {
    if (input_.workload.blocks[at(instance.block)].is_layer) continue;
    const ResolvedBlock& block = tables_.block(instance.block);
    const ResolvedPass& pass = phase == Phase::forward ? block.forward : block.backward;
    if (is_gathered(pass, instance.ordinal)) continue;
    set_place(instance, phase);
    emit_gathers(pass, instance.ordinal, window());
  }
}

// Unless the unit is there or under way.
void ProgramEmitter::ask(Segment& segment, TaskId window) {
  const std::int64_t i = segment.instance.ordinal;
  if (!segment.is_asked && !is_gathered(segment.pass, i)) emit_gathers(segment.pass, i, window);
  segment.is_asked = true;
}

// For what may be under way with the k-th segment at work, where the runtime asks for it already.
void ProgramEmitter::ask_ahead(std::vector<Segment>& segments, std::size_t k) {
  const Gathers& gathers = input_.runtime.gathers;
  const bool asks = phase_ == Phase::forward ? gathers.asked == Asked::ahead
                                             : gathers.asked != Asked::at_its_turn;
  if (!asks || phase_ == Phase::optimizer) return;
  for (std::size_t next = 1; next <= at(gathers.ahead) && k + next < segments.size(); ++next) {
    Segment& segment = segments[k + next];
    set_place(segment.instance, phase_);
    ask(segment, window(next));
  }
  set_place(segments[k].instance, phase_);
}

void ProgramEmitter::give_back(const ResolvedPass& pass, std::int64_t i) {
  for (const ValueId held : pass.pass->held) {
    for_each_buffer(held, i, [&](std::int64_t k) { give_back(held, k); });
  }
}

void ProgramEmitter::give_back(ValueId held, std::int64_t i) {
  const BufferIndex buffer = buffers_.buffer_of(held, i);
  if (has_stages_ && buffer == no_buffer) return;  // it has been given back
  // A unit that nothing reads in backward is gathered after the last kernel, for nothing.
  const bool is_there = buffers_[buffer].written_by < last_kernel_;
  if (is_there) buffers_.use(buffer, last_kernel_, static_cast<std::size_t>(Stream::compute));
  if (has_stages_) buffers_.entry(held, i) = no_buffer;
}

// In a pipeline a unit may be there from the microbatch before.
bool ProgramEmitter::is_gathered(const ResolvedPass& pass, std::int64_t i) {
  if (!has_stages_ || pass.kept.empty()) return false;
  return std::all_of(pass.kept.begin(), pass.kept.end(),
                     [&](ValueId id) { return buffers_.buffer_of(id, i) != no_buffer; });
}

void ProgramEmitter::emit_gathers(const ResolvedPass& pass, std::int64_t i, TaskId window) {
  for (const ResolvedItem& item : pass.gathers) emit_item(item, i, window);
}

}  // namespace shardsim
