#include "strategies/compile/emit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <string>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

constexpr std::size_t stream_count = 4;
const std::array<std::string, stream_count> stream_names = {
    "compute", "parameter gathers", "gradient reductions", "activation collectives"};
using BufferIndex = std::int32_t;
constexpr BufferIndex no_buffer = -1;
constexpr TaskId no_task = -1;
constexpr double most_tasks = 1 << 22;
constexpr std::size_t passes_of_a_block = 3;  // forward, backward, optimizer
constexpr std::size_t optimizer_pass = 2;
constexpr std::int32_t no_name = -1;

// An item with its work and name found in the plan's tables.
struct ResolvedItem {
  const Item* item = nullptr;
  std::int32_t work = 0;
  std::int32_t name = 0;
};
struct ResolvedPass {
  std::vector<ResolvedItem> gathers, body, reductions, additions, last_reductions;
  const BlockPass* pass = nullptr;
};

// A buffer while its life is being written.
struct OpenBuffer {
  Buffer buffer;
  bool persistent = false;
  TaskId written_by = no_task;
  std::array<TaskId, stream_count> last_use{no_task, no_task, no_task, no_task};
};

using Frame = std::vector<BufferIndex>;  // of every value

class Emitter {
 public:
  Emitter(const SpmdStep& step, const Workload& workload, const Mesh& mesh, int prefetch)
      : step_(step), workload_(workload), prefetch_(prefetch) {
    plan_.mesh = mesh;
    program_.name = "all devices";
    program_.streams.assign(stream_names.begin(), stream_names.end());
  }

  Plan run(const PipelineSchedule& schedule) {
    const auto count = static_cast<int>(workload_.blocks.size());
    for (int b = 0; b < count; ++b) {
      resolve(step_.blocks[at(b)].forward);
      resolve(step_.blocks[at(b)].backward);
      resolve(step_.blocks[at(b)].optimizer);
    }
    make_frames();
    assert(schedule.shape.stages() == 1);
    microbatches_ = schedule.shape.microbatches;
    for (const Action& action : schedule.of_rank.front()) run(action);
    close_buffers();
    plan_.programs.push_back(std::move(program_));
    return std::move(plan_);
  }

 private:
  void run(const Action& action) {
    const std::vector<BlockInstance>& order = workload_.order;
    microbatch_ = action.microbatch;
    previous_ = {};
    switch (action.kind) {
      case ActionKind::forward:
        for (const BlockInstance& instance : order) emit_forward(instance);
        break;
      case ActionKind::backward:
        std::for_each(order.rbegin(), order.rend(),
                      [&](const BlockInstance& instance) { emit_backward(instance); });
        break;
      case ActionKind::optimizer:
        for (const BlockInstance& instance : order) emit_segment(optimizer_pass, instance);
        break;
      case ActionKind::backward_input:
      case ActionKind::backward_weight:
        assert(false && "a step of one stage does not split its backward pass");
        break;
    }
  }

  // What the segment before hands over.
  struct Handover {
    std::vector<BufferIndex> carries;
  };

  [[nodiscard]] std::int64_t instances(int block) const {
    return workload_.blocks[at(block)].instances();
  }
  [[nodiscard]] const Value& value(ValueId id) const { return step_.values[at(id)]; }

  void make_frames() {
    shared_.assign(step_.values.size(), no_buffer);
    value_names_.assign(step_.values.size(), no_name);
    frames_.resize(workload_.blocks.size());
    for (std::size_t b = 0; b < frames_.size(); ++b) {
      const Block& block = workload_.blocks[b];
      if (block.is_layer) frames_[b].assign(block.numbers.size(), shared_);
    }
    for (std::size_t v = 0; v < step_.values.size(); ++v) {
      const Value& persistent = step_.values[v];
      if (!persistent.persistent) continue;
      const std::int64_t copies = persistent.shared ? 1 : instances(persistent.block);
      for (std::int64_t i = 0; i < copies; ++i) {
        const BufferIndex buffer = open(static_cast<ValueId>(v), i, before_the_step);
        buffers_[at(buffer)].persistent = true;
        entry(static_cast<ValueId>(v), i) = buffer;
      }
    }
  }

  // The frame entry of a value in instance i of its block.
  BufferIndex& entry(ValueId id, std::int64_t i) {
    const Value& v = value(id);
    return v.shared ? shared_[at(id)] : frames_[at(v.block)][at(i)][at(id)];
  }

  BufferIndex buffer_of(ValueId id, std::int64_t i) {
    while (value(id).storage != no_value) id = value(id).storage;
    return entry(id, i);
  }

  BufferIndex open(ValueId id, std::int64_t i, TaskId task) {
    const Value& v = value(id);
    OpenBuffer open;
    std::int32_t& name = value_names_[at(id)];
    if (name == no_name) name = intern_name(v.name);
    open.buffer.name = name;
    open.buffer.layer = v.shared ? -1 : workload_.blocks[at(v.block)].numbers[at(i)];
    open.buffer.category = v.category;
    open.buffer.bytes = v.bytes;
    open.buffer.allocated_by = task;
    buffers_.push_back(open);
    return static_cast<BufferIndex>(buffers_.size()) - 1;
  }

  std::int32_t intern_name(const std::string& name) {
    const auto [found, added] =
        name_ids_.try_emplace(name, static_cast<std::int32_t>(plan_.names.size()));
    if (added) plan_.names.push_back(name);
    return found->second;
  }

  template <class Work>
  static std::int32_t intern(std::vector<Work>& table, const Work& work) {
    const auto found = std::find(table.begin(), table.end(), work);
    if (found != table.end()) return static_cast<std::int32_t>(found - table.begin());
    table.push_back(work);
    return static_cast<std::int32_t>(table.size()) - 1;
  }

  void resolve(const BlockPass& pass) {
    const auto resolve_all = [&](const std::vector<Item>& items, std::vector<ResolvedItem>& out) {
      for (const Item& item : items) {
        const std::int32_t work = item.kind == TaskKind::kernel
                                      ? intern(plan_.kernels, item.kernel)
                                      : intern(plan_.collectives, item.collective);
        out.push_back({&item, work, intern_name(item.name)});
      }
    };
    ResolvedPass resolved;
    resolved.pass = &pass;
    resolve_all(pass.gathers, resolved.gathers);
    resolve_all(pass.body, resolved.body);
    resolve_all(pass.reductions, resolved.reductions);
    resolve_all(pass.additions, resolved.additions);
    resolve_all(pass.last_reductions, resolved.last_reductions);
    passes_.push_back(std::move(resolved));
  }

  void emit_forward(const BlockInstance& instance) {
    const BlockProgram& block = step_.blocks[at(instance.block)];
    receive_carries(block.carries_in, instance.ordinal);
    emit_segment(0, instance);
    send_carries(block.carries_out, instance.ordinal);
  }

  void emit_backward(const BlockInstance& instance) {
    const BlockProgram& block = step_.blocks[at(instance.block)];
    receive_carries(block.gradients_of_carries_out, instance.ordinal);
    emit_segment(1, instance);
    send_carries(block.gradients_of_carries_in, instance.ordinal);
  }

  void receive_carries(const std::vector<ValueId>& values, std::int64_t i) {
    for (std::size_t k = 0; k < values.size() && k < previous_.carries.size(); ++k) {
      if (values[k] != no_value) entry(values[k], i) = previous_.carries[k];
    }
  }

  void send_carries(const std::vector<ValueId>& values, std::int64_t i) {
    previous_.carries.clear();
    for (const ValueId v : values)
      previous_.carries.push_back(v == no_value ? no_buffer : buffer_of(v, i));
  }

  void emit_segment(std::size_t pass_index, const BlockInstance& instance) {
    const int b = instance.block;
    const std::int64_t i = instance.ordinal;
    const Block& block = workload_.blocks[at(b)];
    static constexpr std::array phases = {Phase::forward, Phase::backward, Phase::optimizer};
    const ResolvedPass& pass = passes_[at(b) * passes_of_a_block + pass_index];
    phase_ = phases[pass_index];
    layer_ = block.is_layer ? block.numbers[at(i)] : -1;
    const auto segment = static_cast<std::int64_t>(segment_ends_.size());
    const std::int64_t opens = segment - 1 - prefetch_;
    const TaskId window = opens >= 0 ? segment_ends_[at(opens)] : no_task;
    // The unit that opens the backward pass has nobody before it to ask for it: it is gathered when
    // it is first read.
    const bool opens_backward = pass_index == 1 && instance == workload_.order.back();
    // What reductions and additions give back is there for the second pass after theirs, as FSDP2
    // waits for a reduce-scatter before it issues the next.
    awaited_ = segment > 1 ? segment_reductions_[at(segment - 2)] : no_task;
    last_reduction_ = no_task;
    bool gathered = !opens_backward;
    if (gathered) emit_gathers(pass, i, window);
    for (const ResolvedItem& item : pass.body) {
      if (!gathered && reads_gathered(*item.item, pass)) {
        emit_gathers(pass, i, last_kernel_);
        gathered = true;
      }
      emit_item(item, i, no_task);
    }
    if (!gathered) emit_gathers(pass, i, last_kernel_);
    for (const ResolvedItem& item : pass.reductions) emit_item(item, i, no_task);
    accumulate(pass, i);
    for (const ValueId held : pass.pass->held) {
      const BufferIndex buffer = buffer_of(held, i);
      // A unit that nothing reads in backward is gathered after the last kernel, for nothing.
      const bool is_there = buffers_[at(buffer)].written_by < last_kernel_;
      if (is_there) use(buffer, last_kernel_, Stream::compute);
    }
    segment_ends_.push_back(last_kernel_);
    segment_reductions_.push_back(last_reduction_);
  }

  void accumulate(const ResolvedPass& pass, std::int64_t i) {
    if (microbatch_ == 0) {
      for (const auto& [sum, summand] : pass.pass->sums) entry(sum, i) = buffer_of(summand, i);
    } else {
      for (const ResolvedItem& item : pass.additions) emit_item(item, i, no_task);
    }
    if (microbatch_ + 1 < microbatches_) return;
    for (const ResolvedItem& item : pass.last_reductions) emit_item(item, i, no_task);
  }

  void emit_gathers(const ResolvedPass& pass, std::int64_t i, TaskId window) {
    for (const ResolvedItem& item : pass.gathers) emit_item(item, i, window);
  }

  static bool reads_gathered(const Item& item, const ResolvedPass& pass) {
    for (const ResolvedItem& gather : pass.gathers) {
      for (const ValueId result : gather.item->results) {
        if (std::count(item.operands.begin(), item.operands.end(), result) > 0) return true;
      }
    }
    return false;
  }

  // Reads what it does not write in place, and may thus be the last to read.
  bool may_give_back(const Item& item, std::int64_t i) {
    return std::any_of(item.operands.begin(), item.operands.end(), [&](ValueId operand) {
      return std::none_of(item.results.begin(), item.results.end(), [&](ValueId result) {
        return buffer_of(result, i) == buffer_of(operand, i);
      });
    });
  }

  void use(BufferIndex buffer, TaskId task, Stream stream) {
    if (buffer == no_buffer || task == no_task) return;
    TaskId& last = buffers_[at(buffer)].last_use[static_cast<std::size_t>(stream)];
    last = std::max(last, task);
  }

  void emit_item(const ResolvedItem& resolved, std::int64_t i, TaskId window) {
    const Item& item = *resolved.item;
    std::vector<TaskId>& after = after_;
    after.clear();
    if (window != no_task) after.push_back(window);
    for (const ValueId operand : item.operands) {
      const BufferIndex buffer = buffer_of(operand, i);
      assert(buffer != no_buffer && "an operand that nothing made");
      after.push_back(buffers_[at(buffer)].written_by);
    }
    for (const ValueId result : item.results) {
      if (value(result).storage == no_value) continue;
      // Written in place: whoever still reads the old content goes first.
      for (const TaskId reader : buffers_[at(buffer_of(result, i))].last_use)
        after.push_back(reader);
    }
    const bool computes = item.kind == TaskKind::kernel && item.stream == Stream::compute;
    if (computes) after.push_back(std::exchange(awaited_, no_task));
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    std::erase(after, no_task);

    Task task;
    task.kind = item.kind;
    task.phase = phase_;
    task.recompute = item.recompute;
    task.stream = static_cast<std::uint8_t>(item.stream);
    task.work = resolved.work;
    task.name = resolved.name;
    task.layer = static_cast<std::int32_t>(layer_);
    task.microbatch = static_cast<std::int32_t>(microbatch_);
    const TaskId id = program_.add_task(task, after);
    if (computes) last_kernel_ = id;

    for (const ValueId operand : item.operands) use(buffer_of(operand, i), id, item.stream);
    for (const ValueId result : item.results) {
      if (value(result).storage == no_value) entry(result, i) = open(result, i, id);
      const BufferIndex buffer = buffer_of(result, i);
      buffers_[at(buffer)].written_by = id;
      use(buffer, id, item.stream);
    }
    if (item.stream == Stream::reductions && may_give_back(item, i)) last_reduction_ = id;
  }

  void close_buffers() {
    for (const OpenBuffer& open : buffers_) {
      std::vector<TaskId> last;
      for (const TaskId task : open.last_use) {
        if (task != no_task && !open.persistent) last.push_back(task);
      }
      std::sort(last.begin(), last.end());
      program_.add_buffer(open.buffer, last);
    }
  }

  const SpmdStep& step_;
  const Workload& workload_;
  int prefetch_;
  Plan plan_;
  Program program_;
  std::map<std::string, std::int32_t> name_ids_;
  std::vector<std::int32_t> value_names_;  // of values that have had a buffer
  std::vector<TaskId> after_;              // of the task that is being written
  std::vector<ResolvedPass> passes_;       // forward, backward, optimizer of every block
  std::vector<OpenBuffer> buffers_;
  Frame shared_;
  std::vector<std::vector<Frame>> frames_;  // of every instance of every repeated block
  Handover previous_;
  std::vector<TaskId> segment_ends_;        // last kernel of every segment so far
  std::vector<TaskId> segment_reductions_;  // last_reduction_ of every segment so far
  TaskId last_kernel_ = no_task;
  TaskId last_reduction_ = no_task;  // of this segment that gives memory back
  TaskId awaited_ = no_task;         // by the next kernel
  Phase phase_ = Phase::forward;
  std::int64_t layer_ = -1;
  std::int64_t microbatch_ = 0;
  std::int64_t microbatches_ = 1;
};

}  // namespace

void check_task_count(const SpmdStep& step, const Workload& workload, std::int64_t microbatches,
                      const Place& place) {
  const auto count_of = [](auto number) { return static_cast<double>(number); };
  double tasks = 0;
  for (std::size_t b = 0; b < step.blocks.size(); ++b) {
    const BlockProgram& block = step.blocks[b];
    const double layers = count_of(workload.blocks[b].instances());
    for (const BlockPass* pass : {&block.forward, &block.backward, &block.optimizer}) {
      const double times = pass == &block.optimizer ? 1 : count_of(microbatches);
      tasks += layers * (times * (count_of(pass->gathers.size()) + count_of(pass->body.size()) +
                                  count_of(pass->reductions.size())) +
                         (times - 1) * count_of(pass->additions.size()) +
                         count_of(pass->last_reductions.size()));
    }
  }
  if (tasks <= most_tasks) return;
  throw InputError(place, fmt::format("a step in {} microbatches has {:.3g} tasks, more than "
                                      "{:.3g} are not planned",
                                      microbatches, tasks, most_tasks));
}

Plan emit(const SpmdStep& step, const Workload& workload, const Mesh& mesh,
          const PipelineSchedule& schedule, int prefetch) {
  return Emitter(step, workload, mesh, prefetch).run(schedule);
}

}  // namespace shardsim
