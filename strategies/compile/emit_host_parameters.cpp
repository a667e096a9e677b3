// Parts of parameters on the host, as DeepSpeed's ZeRO 3 offloads them (offload_param):
//
//   a gather    parts are copied to the device one by one before the call, in turn with other
//               calls; the host waits for each copy, and so does what it issues next
//   an update   writes them there: the host's own, or the device's, which copies what they have
//               become in their own type
//
// All parts lie there, of parameters that stay whole as well.
// Source: DeepSpeed 0.19.8, deepspeed/runtime/zero: partition_parameters.py
// (_all_gather_coalesced), stage3.py (_create_param_groups_fp16_flat_cpu_memory,
// _reassign_or_swap_out_partitioned_parameters).
#include <algorithm>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

TaskId ProgramEmitter::emit_host_copy_of(TaskKind kind, Bytes bytes, const std::string& name,
                                         const std::vector<BufferIndex>& read,
                                         const std::vector<BufferIndex>& written) {
  Task copy;
  copy.kind = kind;
  copy.stream = host_copies(kind);
  copy.work = tables_.kernel({"copy", KernelClass::memory, DType::u8, Flops(0), bytes});
  return emit_on(copy, name, read, written);
}

BufferIndex ProgramEmitter::bring_part(std::size_t parameter) {
  const FlatParameter& flat = flat_[parameter];
  const Value& value = buffers_.value(flat.value);
  const Bytes bytes = flat.part * size_of(value.dtype);
  const std::string name = value.name + " part";
  const BufferIndex part = open_staging(name, bytes);
  const TaskId copy = emit_host_copy_of(TaskKind::from_host, bytes, name, {flat.stored}, {part});
  awaited_ = std::max(awaited_, copy);
  return part;
}

}  // namespace shardsim
