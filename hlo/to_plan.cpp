#include "hlo/to_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/index.hpp"
#include "hlo/collective_table.hpp"
#include "hlo/cost.hpp"
#include "hlo/host_copy.hpp"
#include "hlo/memory.hpp"
#include "hlo/opcodes.hpp"
#include "hlo/trip_count.hpp"
#include "hlo/unrolled_steps.hpp"
#include "plan/read_mesh.hpp"
#include "plan/stream_order.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_tasks = std::int64_t{1} << 22;
constexpr std::int64_t most_steps = std::int64_t{1} << 26;  // instructions walked over
constexpr double most_moved_bytes = 1e18;  // moved and sent in all: sums stay within 64 bits
constexpr std::uint8_t compute = 0;
constexpr std::uint8_t communication = 1;
constexpr std::uint8_t to_host = 2;  // these two where there are asynchronous copies
constexpr std::uint8_t from_host = 3;

// Elements of a tuple apart; empty for arrays, and for tuples made at once.
struct Value {
  Ready whole;
  std::vector<Ready> elements;

  [[nodiscard]] const Ready& element(std::size_t index) const {
    return index < elements.size() ? elements[index] : whole;
  }
};

class Emitter {
 public:
  Emitter(const HloModule& module, const HloImportOptions& options, Plan& plan)
      : module_(module),
        options_(options),
        plan_(plan),
        table_(module, plan),
        costs_(module),
        host_copies_(module) {
    scheduled_ = is_scheduled(module);
    kernels_.resize(module.instructions().size(), -1);
    labels_.resize(module.instructions().size());
    program_.name = "all";
    program_.streams = {"compute", "communication"};
  }

  void run() {
    if (unrolled_steps(module_) > static_cast<double>(most_steps)) {
      module_.source().fail(
          module_.computation(module_.entry()).name,
          fmt::format("more than {} instructions when loops are unrolled", most_steps));
    }
    (void)run_computation(module_.entry(), {});
    add_entry_buffers(module_, options_.temporaries, plan_, program_);
    plan_.programs.push_back(std::move(program_));
    write_notes();
  }

 private:
  struct Label {
    std::int32_t name = -1;
    Phase phase = Phase::forward;
    bool recompute = false;
  };

  struct Run {
    const HloComputation& computation;
    const std::vector<Value>& arguments;
    std::vector<Value> values;

    Value& of(HloId id) { return values[at(id - computation.first)]; }
  };

  Value run_computation(HloComputationId id, const std::vector<Value>& arguments) {
    const HloComputation& computation = module_.computation(id);
    Run run{computation, arguments, {}};
    run.values.resize(static_cast<std::size_t>(computation.end - computation.first));
    for (HloId i = computation.first; i < computation.end; ++i) run.of(i) = step(run, i);
    return run.of(computation.root);
  }

  [[noreturn]] void too_large(HloId where) const {
    module_.source().fail(module_.instruction(where).name,
                          fmt::format("more than {} tasks when loops are unrolled", most_tasks));
  }

  Value operands_ready(Run& run, HloId id) const {
    Value all;
    for (const HloId operand : module_.operands(id)) all.whole.join(run.of(operand).whole);
    return all;
  }

  Value step(Run& run, HloId id) {
    const std::string_view opcode = module_.instruction(id).opcode;
    if (opcode == "parameter") {
      const std::size_t number = parameter_number(module_, id);
      return number < run.arguments.size() ? run.arguments[number] : Value{};
    }
    if (opcode == "get-tuple-element") {
      return {run.of(module_.operand(id, 0)).element(tuple_index(module_, id)), {}};
    }
    if (opcode == "tuple") return make_tuple(run, id);
    if (opcode == "while") return run_loop(run, id);
    if (opcode == "conditional") return run_branches(run, id);
    if (opcode == "call") return run_call(run, id, module_.callee(id, "to_apply"));
    if (const auto copy = host_copies_.find(id)) return run_host_copy(run, id, *copy);
    if (opcode == "fusion" || opcode == "fusion-start") return run_fusion(run, id);
    if (opcode == "async-start") return run_async(run, id);
    if (collective_opcode(opcode)) return run_collective(run, id);
    if (opcode == "send" || opcode == "recv" || opcode == "infeed" || opcode == "outfeed") {
      ++transfers_[std::string(opcode)];
      return operands_ready(run, id);
    }
    if (is_free(opcode) ||
        (opcode == "custom-call" && is_marker(custom_call_target(module_, id)))) {
      if (custom_call_target(module_, id) == "annotate_device_placement") ++placements_;
      // One operand: a view of it, whose elements stay apart.
      if (module_.operands(id).size() == 1) return run.of(module_.operand(id, 0));
      return operands_ready(run, id);
    }
    return emit_kernel(operands_ready(run, id).whole, id);
  }

  Value make_tuple(Run& run, HloId id) const {
    Value value;
    for (const HloId operand : module_.operands(id)) {
      value.elements.push_back(run.of(operand).whole);
      value.whole.join(value.elements.back());
    }
    return value;
  }

  Value run_call(Run& run, HloId id, HloComputationId callee) {
    std::vector<Value> arguments;
    for (const HloId operand : module_.operands(id)) arguments.push_back(run.of(operand));
    return run_computation(callee, arguments);
  }

  Value run_loop(Run& run, HloId id) {
    const HloComputationId body = module_.callee(id, "body");
    const HloComputationId condition = module_.callee(id, "condition");
    const auto count = trip_count(module_, id);
    if (!count) ++unknown_loops_[std::string(module_.instruction(id).name)];
    Value state = run.of(module_.operand(id, 0));
    const std::int32_t outer_layer = layer_;
    const std::int32_t outer_microbatch = microbatch_;
    ++loop_depth_;
    const auto before = static_cast<std::int64_t>(program_.tasks.size());
    for (std::int64_t i = 0; i < count.value_or(1); ++i) {
      // Every iteration makes as many tasks as the first: too many show before they are made.
      const std::int64_t made = static_cast<std::int64_t>(program_.tasks.size()) - before;
      if (i == 1 && made > (most_tasks - before) / *count) too_large(id);
      (loop_depth_ == 1 ? layer_ : microbatch_) = static_cast<std::int32_t>(i);
      (void)run_computation(condition, {state});
      state = run_computation(body, {state});
    }
    --loop_depth_;
    layer_ = outer_layer;
    microbatch_ = outer_microbatch;
    return state;
  }

  Value run_branches(Run& run, HloId id) {
    ++conditionals_;
    const std::vector<HloComputationId> branches = branches_of(module_, id);
    Value joined;
    joined.whole = run.of(module_.operand(id, 0)).whole;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      Value argument = run.of(module_.operand(id, i + 1));
      joined.whole.join(run_computation(branches[i], {argument}).whole);
    }
    return joined;
  }

  Value run_fusion(Run& run, HloId id) {
    const HeldCollectives& held = table_.held(module_.callee(id, "calls"));
    const Ready ready = operands_ready(run, id).whole;
    if (held.collectives.empty()) return emit_kernel(ready, id);
    Value value{ready, {}};
    bool is_step = false;
    for (const HloId collective : held.collectives) {
      const bool spread = table_.is_spread(collective);
      is_step = is_step || (spread && !held.starts);
      if (spread && !held.starts) continue;
      value.whole.join(emit_collective(ready, collective, /*asynchronous=*/held.starts));
    }
    if (is_step && costs_.operations(id).flops > Flops(0)) return emit_kernel(ready, id);
    return value;
  }

  Value run_async(Run& run, HloId id) {
    const HloComputationId callee = module_.callee(id, "calls");
    const HeldCollectives& held = table_.held(callee);
    const Ready ready = operands_ready(run, id).whole;
    if (held.collectives.empty()) return run_call(run, id, callee);
    Value value{ready, {}};
    for (const HloId collective : held.collectives) {
      value.whole.join(emit_collective(ready, collective, /*asynchronous=*/true));
    }
    return value;
  }

  Value run_collective(Run& run, HloId id) {
    const Ready ready = operands_ready(run, id).whole;
    const std::string_view opcode = module_.instruction(id).opcode;
    const bool starts = opcode != *collective_opcode(opcode);
    const bool is_sync =
        module_.attribute(id, "backend_config").find("\"is_sync\":true") != std::string_view::npos;
    return {emit_collective(ready, id, starts && !is_sync), {}};
  }

  Value run_host_copy(Run& run, HloId id, const HostCopy& copy) {
    Ready ready = operands_ready(run, id).whole;
    Task task;
    task.kind = copy.to_host ? TaskKind::to_host : TaskKind::from_host;
    task.stream = compute;
    if (copy.asynchronous) {
      task.stream = copy.to_host ? to_host : from_host;
      if (program_.streams.size() <= from_host) {
        program_.streams.insert(program_.streams.end(), {"to host", "from host"});
      }
      if (scheduled_) ready.last[compute] = std::max(ready.last[compute], last_computed_);
    }
    std::int32_t& kernel = kernels_[at(id)];
    if (kernel < 0) {
      kernel = static_cast<std::int32_t>(plan_.kernels.size());
      plan_.kernels.push_back({"copy", KernelClass::memory, copy.dtype, Flops(0), copy.bytes});
    }
    task.work = kernel;
    return {emit(task, copy.bytes, ready, id), {}};
  }

  Ready emit_collective(const Ready& ready, HloId id, bool asynchronous) {
    Task task;
    task.kind = TaskKind::collective;
    task.work = table_.entry(id);
    task.stream = asynchronous || !scheduled_ ? communication : compute;
    return emit(task, plan_.collectives[at(task.work)].payload, ready, id);
  }

  Value emit_kernel(const Ready& ready, HloId id) {
    std::int32_t& kernel = kernels_[at(id)];
    if (kernel < 0) {
      kernel = static_cast<std::int32_t>(plan_.kernels.size());
      plan_.kernels.push_back(costs_.kernel(id));
      if (host_copies_.touches_host(id)) ++on_host_;
      const std::string unknown = costs_.operations(id).unknown;
      if (!unknown.empty()) ++unknown_work_[unknown];
    }
    Task task;
    task.kind = TaskKind::kernel;
    task.work = kernel;
    task.stream = compute;
    const Bytes bytes = plan_.kernels[at(task.work)].bytes;
    return {emit(task, bytes, ready, id), {}};
  }

  Ready emit(Task task, Bytes bytes, const Ready& ready, HloId id) {
    if (static_cast<std::int64_t>(program_.tasks.size()) >= most_tasks) too_large(id);
    moved_ += static_cast<double>(bytes.count());
    if (moved_ > most_moved_bytes) {
      module_.source().fail(module_.instruction(id).name, "more than 1e18 bytes moved in all");
    }
    const Label& label = label_of(id);
    task.name = label.name;
    task.layer = layer_;
    task.microbatch = microbatch_;
    task.phase = label.phase;
    task.recompute = label.recompute;
    if (task.stream == compute) last_computed_ = static_cast<TaskId>(program_.tasks.size());
    return order_.add(program_, task, ready);
  }

  // JAX says in op_name what belongs to the backward pass and what is computed again there.
  const Label& label_of(HloId id) {
    Label& label = labels_[at(id)];
    if (label.name >= 0) return label;
    const std::string op_name = module_.op_name(id);
    if (op_name.find("transpose(") != std::string::npos) label.phase = Phase::backward;
    label.recompute = op_name.find("rematted_computation") != std::string::npos;
    const std::string_view name = module_.instruction(id).name;
    const auto [index, is_first] =
        names_.emplace(name, static_cast<std::int32_t>(plan_.names.size()));
    if (is_first) plan_.names.emplace_back(name);
    label.name = index->second;
    return label;
  }

  void write_notes() {
    plan_.notes.push_back(memory_note(entry_memory(module_)));
    if (!scheduled_ && !options_.temporaries) {
      plan_.notes.emplace_back(
          "the module is not scheduled: memory between arguments and results is not in the plan");
    }
    for (const std::string& note : table_.notes()) plan_.notes.push_back(note);
    for (const auto& [loop, times] : unknown_loops_) {
      plan_.notes.push_back(
          fmt::format("loop {}: trip count unknown, its body is counted once", loop));
    }
    if (conditionals_ > 0) {
      plan_.notes.push_back(
          fmt::format("conditionals run {} times: all branches are counted", conditionals_));
    }
    for (const auto& [what, count] : unknown_work_) {
      plan_.notes.push_back(
          fmt::format("{} times {}: operations unknown, only bytes are counted", count, what));
    }
    if (on_host_ > 0) {
      plan_.notes.push_back(fmt::format(
          "{} kernels read or write the host's memory: charged as the device's", on_host_));
    }
    if (placements_ > 0) {
      plan_.notes.push_back(
          fmt::format("{} times annotate_device_placement: copies to and from hosts are in the "
                      "compiled program only",
                      placements_));
    }
    for (const auto& [opcode, count] : transfers_) {
      plan_.notes.push_back(fmt::format("{} \"{}\": not in the plan", count, opcode));
    }
  }

  const HloModule& module_;
  const HloImportOptions& options_;
  Plan& plan_;
  CollectiveTable table_;
  HloCostModel costs_;
  HostCopies host_copies_;
  Program program_;
  bool scheduled_ = false;
  double moved_ = 0;
  std::int32_t layer_ = -1;
  std::int32_t microbatch_ = 0;
  int loop_depth_ = 0;
  StreamOrder order_;
  std::vector<std::int32_t> kernels_;  // by instruction, -1 for none
  std::vector<Label> labels_;          // by instruction
  std::unordered_map<std::string_view, std::int32_t> names_;
  std::map<std::string, std::int64_t> unknown_loops_;
  std::map<std::string, std::int64_t> unknown_work_;
  std::map<std::string, std::int64_t> transfers_;
  std::int64_t conditionals_ = 0;
  std::int64_t on_host_ = 0;     // instructions that compute with arrays on hosts
  std::int64_t placements_ = 0;  // annotations
  TaskId last_computed_ = before_the_step;
};

}  // namespace

Plan plan_from_hlo(const HloModule& module, const HloImportOptions& options) {
  const HloDevices devices = devices_of(module);
  Plan plan;
  plan.subject.model = module.name();
  plan.subject.strategy = "compiled";
  plan.mesh = options.mesh.axes().empty() ? Mesh({{"device", devices.count()}}) : options.mesh;
  if (plan.mesh.devices() != devices.count()) {
    module.source().fail(module.source().text,
                         fmt::format("the module runs on {} devices, the mesh {} has {}",
                                     devices.count(), describe(plan.mesh), plan.mesh.devices()));
  }
  Emitter(module, options, plan).run();
  verify(plan);
  return plan;
}

}  // namespace shardsim
