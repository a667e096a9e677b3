// The passes of a rank over its stages, action by action: what goes in, the blocks one after the
// other, what goes out.
#include <array>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

void ProgramEmitter::begin_action(const Action& action) {
  microbatch_ = action.microbatch;
  buffers_.select(microbatch_);
  passes_left_.try_emplace(microbatch_, passes_with_.at(microbatch_));
}

void ProgramEmitter::open_ddp_bucket(const OpenBucket& bucket) {
  const TensorId first = bucket.bucket.parameters.front().tensors.front();
  const Value& parameter = buffers_.value(input_.step.parameters.at(first).stored);
  const Bytes bytes = bucket.bucket.elements * size_of(parameter.dtype);
  buffers_[open_buffer(bucket.name + " of DDP", BufferCategory::gradients, bytes)].persistent =
      true;
}

void ProgramEmitter::end_action(const Action& action) {
  for (const BufferIndex made : made_) {
    buffers_.use(made, last_kernel_, static_cast<std::size_t>(Stream::compute));
  }
  made_.clear();
  reduce_aligned(action);
  if (action.kind == ActionKind::backward || !has_backward(input_.workload)) give_back_all();
  if (action.kind == ActionKind::backward && reduces_each_microbatch()) {
    add_up_parts();
    close_step_rooms();
  }
  const bool ends = !has_backward(input_.workload) || releases_activations(action.kind);
  if (!ends || --passes_left_.at(microbatch_) > 0) return;
  passes_left_.erase(microbatch_);
  buffers_.end(microbatch_);
}

void ProgramEmitter::run_action(const Action& action) {
  if (action.kind == ActionKind::optimizer) {
    optimizer(action.stage);
    return;
  }
  begin_action(action);
  switch (action.kind) {
    case ActionKind::forward:
      forward(action);
      break;
    case ActionKind::backward:
      backward(action, Part::whole);
      break;
    case ActionKind::backward_input:
      if (!is_first(action.stage)) backward(action, Part::input);
      break;
    case ActionKind::backward_weight:
      backward(action, is_first(action.stage) ? Part::whole : Part::weight);
      break;
    case ActionKind::optimizer:
      break;
  }
  end_action(action);
}

ProgramEmitter::Passage ProgramEmitter::begin_forward(const Action& action) {
  // Of gradients that forward makes, of a loss in chunks.
  const bool alone = !has_stages_;
  is_first_pass_ = alone && action.microbatch == 0;
  is_last_pass_ = alone && action.microbatch + 1 == input_.schedule.shape.microbatches;
  if (!has_backward(input_.workload)) count_pass(action.stage);
  gather_root(action.stage, Phase::forward);
  Passage passage{.carried = take({action.stage, action.microbatch, false})};
  for (const BlockInstance& instance : instances_of(action.stage)) {
    passage.segments.push_back({tables_.block(instance.block).forward, instance});
  }
  return passage;
}

void ProgramEmitter::forward(const Action& action) {
  Passage passage = begin_forward(action);
  for (std::size_t k = 0; k < passage.segments.size(); ++k) {
    run_segment(passage, k, Phase::forward);
  }
  free_copied_out();
  end_passage(action, passage);
}

ProgramEmitter::Passage ProgramEmitter::begin_backward(const Action& action, Part part) {
  if (part != Part::input) count_pass(action.stage);
  Passage passage;
  if (part != Part::weight) {
    gather_root(action.stage, part == Part::input ? Phase::backward_input : Phase::backward);
    passage.carried = take({action.stage, action.microbatch, true});
  }
  const std::vector<BlockInstance> instances = instances_of(action.stage);
  for (auto instance = instances.rbegin(); instance != instances.rend(); ++instance) {
    const bool opens = part != Part::weight && passage.segments.empty();
    passage.segments.push_back({tables_.block(instance->block).backward, *instance, part, opens,
                                /*is_asked=*/part == Part::weight,
                                /*is_asked_within=*/part == Part::weight});
  }
  return passage;
}

void ProgramEmitter::backward(const Action& action, Part part) {
  static constexpr std::array phases = {Phase::backward, Phase::backward_input,
                                        Phase::backward_weight};
  Passage passage = begin_backward(action, part);
  for (std::size_t k = 0; k < passage.segments.size(); ++k) {
    run_segment(passage, k, phases[static_cast<std::size_t>(part)]);
  }
  reduce_last();
  if (!has_stages_) await_reductions();
  if (part == Part::weight && input_.runtime.retains_graph) hold_graph(action.stage);
  if (part != Part::weight) end_passage(action, passage);
}

// Gradients of a second part are cast and then added (torch.distributed.pipelining, _backward.py,
// stage_backward_weight), those of a whole pass by the kernel that adds.
void ProgramEmitter::cast_apart(const Item& addition, TaskId task) {
  const DType made = buffers_.value(addition.operands.front()).dtype;
  for (const ValueId sum : addition.results) {
    if (buffers_.value(sum).dtype == made) continue;
    Buffer cast;
    cast.name = tables_.name(addition.name);
    cast.category = BufferCategory::temporaries;
    cast.layer = layer_;
    cast.bytes = buffers_.value(sum).bytes;
    cast.allocated_by = task;
    buffers_.use(buffers_.open_of_program(cast), task, static_cast<std::size_t>(Stream::compute));
  }
}

// Until now: all that forward has kept for backward, in a microbatch. What lies behind the last
// weights (the loss) is not of their graph.
void ProgramEmitter::hold_graph(std::int16_t stage) {
  for (const BlockInstance& instance : instances_of(stage)) {
    block_ = instance.block;
    bool is_reached = false;
    for (const ResolvedItem& item : tables_.block(instance.block).backward.body) {
      is_reached |= reads_parameter(*item.item);
      if (!is_reached) continue;
      for (const ValueId operand : item.item->operands) {
        if (buffers_.value(operand).category != BufferCategory::activations) continue;
        for_each_buffer(operand, instance.ordinal, [&](std::int64_t k) {
          buffers_.use(buffers_.buffer_of(operand, k), last_kernel_,
                       static_cast<std::size_t>(Stream::compute));
        });
      }
    }
  }
}

void ProgramEmitter::run_segment(Passage& passage, std::size_t k, Phase phase) {
  enter_segment(passage, k, phase);
  emit_segment(passage.segments, k, phase);
  leave_segment(passage, k, phase);
}

void ProgramEmitter::enter_segment(const Passage& passage, std::size_t k, Phase phase) {
  const Segment& segment = passage.segments[k];
  if (segment.part == Part::weight) return;
  const BlockProgram& block = program_of(segment.instance);
  enter(phase == Phase::forward ? block.carries_in : block.gradients_of_carries_out,
        passage.carried, segment.instance.ordinal);
}

void ProgramEmitter::leave_segment(Passage& passage, std::size_t k, Phase phase) {
  const Segment& segment = passage.segments[k];
  if (segment.part == Part::weight) return;
  const BlockProgram& block = program_of(segment.instance);
  passage.carried =
      leave(phase == Phase::forward ? block.carries_out : block.gradients_of_carries_in,
            segment.instance.ordinal);
}

void ProgramEmitter::hand_over(std::int16_t stage, std::int32_t microbatch, bool is_gradient,
                               const std::vector<BufferIndex>& carried) {
  if (stage < 0 || at(stage) == input_.stages.size()) return;
  inlets_[{stage, microbatch, is_gradient}] = carried;
}

// How often each stage of the rank is passed, and how many passes a microbatch's values live for.
void ProgramEmitter::count_actions() {
  const bool trains = has_backward(input_.workload);
  for (const Action& action : input_.schedule.of_rank[at(rank_)]) {
    const bool counts =
        trains ? releases_activations(action.kind) : action.kind == ActionKind::forward;
    if (!counts) continue;
    ++passes_of_[action.stage];
    ++passes_with_[action.microbatch];
  }
}

void ProgramEmitter::count_pass(std::int16_t stage) {
  const std::int64_t done = passes_done_[stage]++;
  is_first_pass_ = done == 0;
  is_last_pass_ = done + 1 == passes_of_.at(stage);
}

}  // namespace shardsim
