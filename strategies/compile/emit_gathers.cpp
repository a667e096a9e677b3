// Units of parameters in one program: who asks for them and when, what is there already, and what
// is given back.
#include <algorithm>
#include <span>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

bool ProgramEmitter::reads_parameter(const Item& item) const {
  return std::any_of(item.operands.begin(), item.operands.end(), [&](ValueId operand) {
    const TensorId tensor = buffers_.value(operand).tensor;
    return tensor != no_tensor && input_.workload.tensors[at(tensor)].role == TensorRole::parameter;
  });
}

// Of a pass, behind the last item that reads a parameter: the loss is outside of all modules.
std::size_t ProgramEmitter::end_of_modules(const ResolvedPass& pass) const {
  std::size_t end = 0;
  for (std::size_t item = 0; item < pass.body.size(); ++item) {
    if (reads_parameter(*pass.body[item].item)) end = item + 1;
  }
  return end;
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
    if (is_gathered(pass, Of::block, instance.ordinal)) continue;
    set_place(instance, phase);
    for (const Of unit : {Of::block, Of::within}) {
      emit_gathers(pass, unit, instance.ordinal, window());
      copy_out(pass, unit, instance.ordinal);
    }
  }
}

// Unless the unit is there or under way.
void ProgramEmitter::ask(Segment& segment, Of unit, TaskId window) {
  const std::int64_t i = segment.instance.ordinal;
  bool& is_asked = unit == Of::block ? segment.is_asked : segment.is_asked_within;
  if (!is_asked && !is_gathered(segment.pass, unit, i)) {
    emit_gathers(segment.pass, unit, i, window);
    (unit == Of::block ? segment.copies_out : segment.copies_out_within) = true;
  }
  is_asked = true;
}

// A module that follows itself is there when it is asked for (torch.distributed.fsdp,
// _fsdp_param_group.py, unshard: is_unsharded).
bool ProgramEmitter::runs_again(const Segment& segment, const Segment& next) {
  const std::vector<ValueId>& held = segment.pass.pass->held;
  return segment.instance.block != next.instance.block && !held.empty() &&
         held == next.pass.pass->held;
}

// For what may be under way with that unit at work, where the runtime asks for it already. What
// lies between two stacks of layers gathers nothing: it is the root's, which is there. Chunks of
// the loss have theirs gathered by a call of their own (torchtitan 0.3, components/loss.py:
// unshard).
void ProgramEmitter::ask_ahead(std::vector<Segment>& segments, std::size_t k, Of unit) {
  const Gathers& gathers = input_.runtime.gathers;
  const bool asks = phase_ == Phase::forward ? gathers.asked == Asked::ahead
                                             : gathers.asked != Asked::at_its_turn;
  if (!asks || phase_ == Phase::optimizer) return;
  const auto gathers_itself = [](const Segment& one) { return !one.pass.gathers.empty(); };
  std::size_t next = k;
  std::size_t others = 0;  // that are at work before the one that is asked for
  for (int ahead = 0; ahead < gathers.ahead; ++ahead) {
    const bool is_of_chunks =
        phase_ == Phase::forward && program_of(segments[next].instance).loss_in_chunks;
    const bool goes_within =
        unit == Of::block && segments[next].pass.pass->inner.has_value() && !is_of_chunks;
    unit = goes_within ? Of::within : Of::block;
    if (!goes_within) {
      const auto behind = segments.begin() + static_cast<std::ptrdiff_t>(next) + 1;
      const auto found = std::find_if(behind, segments.end(), gathers_itself);
      if (found == segments.end()) break;
      if (runs_again(segments[next], *found)) break;
      next = static_cast<std::size_t>(found - segments.begin());
      ++others;
    }
    set_place(segments[next].instance, phase_);
    ask(segments[next], unit, window(others));
  }
  set_place(segments[k].instance, phase_);
}

// Before an item of the body: if the unit within is read by it first, or is at work from it on.
// Rows are exchanged before, whose counts the host waits for: it asks no sooner.
void ProgramEmitter::open_within(std::vector<Segment>& segments, std::size_t k, std::size_t item) {
  const std::optional<BlockPass::Inner>& inner = segments[k].pass.pass->inner;
  if (!inner) return;
  if (item == inner->needed) {
    ask(segments[k], Of::within, last_kernel_);
    copy_out(segments[k], Of::within);
  }
  if (item == inner->opens) ask_ahead(segments, k, Of::within);
}

// Behind the last that reads it.
void ProgramEmitter::close_within(const Segment& segment, std::size_t item) {
  const std::optional<BlockPass::Inner>& inner = segment.pass.pass->inner;
  const bool stays_there = segment.part == Part::input || stays(phase_);
  if (!inner || item + 1 != inner->closes || stays_there) return;
  give_back(segment.pass, Of::within, segment.instance.ordinal);
}

void ProgramEmitter::give_back(const ResolvedPass& pass, std::int64_t i) {
  for (const Of unit : {Of::block, Of::within}) give_back(pass, unit, i);
}

void ProgramEmitter::give_back(const ResolvedPass& pass, Of unit, std::int64_t i) {
  const std::vector<ValueId>& held = pass.pass->held;
  const std::size_t within = pass.pass->inner ? pass.pass->inner->held : held.size();
  const std::size_t first = unit == Of::block ? 0 : within;
  const std::size_t last = unit == Of::block ? within : held.size();
  for (std::size_t h = first; h < last; ++h) {
    for_each_buffer(held[h], i, [&](std::int64_t k) { give_back(held[h], k); });
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
bool ProgramEmitter::is_gathered(const ResolvedPass& pass, Of unit, std::int64_t i) {
  const std::vector<ValueId>& kept = unit == Of::block ? pass.kept : pass.kept_within;
  if (!has_stages_ || kept.empty()) return false;
  return std::all_of(kept.begin(), kept.end(),
                     [&](ValueId id) { return buffers_.buffer_of(id, i) != no_buffer; });
}

void ProgramEmitter::emit_gathers(const ResolvedPass& pass, Of unit, std::int64_t i,
                                  TaskId window) {
  for (const ResolvedItem& gather : gathers_of(pass, unit)) {
    if (gather.item->stream != Stream::compute) emit_item(gather, i, window);
  }
}

// What has arrived, where it is read: once, by the first that does.
void ProgramEmitter::copy_out(Segment& segment, Of unit) {
  bool& copies = unit == Of::block ? segment.copies_out : segment.copies_out_within;
  if (!std::exchange(copies, false)) return;
  if (phase_ == Phase::forward) free_copied_out();
  const BufferIndex flat = copy_out(segment.pass, unit, segment.instance.ordinal);
  const bool is_of_chunks = unit == Of::within && program_of(segment.instance).loss_in_chunks;
  const bool holds = phase_ == Phase::forward && !is_of_chunks;  // but for a call of its own
  if (holds && flat != no_buffer) copied_out_.push_back(flat);
}

// In forward what a unit has come in stays until the next one copies, or the pass ends (FSDP2,
// _fsdp_param_group.py, wait_for_unshard: all_gather_state; _fsdp_state.py, _post_forward).
void ProgramEmitter::free_copied_out() {
  for (const BufferIndex gathered : std::exchange(copied_out_, {})) {
    buffers_.use(gathered, last_kernel_, static_cast<std::size_t>(Stream::compute));
  }
}

BufferIndex ProgramEmitter::copy_out(const ResolvedPass& pass, Of unit, std::int64_t i) {
  Buffer flat;  // one array that they have come in
  for (const ResolvedItem& gather : gathers_of(pass, unit)) {
    if (gather.item->stream != Stream::compute) continue;
    emit_item(gather, i, no_task);
    flat.name = tables_.name(gather.item->name + " gathered");
    for (const ValueId gathered : gather.item->operands) {
      for_each_buffer(gathered, i, [&](std::int64_t k) {
        OpenBuffer& whole = buffers_[buffers_.buffer_of(gathered, k)];
        flat.bytes += whole.buffer.bytes;
        flat.allocated_by = whole.buffer.allocated_by;
        whole.buffer.allocated_by = last_kernel_;
        for (TaskId& use : whole.last_use) use = use < last_kernel_ ? no_task : use;
      });
    }
  }
  if (flat.bytes == Bytes(0)) return no_buffer;
  flat.category = BufferCategory::communication;
  flat.layer = layer_;
  const BufferIndex buffer = buffers_.open_of_program(flat);
  buffers_.use(buffer, last_kernel_, static_cast<std::size_t>(Stream::compute));
  return buffer;
}

std::span<const ResolvedItem> ProgramEmitter::gathers_of(const ResolvedPass& pass, Of unit) {
  const std::span<const ResolvedItem> all(pass.gathers);
  const std::size_t within = pass.pass->inner ? pass.pass->inner->gathers : all.size();
  return unit == Of::block ? all.first(within) : all.subspan(within);
}

}  // namespace shardsim
