#include "strategies/compile/emit_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/index.hpp"
#include "strategies/runtime/exchange_overlap.hpp"

namespace shardsim {
namespace {

// As enum Stream has them; then those of a pipeline's messages.
const std::vector<std::string> streams_of_a_step = {
    "compute", "parameter gathers", "gradient reductions", "activation collectives"};
const std::vector<std::string> streams_of_messages = {"activation sends", "activation receives",
                                                      "gradient sends", "gradient receives"};

bool reads_gathered(const Item& item, const ResolvedPass& pass) {
  for (const ResolvedItem& gather : pass.gathers) {
    for (const ValueId result : gather.item->results) {
      if (std::count(item.operands.begin(), item.operands.end(), result) > 0) return true;
    }
  }
  return false;
}

bool is_host_work(const Item& item) {
  return item.kind == TaskKind::kernel && item.kernel.kernel_class == KernelClass::host;
}

std::string name_of_rank(const PipelineShape& shape, std::int32_t rank) {
  const std::vector<std::int16_t> stages = shape.stages_of(rank);
  return fmt::format("stage{} {}", stages.size() == 1 ? "" : "s", fmt::join(stages, ", "));
}

}  // namespace

ProgramEmitter::ProgramEmitter(const EmitInput& input, const std::vector<bool>& of_step,
                               std::int32_t rank, PlanTables& tables)
    : input_(input),
      rank_(rank),
      has_stages_(!input.stages_axis.empty()),
      tables_(tables),
      buffers_(
          input.step, input.workload, of_step,
          [&] {
            std::vector<BlockInstance> here;
            for (const std::int16_t stage : input.schedule.shape.stages_of(rank)) {
              const auto of_stage = instances_of(stage);
              here.insert(here.end(), of_stage.begin(), of_stage.end());
            }
            return here;
          }(),
          tables) {
  program_.name = has_stages_ ? name_of_rank(input.schedule.shape, rank) : "all devices";
  program_.streams = streams_of_a_step;
  if (has_stages_) {
    program_.streams.insert(program_.streams.end(), streams_of_messages.begin(),
                            streams_of_messages.end());
  }
  if (input.runtime.exchange_overlap != ExchangeOverlap::none) {
    exchange_stream_ = static_cast<std::uint8_t>(program_.streams.size());
    program_.streams.emplace_back("exchanges of rows");
  }
  count_actions();
  assert(streams_of_a_step.size() == stream_count);
  assert(program_.streams.size() <= most_streams);
}

Program ProgramEmitter::run(const std::vector<Call>& calls,
                            const std::vector<Acknowledged>& acknowledged) {
  bool has_optimizer = false;
  auto known = acknowledged.begin();
  open_host_streams();
  open_flat_parameters();
  open_buckets();
  open_room_of_values();
  for (std::size_t place = 0; place < calls.size(); ++place) {
    const Call& call = calls[place];
    for (; known != acknowledged.end() && known->at == place; ++known) await_sends(known->send);
    has_optimizer |= call.action.kind == ActionKind::optimizer;
    switch (call.kind) {
      case Call::Kind::compute:
        pair_ends_ = {no_task, no_task};
        if (call.action.with_next && exchange_stream_ != 0) {
          ++place;
          for (; known != acknowledged.end() && known->at == place; ++known) {
            await_sends(known->send);
          }
          run_pair(call.action, calls[place].action);
        } else {
          run_action(call.action);
        }
        break;
      case Call::Kind::send:
        send(call, place);
        break;
      case Call::Kind::receive:
        receive(call);
        break;
      case Call::Kind::unshard:
        gather(call.action.stage);
        break;
      case Call::Kind::reshard:
        give_back(call.action.stage);
        break;
      case Call::Kind::reduce:
        reduce(call.action.stage);
        break;
      case Call::Kind::await_reduced:
        awaited_ = std::max(awaited_, last_reduced_);
        break;
    }
  }
  while (!sends_.empty()) await_sends(sends_.begin()->first);
  if (!has_optimizer && has_backward(input_.workload)) {
    for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) optimizer(stage);
  }
  gather_buckets();
  if (has_backward(input_.workload)) gather_whole();
  buffers_.close(program_);
  program_.tasks.shrink_to_fit();
  return std::move(program_);
}

std::vector<BlockInstance> ProgramEmitter::instances_of(std::int16_t stage) const {
  const StageRange& range = input_.stages[at(stage)];
  const auto first = input_.workload.order.begin() + static_cast<std::ptrdiff_t>(range.first);
  return {first, first + static_cast<std::ptrdiff_t>(range.count)};
}

const BlockProgram& ProgramEmitter::program_of(const BlockInstance& instance) const {
  return input_.step.blocks[at(instance.block)];
}

void ProgramEmitter::optimizer(std::int16_t stage) {
  emit_late_gradients();
  microbatch_ = 0;
  buffers_.select(microbatch_);
  finish_gradients();
  join_outputs(stage);
  clip_gradients();
  for (const BlockInstance& instance : instances_of(stage)) {
    std::vector<Segment> alone = {{tables_.block(instance.block).optimizer, instance}};
    emit_segment(alone, 0, Phase::optimizer);
  }
  for (std::size_t g = 0; g < update_groups_.size(); ++g) update_group(update_groups_[g], g);
  const bool halves = input_.runtime.optimizer_on_host && !gradients_leave(input_.runtime);
  if (halves) update_with_host(stage);
  for (const OpenBucket& bucket : open_buckets_) {
    if (!halves && bucket.stage == stage && !bucket.state.empty()) update_bucket(bucket);
  }
  if (wide_ != no_buffer) {
    buffers_.use(wide_, last_kernel_, static_cast<std::size_t>(Stream::compute));
  }
  buffers_.end(microbatch_);
}

std::int32_t ProgramEmitter::layer_of(const BlockInstance& instance) const {
  const Block& block = input_.workload.blocks[at(instance.block)];
  return block.is_layer ? block.numbers[at(instance.ordinal)] : -1;
}

void ProgramEmitter::emit_segment(std::vector<Segment>& segments, std::size_t k, Phase phase) {
  const Segment& segment = segments[k];
  set_place(segment.instance, phase);
  begin_segment();
  emit_body(segments, k);
  if (phase == Phase::forward) send_to_host(segment);
  end_segment(segment, phase);
}

// What reductions and additions give back is there for the second pass after theirs, as FSDP2 waits
// for a reduce-scatter before it issues the next.
void ProgramEmitter::begin_segment() {
  const std::size_t number = segment_ends_.size();
  if (number > 1) awaited_ = std::max(awaited_, segment_reductions_[number - 2]);
  last_reduction_ = no_task;
  await_copies();
}

void ProgramEmitter::end_segment(const Segment& segment, Phase phase) {
  const std::int64_t i = segment.instance.ordinal;
  if (segment.part != Part::input) {
    // Before gradients are copied (PyTorch's FSDP: reshard comes first in post_backward).
    if (!stays(phase)) give_back(segment.pass, Of::block, i);
    if (!stays(phase) && segment.part == Part::weight) give_back(segment.pass, Of::within, i);
    emit_items(segment.pass.reductions, i);
    accumulate(segment.pass, i);
    for (const ValueId made : segment.pass.pass->made) made_.push_back(buffers_.buffer_of(made, i));
  }
  segment_ends_.push_back(last_kernel_);
  segment_reductions_.push_back(last_reduction_);
}

void ProgramEmitter::emit_body(std::vector<Segment>& segments, std::size_t k) {
  Segment& segment = segments[k];
  const ResolvedPass& pass = segment.pass;
  const std::int64_t i = segment.instance.ordinal;
  // The unit that opens the backward pass has nobody before it to ask for it: it is gathered when
  // it is first read.
  const auto open = [&](TaskId window) {
    ask(segment, Of::block, window);
    if (phase_ != Phase::forward) copy_out(segment, Of::block);  // FSDP2's pre_backward
    ask_ahead(segments, k, Of::block);
  };
  // A loss that has gone back in chunks asks for it.
  const bool is_asked = segment.opens_backward && program_of(segment.instance).loss_in_chunks;
  bool opened = !segment.opens_backward || is_asked;
  if (opened) open(is_asked ? last_kernel_ : window());
  if (phase_ != Phase::forward) open_gradients_of(*pass.pass, i);
  if (phase_ != Phase::forward && phase_ != Phase::optimizer) bring_ahead(segments, k);
  const bool ends_modules = phase_ == Phase::forward && k + 1 == segments.size();
  const std::size_t modules_end = ends_modules ? end_of_modules(pass) : 0;
  for (std::size_t item = 0; item < pass.body.size(); ++item) {
    if (segment.part != Part::whole && pass.for_input[item] != (segment.part == Part::input)) {
      continue;
    }
    if (puts_off(segment, item)) continue;
    if (!opened && (pass.gathers.empty() ? reads_parameter(*pass.body[item].item)
                                         : reads_gathered(*pass.body[item].item, pass))) {
      open(last_kernel_);
      opened = true;
    }
    if (segment.copies_out && reads_gathered(*pass.body[item].item, pass)) {
      copy_out(segment, Of::block);
    }
    gather_buckets_for(pass, item, i);
    if (!flat_.empty()) run_modules(k, item);
    open_within(segments, k, item);
    emit_item(pass.body[item], i, no_task);
    if (input_.local_modules) hand_over_gradients(*pass.body[item].item);
    if (!flat_.empty()) keep_viewed(*pass.body[item].item, i);
    close_within(segment, item);
    if (item + 1 == modules_end) free_copied_out();
    count_written(*pass.pass, item + 1, i);
  }
  if (!opened) open(last_kernel_);
  if (!flat_.empty()) run_modules(k, pass.body.size());
}

// In a pipeline what backward has read stays for the next microbatch.
bool ProgramEmitter::stays(Phase phase) const {
  if (!has_stages_ || phase == Phase::forward) return false;
  return input_.runtime.reductions.after_last_backward || !is_last_pass_;
}

void ProgramEmitter::emit_items(const std::vector<ResolvedItem>& items, std::int64_t i) {
  for (const ResolvedItem& item : items) emit_item(item, i, issued_after_);
}

// Reads what it does not write in place, and may thus be the last to read.
bool ProgramEmitter::may_give_back(const Item& item, std::int64_t i) {
  return std::any_of(item.operands.begin(), item.operands.end(), [&](ValueId operand) {
    return std::none_of(item.results.begin(), item.results.end(), [&](ValueId result) {
      return buffers_.buffer_of(result, i) == buffers_.buffer_of(operand, i);
    });
  });
}

std::uint8_t ProgramEmitter::stream_of(const Item& item) const {
  if (is_host_copy(item.kind)) return host_copies(item.kind);
  if (is_host_work(item)) return static_cast<std::uint8_t>(host_stream());
  return exchange_stream_ != 0 && is_exchange(item) ? exchange_stream_
                                                    : static_cast<std::uint8_t>(item.stream);
}

TaskId ProgramEmitter::add_task(const Task& task, std::vector<TaskId>& after) {
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  std::erase(after, no_task);
  return program_.add_task(task, after);
}

bool ProgramEmitter::becomes_sum(const Item& item, std::int64_t i) {
  if (!item.adds_up || !is_first_pass_) return false;
  for (std::size_t k = 0; k < item.results.size(); ++k) {
    if (buffers_.value(item.results[k]).dtype != buffers_.value(item.operands[k]).dtype) {
      return false;
    }
  }
  for (std::size_t k = 0; k < item.results.size(); ++k) {
    buffers_.entry(item.results[k], i) = buffers_.buffer_of(item.operands[k], i);
  }
  return true;
}

// What it reads has been written, and whoever reads what it writes over has done so.
void ProgramEmitter::put_behind(const Item& item, std::int64_t i, TaskId window, bool in_place) {
  after_.clear();
  if (window != no_task) after_.push_back(window);
  for (const ValueId operand : item.operands) {
    for_each_buffer(operand, i, [&](std::int64_t k) {
      const BufferIndex buffer = buffers_.buffer_of(operand, k);
      assert(buffer != no_buffer && "an operand that nothing made");
      after_.push_back(buffers_[buffer].written_by);
    });
  }
  for (const ValueId result : item.results) {
    if (!in_place && buffers_.value(result).storage == no_value) continue;
    for_each_buffer(result, i, [&](std::int64_t k) {
      for (const TaskId reader : buffers_[buffers_.buffer_of(result, k)].last_use) {
        if (reader != no_task) after_.push_back(reader);
      }
    });
  }
}

void ProgramEmitter::emit_item(const ResolvedItem& resolved, std::int64_t i, TaskId window) {
  const Item& item = *resolved.item;
  if (becomes_sum(item, i)) return;
  const bool in_place = item.adds_up && !is_first_pass_;
  put_behind(item, i, window, in_place);
  const bool computes =
      item.kind == TaskKind::kernel && item.stream == Stream::compute && !is_host_work(item);
  if (computes) {
    after_.push_back(std::exchange(awaited_, no_task));
    after_.insert(after_.end(), awaited_sends_.begin(), awaited_sends_.end());
    awaited_sends_.clear();
  }

  Task task;
  task.kind = item.kind;
  task.phase = phase_;
  task.recompute = item.recompute;
  task.stream = stream_of(item);
  task.work = resolved.work;
  task.name = resolved.name;
  task.layer = layer_;
  task.microbatch = microbatch_;
  const TaskId id = add_task(task, after_);
  if (computes) kernel_before_ = std::exchange(last_kernel_, id);
  for (const ValueId operand : item.operands) {
    for_each_buffer(operand, i, [&](std::int64_t k) {
      buffers_.use(buffers_.buffer_of(operand, k), id, task.stream);
    });
  }
  for (const ValueId result : item.results) {
    const bool is_new = !in_place && buffers_.value(result).storage == no_value;
    for_each_buffer(result, i, [&](std::int64_t k) {
      if (is_new) buffers_.entry(result, k) = buffers_.open(result, k, id);
      const BufferIndex buffer = buffers_.buffer_of(result, k);
      OpenBuffer& open = buffers_[buffer];
      open.written_by = id;
      if (std::exchange(open.opens_when_written, false)) open.buffer.allocated_by = id;
      buffers_.use(buffer, id, task.stream);
    });
  }
  if (in_place && phase_ == Phase::backward_weight) cast_apart(item, id);
  if (item.stream != Stream::reductions) return;
  if (may_give_back(item, i)) last_reduction_ = id;
  if (input_.runtime.reductions.copies == GradientCopies::chunks) hold_gradients(item, i);
}

}  // namespace shardsim
