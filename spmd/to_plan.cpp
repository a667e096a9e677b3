#include "spmd/to_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/argument_use.hpp"
#include "plan/stream_order.hpp"
#include "spmd/collective_plan.hpp"
#include "spmd/memory/fusion.hpp"
#include "spmd/memory/kernel_work.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/flops.hpp"
#include "stablehlo/loops.hpp"
#include "stablehlo/op_rules.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::RegionId;
using stablehlo::ValueId;

constexpr std::int64_t most_tasks = std::int64_t{1} << 22;
constexpr std::uint8_t compute = 0;
constexpr std::uint8_t communication = 1;

constexpr std::array<std::string_view, 9> renames = {
    "stablehlo.constant",  "stablehlo.reshape", "stablehlo.optimization_barrier",
    "spmd.copy",           "spmd.offset",       "stablehlo.iota",
    "stablehlo.after_all", "stablehlo.tuple",   "stablehlo.get_tuple_element"};

bool is_rename(const Op& op) {
  return std::find(renames.begin(), renames.end(), op.name) != renames.end();
}

class Emitter {
 public:
  Emitter(const Module& module, Plan& plan, std::vector<std::int64_t> positions,
          std::optional<MemoryTarget> target, std::optional<Bytes> capacity)
      : module_(module),
        function_(module.functions.front()),
        plan_(plan),
        target_(target),
        capacity_(capacity),
        positions_(std::move(positions)),
        ready_(function_.values.size()),
        work_(function_.ops.size(), -1),
        first_task_(function_.ops.size(), -1) {
    program_.name = "all";
    program_.streams = {"compute", "communication"};
  }

  void run() {
    if (target_) {
      memory_ = device_memory(module_, *target_, capacity_);
      fused_.emplace(module_, function_, *target_);
    }
    run_region(0);
    add_buffers();
    plan_.programs.push_back(std::move(program_));
    write_notes();
  }

 private:
  void run_region(RegionId id) {
    for (const OpId op : function_.regions[at(id)].ops) step(op);
  }

  [[nodiscard]] const Op& terminator(RegionId id) const {
    return function_.op(function_.regions[at(id)].ops.back());
  }

  void step(OpId id) {
    const Op& op = function_.op(id);
    if (op.results.empty()) return;
    if (first_task_[at(id)] < 0) first_task_[at(id)] = static_cast<TaskId>(program_.tasks.size());
    if (op.name == "stablehlo.while") return run_loop(op);
    if (op.name == "stablehlo.case" || op.name == "stablehlo.if") return run_branches(op);
    Ready ready;
    for (const ValueId operand : op.operands) ready.join(ready_[at(operand)]);
    if (is_collective(op)) {
      ready = emit(collective_task(id), ready, op);
    } else if (fused_ ? fused_->is_kernel(id) : !is_rename(op)) {
      ready = emit(kernel_task(id), ready, op);
    }
    for (const ValueId result : op.results) ready_[at(result)] = ready;
  }

  Task collective_task(OpId id) {
    if (work_[at(id)] < 0) {
      work_[at(id)] = static_cast<std::int32_t>(plan_.collectives.size());
      plan_.collectives.push_back(
          collective_of(module_, function_, function_.op(id), plan_.mesh, positions_));
    }
    Task task;
    task.kind = TaskKind::collective;
    task.stream = communication;
    task.work = work_[at(id)];
    return task;
  }

  Task kernel_task(OpId id) {
    if (work_[at(id)] < 0) {
      work_[at(id)] = static_cast<std::int32_t>(plan_.kernels.size());
      plan_.kernels.push_back(kernel_of(id));
    }
    Task task;
    task.kind = TaskKind::kernel;
    task.stream = compute;
    task.work = work_[at(id)];
    return task;
  }

  KernelWork work_of(OpId id) {
    if (fused_) return fused_->work_of(id);
    const Op& op = function_.op(id);
    KernelWork done{stablehlo::work_of(module_, function_, op), Bytes{0}};
    for (const ValueId operand : op.operands) done.bytes += bytes_of(operand);
    for (const ValueId result : op.results) done.bytes += bytes_of(result);
    return done;
  }

  Kernel kernel_of(OpId id) {
    const Op& op = function_.op(id);
    const KernelWork done = work_of(id);
    Kernel kernel;
    kernel.op = op.name.substr(op.name.find('.') + 1);
    kernel.bytes = done.bytes;
    kernel.dtype = dtype_of(op.results.front());
    kernel.flops = done.work.elementwise;
    if (done.work.matmul > Flops{0}) {
      kernel.kernel_class = KernelClass::matmul;
      kernel.dtype = dtype_of(op.operands.at(0));
      if (bits_of(dtype_of(op.operands.at(1))) > bits_of(kernel.dtype)) {
        kernel.dtype = dtype_of(op.operands.at(1));
      }
      kernel.flops = done.work.matmul;
      kernel.product = product_of(op);
    }
    if (op.name == "stablehlo.custom_call") {
      const stablehlo::Attribute* callee = find(op.attributes, "callee");
      ++unknown_calls_[callee == nullptr ? "" : callee->text];
    }
    return kernel;
  }

  // Nothing of a convolution, and of a dot of nothing.
  [[nodiscard]] std::optional<Product> product_of(const Op& op) const {
    if (op.name != "stablehlo.dot_general" && op.name != "stablehlo.dot") return std::nullopt;
    const stablehlo::DotSizes dot = stablehlo::dot_sizes(stablehlo::OpView(module_, function_, op));
    if (std::min({dot.batch, dot.m, dot.n, dot.k}) < 1) return std::nullopt;
    return Product{dot.batch, dot.m, dot.n, dot.k};
  }

  [[nodiscard]] DType dtype_of(ValueId value) const {
    return function_.type_of(value).dtype.value_or(DType::f32);
  }

  [[nodiscard]] Bytes bytes_of(ValueId value) const {
    const auto& type = function_.type_of(value);
    if (!type.is_tensor) return Bytes{0};
    return storage_bytes(type.elements(), type.dtype.value_or(DType::f32));
  }

  Ready emit(Task task, const Ready& ready, const Op& op) {
    if (static_cast<std::int64_t>(program_.tasks.size()) >= most_tasks) {
      throw InputError(module_.place_of(op),
                       fmt::format("more than {} tasks when loops are unrolled", most_tasks));
    }
    task.name = name_of(op);
    task.layer = layer_;
    task.microbatch = microbatch_;
    return order_.add(program_, task, ready);
  }

  std::int32_t name_of(const Op& op) {
    const std::string name = fmt::format("{}:{}", op.name.substr(op.name.find('.') + 1), op.line);
    const auto [found, is_new] =
        names_.emplace(name, static_cast<std::int32_t>(plan_.names.size()));
    if (is_new) plan_.names.push_back(name);
    return found->second;
  }

  void run_loop(const Op& op) {
    const RegionId condition = op.regions.at(0);
    const RegionId body = op.regions.at(1);
    const auto count = trip_count(function_, op);
    if (!count) unknown_loops_.push_back(op.line);
    std::vector<Ready> state;
    for (const ValueId operand : op.operands) state.push_back(ready_[at(operand)]);
    const std::int32_t outer_layer = layer_;
    const std::int32_t outer_microbatch = microbatch_;
    ++depth_;
    const auto before = static_cast<std::int64_t>(program_.tasks.size());
    for (std::int64_t i = 0; i < count.value_or(1); ++i) {
      // Every iteration makes as many tasks as the first: too many show before they are made.
      const std::int64_t made = static_cast<std::int64_t>(program_.tasks.size()) - before;
      if (i == 1 && made > (most_tasks - before) / *count) {
        throw InputError(module_.place_of(op),
                         fmt::format("more than {} tasks when loops are unrolled", most_tasks));
      }
      (depth_ == 1 ? layer_ : microbatch_) = static_cast<std::int32_t>(i);
      for (const RegionId region : {condition, body}) {
        const auto& arguments = function_.regions[at(region)].arguments;
        for (std::size_t k = 0; k < arguments.size(); ++k) ready_[at(arguments[k])] = state[k];
        run_region(region);
      }
      const Op& end = terminator(body);
      for (std::size_t k = 0; k < state.size(); ++k) state[k] = ready_[at(end.operands[k])];
    }
    --depth_;
    layer_ = outer_layer;
    microbatch_ = outer_microbatch;
    for (std::size_t k = 0; k < state.size(); ++k) ready_[at(op.results[k])] = state[k];
  }

  void run_branches(const Op& op) {
    ++conditionals_;
    Ready joined = ready_[at(op.operands.front())];
    for (const RegionId region : op.regions) {
      run_region(region);
      for (const ValueId value : terminator(region).operands) joined.join(ready_[at(value)]);
    }
    for (const ValueId result : op.results) ready_[at(result)] = joined;
  }

  void add_buffer(const ArgumentUse& use, Bytes bytes, TaskId allocated_by = before_the_step) {
    const auto [found, is_new] =
        names_.emplace(use.name, static_cast<std::int32_t>(plan_.names.size()));
    if (is_new) plan_.names.push_back(use.name);
    Buffer buffer;
    buffer.name = found->second;
    buffer.layer = use.layer;
    buffer.category = use.category;
    buffer.bytes = bytes;
    buffer.allocated_by = allocated_by;
    program_.add_buffer(buffer, {});
  }

  void add_arguments() {
    const auto& arguments = function_.regions.front().arguments;
    // By argument, the result that takes its place.
    std::vector<int> results(arguments.size(), -1);
    const std::vector<int> donors = donors_of_results(module_, function_);
    for (std::size_t i = 0; i < donors.size(); ++i) {
      if (donors[i] >= 0) results[at(donors[i])] = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool is_handed_on = results[i] >= 0;
      const stablehlo::Attribute* way =
          is_handed_on ? find(function_.results[at(results[i])].attributes, "jax.result_info")
                       : nullptr;
      const std::string name =
          way == nullptr || way->text.empty() ? fmt::format("argument {}", i) : way->text;
      add_buffer(use_of_argument(name, is_handed_on),
                 target_ ? allocated_bytes(function_.type_of(arguments[i]), *target_)
                         : bytes_of(arguments[i]));
    }
  }

  // What lies between arguments and results when most of it is alive. Compilers may make a buffer
  // earlier than the program does: when what needs most runs, all are there.
  void add_temporaries() {
    if (memory_.at_peak.empty() || program_.tasks.empty()) return;
    std::map<std::string, std::int64_t> alike;
    const auto kind = [&](const LiveBuffer& live) {
      return fmt::format("{} {}", live.op.substr(live.op.find('.') + 1), live.type);
    };
    for (const LiveBuffer& live : memory_.at_peak) ++alike[kind(live)];
    const auto last = static_cast<TaskId>(program_.tasks.size()) - 1;
    const TaskId peak = std::min(first_task_[at(memory_.peak_op)], last);
    for (const LiveBuffer& live : memory_.at_peak) {
      std::string name = kind(live);
      if (alike.at(name) == 1) name += fmt::format(", line {}", live.line);
      const bool is_sent = is_collective(function_.op(live.made_by));
      add_buffer(
          {.name = name,
           .category = is_sent ? BufferCategory::communication : BufferCategory::temporaries},
          live.bytes, std::min(first_task_[at(live.made_by)], peak));
    }
  }

  void add_buffers() {
    add_arguments();
    if (!target_) {
      plan_.notes.emplace_back(
          "no machine is given: memory between arguments and results is not in the plan");
      return;
    }
    if (memory_.outputs > memory_.aliased) {
      add_buffer({.name = "results that take no argument's place",
                  .category = BufferCategory::temporaries},
                 memory_.outputs - memory_.aliased);
    }
    add_temporaries();
    plan_.notes.push_back(
        fmt::format("per device {} bytes of arguments and {} of results, {} of them in the place "
                    "of arguments; temporaries are estimated from what a compiler would keep, and "
                    "listed as they are "
                    "when most is alive",
                    memory_.arguments.count(), memory_.outputs.count(), memory_.aliased.count()));
  }

  void write_notes() {
    plan_.notes.emplace_back(
        target_ ? "kernels are what XLA would fuse, an estimate: other ops are computed inside "
                  "those that read them; what a matmul's kernel does beside it costs no time"
                : "one kernel per op of the program: compilers fuse, so that memory-bound time is "
                  "too long");
    for (const int line : unknown_loops_) {
      plan_.notes.push_back(
          fmt::format("the loop of line {}: trip count unknown, its body is counted once", line));
    }
    if (conditionals_ > 0) {
      plan_.notes.push_back(
          fmt::format("conditionals run {} times: all branches are counted", conditionals_));
    }
    for (const auto& [name, count] : stablehlo::unknown_ops(module_)) {
      // Ours, and calls, which are told below.
      if (name.starts_with("spmd.") || name.starts_with("stablehlo.custom_call")) continue;
      plan_.notes.push_back(
          fmt::format("{} ops {}: unknown, computed whole on every device; only bytes are counted",
                      count, name));
    }
    for (const auto& [target, count] : unknown_calls_) {
      if (target == "annotate_device_placement") {
        plan_.notes.push_back(
            fmt::format("{} annotate_device_placement: what goes to the host and back is taken to "
                        "stay on the device; the compiled program has its copies",
                        count));
        continue;
      }
      plan_.notes.push_back(
          fmt::format("{} custom call{} of \"{}\": operations unknown, only bytes are counted",
                      count, count == 1 ? "" : "s", target));
    }
  }

  const Module& module_;
  const Function& function_;
  Plan& plan_;
  std::optional<MemoryTarget> target_;
  std::optional<Bytes> capacity_;
  DeviceMemory memory_;                // where the target is known
  std::optional<FusedProgram> fused_;  // likewise
  std::vector<std::int64_t> positions_;
  Program program_;
  std::vector<Ready> ready_;        // by value
  std::vector<std::int32_t> work_;  // by op: its kernel or collective, once made
  std::vector<TaskId> first_task_;  // by op: its first task, or the next where it has none
  std::map<std::string, std::int32_t> names_;
  StreamOrder order_;
  std::int32_t layer_ = -1;
  std::int32_t microbatch_ = 0;
  int depth_ = 0;
  std::int64_t conditionals_ = 0;
  std::vector<int> unknown_loops_;
  std::map<std::string, std::int64_t> unknown_calls_;
};

}  // namespace

Plan plan_of(const Module& local, std::optional<MemoryTarget> target,
             std::optional<Bytes> capacity) {
  Plan plan;
  plan.subject.model = local.name;
  plan.subject.strategy = "program";
  ProgramDevices devices = devices_of(local);
  plan.mesh = std::move(devices.mesh);
  Emitter(local, plan, std::move(devices.positions), target, capacity).run();
  verify(plan);
  return plan;
}

}  // namespace shardsim::spmd
