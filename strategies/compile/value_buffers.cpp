#include "strategies/compile/value_buffers.hpp"

#include <algorithm>
#include <cassert>

#include "base/index.hpp"

namespace shardsim {

std::vector<bool> values_of_step(const SpmdStep& step, std::int64_t microbatches,
                                 bool keeps_gathered) {
  if (microbatches == 1) return std::vector<bool>(step.values.size(), true);
  std::vector<bool> of_step(step.values.size(), false);
  for (std::size_t v = 0; v < of_step.size(); ++v) of_step[v] = step.values[v].persistent;
  const auto add = [&](const std::vector<ValueId>& values) {
    for (const ValueId id : values) of_step[at(id)] = true;
  };
  for (const auto& [parameter, gradient] : step.buffered) add({gradient.main});
  for (const BlockProgram& block : step.blocks) {
    for (const BlockPass* pass : {&block.forward, &block.backward, &block.optimizer}) {
      for (const BlockPass::Sum& sum : pass->sums) of_step[at(sum.sum)] = true;
      for (const Item& item : pass->body) {
        if (item.adds_up) add(item.results);
      }
      for (const Item& item : pass->last_reductions) {
        add(item.operands);  // the last microbatch's, when others may be under way
        add(item.results);
      }
      if (keeps_gathered) add(pass->held);
    }
    for (const std::vector<Item>* items :
         {&block.optimizer.gathers, &block.optimizer.body, &block.optimizer.reductions}) {
      for (const Item& item : *items) add(item.results);
    }
  }
  return of_step;
}

ValueBuffers::ValueBuffers(const SpmdStep& step, const Workload& workload,
                           const std::vector<bool>& of_step, const std::vector<BlockInstance>& here,
                           PlanTables& tables)
    : step_(step), workload_(workload), of_step_(of_step), tables_(tables) {
  is_here_.resize(workload.blocks.size());
  for (std::size_t b = 0; b < is_here_.size(); ++b) {
    is_here_[b].resize(static_cast<std::size_t>(workload.blocks[b].instances()), false);
  }
  for (const BlockInstance& instance : here)
    is_here_[at(instance.block)][at(instance.ordinal)] = true;
  step_frame_ = new_frame();
  current_ = &step_frame_;
  open_persistent(here);
}

ValueBuffers::Frame ValueBuffers::new_frame() const {
  Frame frame;
  frame.shared.assign(step_.values.size(), no_buffer);
  frame.of_instance.resize(workload_.blocks.size());
  for (std::size_t b = 0; b < frame.of_instance.size(); ++b) {
    if (!workload_.blocks[b].is_layer) continue;
    frame.of_instance[b].resize(is_here_[b].size());
    for (std::size_t i = 0; i < is_here_[b].size(); ++i) {
      if (is_here_[b][i]) frame.of_instance[b][i] = frame.shared;
    }
  }
  return frame;
}

// Values that are there once for the whole step and that something of this program touches.
std::vector<bool> ValueBuffers::read_here(const std::vector<BlockInstance>& here) const {
  std::vector<bool> read(step_.values.size(), false);
  std::vector<bool> seen(step_.blocks.size(), false);
  const auto add = [&](const std::vector<ValueId>& values) {
    for (ValueId id : values) {
      while (value(id).storage != no_value) id = value(id).storage;
      read[at(id)] = true;
    }
  };
  for (const BlockInstance& instance : here) {
    if (seen[at(instance.block)]) continue;
    seen[at(instance.block)] = true;
    const BlockProgram& block = step_.blocks[at(instance.block)];
    for (const BlockPass* pass : {&block.forward, &block.backward, &block.optimizer}) {
      for (const std::vector<Item>* items : {&pass->gathers, &pass->body, &pass->reductions,
                                             &pass->additions, &pass->last_reductions}) {
        for (const Item& item : *items) {
          add(item.operands);
          add(item.results);
        }
      }
    }
  }
  for (std::size_t v = 0; v < read.size(); ++v) {
    if (seen[at(step_.values[v].block)]) read[v] = true;
  }
  return read;
}

void ValueBuffers::open_persistent(const std::vector<BlockInstance>& here) {
  const std::vector<bool> read = read_here(here);
  for (std::size_t v = 0; v < step_.values.size(); ++v) {
    const Value& persistent = step_.values[v];
    if (!persistent.persistent || (persistent.shared && !read[v])) continue;
    const auto id = static_cast<ValueId>(v);
    const std::int64_t copies =
        persistent.shared ? 1 : workload_.blocks[at(persistent.block)].instances();
    for (std::int64_t i = 0; i < copies; ++i) {
      if (!persistent.shared && !is_here_[at(persistent.block)][at(i)]) continue;
      const BufferIndex buffer = open(id, i, before_the_step);
      buffers_[at(buffer)].persistent = true;
      entry(id, i) = buffer;
    }
  }
}

void ValueBuffers::select(std::int64_t microbatch) {
  const auto [found, is_new] = under_way_.try_emplace(microbatch, frames_.size());
  if (is_new) {
    if (free_.empty()) {
      frames_.push_back(new_frame());
    } else {
      found->second = free_.back();
      free_.pop_back();
    }
  }
  current_ = &frames_[found->second];
}

void ValueBuffers::end(std::int64_t microbatch) {
  const auto found = under_way_.find(microbatch);
  assert(found != under_way_.end());
  free_.push_back(found->second);
  under_way_.erase(found);
}

BufferIndex ValueBuffers::open_of_program(const Buffer& buffer) {
  OpenBuffer open;
  open.last_use.fill(no_task);
  open.buffer = buffer;
  buffers_.push_back(open);
  return static_cast<BufferIndex>(buffers_.size()) - 1;
}

BufferIndex ValueBuffers::open(ValueId id, std::int64_t i, TaskId task) {
  const Value& v = value(id);
  OpenBuffer open;
  open.last_use.fill(no_task);
  open.buffer.name = tables_.name_of_value(id);
  open.buffer.layer = v.shared ? -1 : workload_.blocks[at(v.block)].numbers[at(i)];
  open.buffer.category = v.category;
  open.buffer.bytes = v.bytes;
  open.buffer.allocated_by = task;
  open.buffer.on_host = v.on_host;
  open.to_end = v.to_end;
  buffers_.push_back(open);
  return static_cast<BufferIndex>(buffers_.size()) - 1;
}

void ValueBuffers::use(BufferIndex buffer, TaskId task, std::size_t stream) {
  if (buffer == no_buffer || task == no_task) return;
  TaskId& last = buffers_[at(buffer)].last_use[stream];
  last = std::max(last, task);
}

std::vector<BufferIndex> ValueBuffers::kept_to_end() const {
  std::vector<BufferIndex> kept;
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].to_end) kept.push_back(static_cast<BufferIndex>(b));
  }
  return kept;
}

void ValueBuffers::close(Program& program) const {
  program.buffers.reserve(program.buffers.size() + buffers_.size());
  std::vector<TaskId> last;
  for (const OpenBuffer& open : buffers_) {
    last.clear();
    for (const TaskId task : open.last_use) {
      if (task != no_task && !open.persistent) last.push_back(task);
    }
    if (open.to_end) last.assign(1, static_cast<TaskId>(program.tasks.size()) - 1);
    std::sort(last.begin(), last.end());
    (void)program.add_buffer(open.buffer, last);
  }
}

}  // namespace shardsim
