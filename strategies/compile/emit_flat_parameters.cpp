// Parameters in flat parts: gathered when modules are entered, for them and ahead, given back when
// they are left (runtime/parameter_fetches.hpp), as DeepSpeed's ZeRO 3 does it:
//
//   several in a call   parts are put side by side, gathered, and what has come is dealt out to the
//                       parameters when a module is entered that needs one of them
//   one alone           gathered to where it is read
//   qwZ                 parts are quantized to 8 bits, sent with fp32 scales, and made whole again
//   hpZ                 on being given back a parameter leaves a larger part, of neighbours, from
//                       which it is gathered until the optimizer's step
//
// A call begins once what was issued before it has computed: parameters that are there at a time
// are as many as on the host that issues them. A module waits for all calls that were issued before
// it, as the coordinator's wait_stream has it.
// Source: deepspeed/runtime/zero/partition_parameters.py (0.19.8).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"
#include "strategies/layout/expert_layout.hpp"

namespace shardsim {
namespace {

// Of a quantized tensor: as few as are 8000 elements each, or more, so that they divide it in
// eights (CUDAQuantizer in partition_parameters.py).
std::int64_t quantization_groups(std::int64_t elements) {
  constexpr std::int64_t target = 8000;
  std::int64_t groups = (elements + target - 1) / target;
  while (groups < elements && elements % (8 * groups) != 0) ++groups;
  while (elements % (16 * groups) == 0 && elements > target * groups) groups *= 2;
  return groups;
}

}  // namespace

void ProgramEmitter::open_flat_parameters() {
  if (!input_.runtime.flat_parameters) return;
  const FlatParameters& rule = *input_.runtime.flat_parameters;
  const std::int64_t devices = Mesh::size_of(input_.data_axes);
  walk_ = walk_modules(input_.workload, input_.step);
  std::vector<std::int64_t> elements;
  for (const auto& [tensor, ordinal] : walk_.parameters) {
    const Value& value = buffers_.value(input_.step.parameters.at(tensor).stored);
    elements.push_back(value.bytes.count() / size_of(value.dtype).count());
  }
  const std::vector<bool> whole = stay_whole(elements, rule);
  for (const auto& [tensor, ordinal] : walk_.parameters) {
    FlatParameter flat;
    flat.value = input_.step.parameters.at(tensor).stored;
    flat.ordinal = ordinal;
    const Value& value = buffers_.value(flat.value);
    flat.elements = elements[flat_.size()];
    flat.part = (flat.elements + devices - 1) / devices;
    flat.stays_whole = whole[flat_.size()];
    BufferIndex& entry = buffers_.entry(flat.value, ordinal);
    flat.stored = entry;
    if (flat.stays_whole && devices > 1) {
      Buffer part = buffers_[entry].buffer;
      part.name = tables_.name(value.name + " part");
      flat.stored = buffers_.open_of_program(part);
      buffers_[flat.stored].persistent = true;
    } else if (!flat.stays_whole) {
      entry = no_buffer;
    }
    buffers_[flat.stored].buffer.bytes = flat.part * size_of(value.dtype);
    buffers_[flat.stored].buffer.on_host = input_.runtime.parameters_on_host;
    if (walk_.frozen[flat_.size()]) keep_secondary(flat);
    flat_.push_back(flat);
  }
  fetches_ = plan_fetches(walk_, elements, rule, input_.schedule.shape.microbatches);
}

// Second parts of what is not trained stay: the optimizer's step ends those of its own parameters
// (invalidate_secondary_tensor).
void ProgramEmitter::keep_secondary(FlatParameter& flat) {
  if (input_.runtime.flat_parameters->secondary_shards == 0) return;
  flat.secondary = open_secondary(flat);
  buffers_[flat.secondary].persistent = true;
}

BufferIndex ProgramEmitter::open_secondary(const FlatParameter& flat) {
  const Value& value = buffers_.value(flat.value);
  const std::int64_t elements = flat.part * Mesh::size_of(input_.data_axes) /
                                input_.runtime.flat_parameters->secondary_shards;
  return open_buffer(value.name + " secondary part", BufferCategory::gathered_parameters,
                     elements * size_of(value.dtype));
}

// What is due before an item of a segment.
void ProgramEmitter::run_modules(std::size_t segment, std::size_t item) {
  const auto is_due = [&](const ModuleStep& step) {
    return step.phase == phase_ && step.segment == segment && step.item == item &&
           (step.enters || !step.at_the_end);
  };
  while (next_step_ < walk_.steps.size() && is_due(walk_.steps[next_step_])) {
    const bool enters = walk_.steps[next_step_].enters;
    const Fetch& due = fetches_[next_step_++];
    for (const std::size_t parameter : due.released) give_back_whole(parameter);
    if (!enters) continue;
    fetch(due.now, "parameters");
    deal_out(walk_.steps[next_step_ - 1].parameters);
    awaited_ = std::max(awaited_, last_gather_);
    fetch(due.ahead, "parameters ahead");
    if (!input_.runtime.reductions.buffer->overlaps) awaited_ = std::max(awaited_, last_gather_);
  }
}

// Those that have left a larger part in a call of their own, before the others.
void ProgramEmitter::fetch(const std::vector<std::size_t>& parameters, const std::string& name) {
  std::vector<std::size_t> from_secondary, from_stored;
  for (const std::size_t parameter : parameters) {
    const bool has_secondary = flat_[parameter].secondary != no_buffer;
    (has_secondary ? from_secondary : from_stored).push_back(parameter);
  }
  gather_parts(from_secondary, /*is_secondary=*/true, name);
  gather_parts(from_stored, /*is_secondary=*/false, name);
}

Bucket ProgramEmitter::as_bucket(const std::vector<std::size_t>& parameters, const AxisList& axes,
                                 std::int64_t elements) const {
  Bucket bucket;
  bucket.axes = axes;
  bucket.elements = elements;
  for (const std::size_t parameter : parameters) {
    const auto& [tensor, ordinal] = walk_.parameters[parameter];
    const int block = input_.workload.tensors[at(tensor)].block;
    bucket.parameters.push_back({{block, ordinal}, {tensor}, flat_[parameter].elements, axes});
  }
  return bucket;
}

BufferIndex ProgramEmitter::open_staging(const std::string& name, Bytes bytes) {
  const BufferIndex buffer = open_buffer(name, BufferCategory::communication, bytes);
  buffers_[buffer].buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
  return buffer;
}

BufferIndex ProgramEmitter::open_whole(FlatParameter& parameter, std::int64_t elements) {
  const BufferIndex buffer =
      buffers_.open(parameter.value, parameter.ordinal, static_cast<TaskId>(program_.tasks.size()));
  Buffer& whole = buffers_[buffer].buffer;
  whole.category = BufferCategory::gathered_parameters;
  whole.bytes = elements * size_of(buffers_.value(parameter.value).dtype);
  buffers_.entry(parameter.value, parameter.ordinal) = buffer;
  return buffer;
}

TaskId ProgramEmitter::emit_copy(std::string_view op, DType dtype, Bytes bytes,
                                 const std::string& name, const std::vector<BufferIndex>& read,
                                 const std::vector<BufferIndex>& written, Stream stream) {
  const Kernel kernel{std::string(op), KernelClass::memory, dtype, Flops(0), bytes};
  return emit_kernel(kernel, name, read, written, stream);
}

void ProgramEmitter::gather_parts(const std::vector<std::size_t>& parameters, bool is_secondary,
                                  const std::string& name) {
  if (parameters.empty()) return;
  const FlatParameters& rule = *input_.runtime.flat_parameters;
  if (rule.one_by_one && parameters.size() > 1) {
    for (const std::size_t one : parameters) gather_parts({one}, is_secondary, name);
    return;
  }
  if (input_.data_axes.empty() && !rule.quantized && !input_.runtime.parameters_on_host) {
    for (const std::size_t p : parameters) {  // one device has them whole (NoGatherHandle)
      buffers_.entry(flat_[p].value, flat_[p].ordinal) = flat_[p].stored;
    }
    return;
  }
  PartsCall call;
  call.name = name;
  call.parameters = parameters;
  call.axes = is_secondary ? split_shards(input_.data_axes, rule.secondary_shards).within
                           : input_.data_axes;
  call.dtype = buffers_.value(flat_[parameters.front()].value).dtype;
  for (const std::size_t p : parameters) {
    const bool is_there = input_.runtime.parameters_on_host;
    call.parts.push_back(is_secondary ? flat_[p].secondary
                         : is_there   ? bring_part(p)
                                      : flat_[p].stored);
    call.elements += flat_[p].part * Mesh::size_of(input_.data_axes);
  }
  const bool is_alone = parameters.size() == 1;
  if (is_alone && !rule.quantized) {
    const BufferIndex whole = open_whole(flat_[parameters.front()], call.elements);
    last_gather_ = gather_call(call, call.dtype, call.parts, whole);
    return;
  }
  const BufferIndex flat = rule.quantized ? gather_quantized(call) : gather_side_by_side(call);
  if (is_alone) return;
  undealt_.push_back({call, flat, call.parameters});
  if (rule.quantized) deal_out(call.parameters);
}

void ProgramEmitter::end_with_last_task(BufferIndex buffer) {
  buffers_.use(buffer, static_cast<TaskId>(program_.tasks.size()) - 1,
               program_.tasks.back().stream);
}

// What several parameters were gathered in is dealt out when the first of them is waited for, and
// ends when all have been, each by the module that reads it (partitioned_param_coordinator.py,
// __inflight_param_registry, which holds the call's handle for each).
void ProgramEmitter::deal_out(const std::vector<std::size_t>& parameters) {
  const auto is_awaited = [&](const UndealtCall& undealt) {
    const std::vector<std::size_t>& of = undealt.call.parameters;
    return std::find_first_of(of.begin(), of.end(), parameters.begin(), parameters.end()) !=
           of.end();
  };
  for (UndealtCall& undealt : undealt_) {
    if (!is_awaited(undealt)) continue;
    for (const std::size_t p : parameters) std::erase(undealt.left, p);
    if (undealt.left.empty() && undealt.is_dealt) end_with_last_task(undealt.flat);
    if (std::exchange(undealt.is_dealt, true)) continue;
    const PartsCall& call = undealt.call;
    std::vector<BufferIndex> whole;
    for (const std::size_t p : call.parameters) {
      whole.push_back(open_whole(flat_[p], flat_[p].elements));
    }
    move_parts(call, "copy", 2 * (call.elements * size_of(call.dtype)), {undealt.flat}, whole);
  }
  std::erase_if(undealt_, [](const UndealtCall& undealt) { return undealt.left.empty(); });
}

TaskId ProgramEmitter::gather_call(const PartsCall& call, DType as,
                                   const std::vector<BufferIndex>& read, BufferIndex to) {
  if (call.axes.empty()) {  // one device gathers from itself
    return emit_copy("copy", as, 2 * (call.elements * size_of(as)), call.name, read, {to},
                     Stream::gathers);
  }
  const Bucket bucket = as_bucket(call.parameters, call.axes, call.elements);
  const Collective collective{CollectiveKind::all_gather,
                              call.axes,
                              {},
                              {},
                              as,
                              call.elements * size_of(as),
                              parts_of(bucket, input_.workload, size_of(as), call.elements),
                              "parameters of modules: " + range_of(bucket, input_.workload),
                              {},
                              Parallelism::data};
  return emit_collective(collective, Stream::gathers, call.name, {to}, read);
}

void ProgramEmitter::move_parts(const PartsCall& call, const char* op, Bytes bytes,
                                const std::vector<BufferIndex>& read,
                                const std::vector<BufferIndex>& written) {
  last_gather_ = emit_copy(op, call.dtype, bytes, call.name, read, written, Stream::gathers);
}

BufferIndex ProgramEmitter::gather_side_by_side(const PartsCall& call) {
  const Bytes bytes = call.elements * size_of(call.dtype);
  const BufferIndex flat = open_staging("gathered parameters", bytes);
  const std::int64_t part = call.elements / Mesh::size_of(call.axes);
  move_parts(call, "copy", 2 * (part * size_of(call.dtype)), call.parts, {flat});
  gather_call(call, call.dtype, {}, flat);
  return flat;
}

// In 8 bits, with scales in a call of their own.
BufferIndex ProgramEmitter::gather_quantized(const PartsCall& call) {
  const std::int64_t devices = Mesh::size_of(call.axes);
  const std::int64_t part = call.elements / devices;
  if (part % 8 != 0) {
    throw InputError({"", "/strategy/qwz"},
                     fmt::format("DeepSpeed quantizes parts of parameters whose elements are a "
                                 "multiple of 8; one gather here is of parts of {}",
                                 part));
  }
  const std::int64_t scales = quantization_groups(part) * devices;
  const Bytes bytes = call.elements * size_of(call.dtype);
  const Bytes narrow_bytes = call.elements * size_of(DType::i8);
  const Bytes scale_bytes = scales * size_of(DType::f32);
  const BufferIndex narrow = open_staging("quantized parameters", narrow_bytes + scale_bytes);
  move_parts(call, "quantize", Bytes((bytes + narrow_bytes + scale_bytes).count() / devices),
             call.parts, {narrow});
  gather_call(call, DType::i8, {}, narrow);
  if (devices > 1) {
    emit_collective({CollectiveKind::all_gather,
                     call.axes,
                     {},
                     {},
                     DType::f32,
                     scale_bytes,
                     {{"scales", scale_bytes}},
                     "scales of quantized parameters",
                     {},
                     Parallelism::data},
                    Stream::gathers, call.name, {narrow});
  }
  const BufferIndex flat = call.parameters.size() == 1
                               ? open_whole(flat_[call.parameters.front()], call.elements)
                               : open_staging("gathered parameters", bytes);
  move_parts(call, "dequantize", narrow_bytes + scale_bytes + bytes, {narrow}, {flat});
  return flat;
}

// Once what has been issued is through, though nothing may have read it of late (a table, in
// backward). Where there are second parts, one is cut out of it first.
void ProgramEmitter::give_back_whole(std::size_t parameter) {
  FlatParameter& flat = flat_[parameter];
  BufferIndex& entry = buffers_.entry(flat.value, flat.ordinal);
  if (entry == flat.stored) {
    entry = no_buffer;
    return;
  }
  if (buffers_[entry].written_by < last_kernel_) {
    buffers_.use(entry, last_kernel_, static_cast<std::size_t>(Stream::compute));
  }
  const std::int64_t shards = input_.runtime.flat_parameters->secondary_shards;
  if (shards > 0 && flat.secondary == no_buffer) {
    const Value& value = buffers_.value(flat.value);
    const std::string name = value.name + " secondary part";
    flat.secondary = open_secondary(flat);
    const Bytes bytes = buffers_[flat.secondary].buffer.bytes;
    buffers_[flat.secondary].buffer.layer = buffers_[entry].buffer.layer;
    buffers_[flat.secondary].buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
    emit_copy("copy", value.dtype, 2 * bytes, name, {entry}, {flat.secondary}, Stream::compute);
  }
  entry = no_buffer;
}

// Of experts autograd keeps a view of what was gathered, which thus lies there until backward has
// read it, beside what is gathered then; torch.nn.Linear is a function of its own that keeps none
// (deepspeed/runtime/zero/linear.py).
void ProgramEmitter::keep_viewed(const Item& item, std::int64_t i) {
  if (item.recompute || item.kind != TaskKind::kernel) return;
  for (const ValueId operand : item.operands) {
    const TensorId tensor = buffers_.value(operand).tensor;
    const bool is_parameter =
        tensor != no_tensor && input_.workload.tensors[at(tensor)].role == TensorRole::parameter;
    if (!is_parameter || !is_of_routed_experts(input_.workload, tensor)) continue;
    const ParameterInstance key{tensor, static_cast<std::int32_t>(i)};
    if (phase_ == Phase::forward) {
      viewed_[key] = buffers_.buffer_of(operand, i);
    } else if (const auto view = viewed_.find(key); view != viewed_.end()) {
      buffers_.use(view->second, last_kernel_, static_cast<std::size_t>(Stream::compute));
    }
  }
}

// A microbatch is through: what is there still.
void ProgramEmitter::give_back_all() {
  if (flat_.empty()) return;
  next_step_ = 0;
  for (const UndealtCall& undealt : undealt_) end_with_last_task(undealt.flat);
  undealt_.clear();
  for (std::size_t p = 0; p < flat_.size(); ++p) {
    const BufferIndex whole = buffers_.buffer_of(flat_[p].value, flat_[p].ordinal);
    if (flat_[p].stays_whole || whole == no_buffer) continue;
    // The last bucket has been reduced since.
    end_with_last_task(whole);
    give_back_whole(p);
  }
}

// Of parameters that stay whole: updated in parts, each is gathered by itself. Second parts end.
void ProgramEmitter::gather_whole() {
  set_phase(Phase::optimizer);
  for (const FlatParameter& flat : flat_) {
    if (flat.secondary == no_buffer) continue;
    end_with_last_task(flat.secondary);
  }
  const std::int64_t devices = Mesh::size_of(input_.data_axes);
  if (devices == 1) return;
  for (std::size_t p = 0; p < flat_.size(); ++p) {
    const FlatParameter& flat = flat_[p];
    if (!flat.stays_whole) continue;
    const DType dtype = buffers_.value(flat.value).dtype;
    const std::int64_t elements = flat.part * devices;
    const Bucket call = as_bucket({p}, input_.data_axes, elements);
    const BufferIndex part = input_.runtime.parameters_on_host ? bring_part(p) : flat.stored;
    emit_collective(
        {CollectiveKind::all_gather,
         input_.data_axes,
         {},
         {},
         dtype,
         elements * size_of(dtype),
         parts_of(call, input_.workload, size_of(dtype), elements),
         "a parameter that stays whole, updated in parts: " + range_of(call, input_.workload),
         {},
         Parallelism::data},
        Stream::gathers, "updated parameters", {buffers_.buffer_of(flat.value, flat.ordinal)},
        {part});
  }
}

}  // namespace shardsim
