// One collective instruction, read exactly: kind, devices, element type, payload.
//
//   %ag = (f32[512,512], f32[1024,512]) all-gather-start(f32[512,512] %p), channel_id=1,
//     replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}, use_global_device_ids=true
//   -> all-gather in groups {0,4} {1,5} {2,6} {3,7}, fp32, payload 2 MiB: the full array
//
// Payloads follow from the operands, so that it does not matter how the result of an asynchronous
// start is wrapped: operands times group size for an all-gather, operands for everything else.
// Several operands are one combined call whose payload is their sum.
//
// What the plan has no kind for is read as what comes nearest, and `note` says so:
//   ragged-all-to-all     an all-to-all of the whole operand: real sizes are data
//   collective-broadcast  a permute from the first device of each group to every other
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hlo/module.hpp"
#include "hlo/replica_groups.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct HloCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;  // of the first operand
  Bytes payload;
  DeviceGroups groups;  // of a permute: empty
  DevicePairs pairs;
  std::vector<CollectivePart> parts;  // one per operand
  std::string reason;
  std::string note;
};

// "all-gather" of "all-gather" and "all-gather-start"; nothing for what is no collective, and for
// -done and -update.
[[nodiscard]] std::optional<std::string_view> collective_opcode(std::string_view opcode);
[[nodiscard]] HloDevices devices_of(const HloModule& module);
// Of an instruction with a collective_opcode. Throws InputError.
[[nodiscard]] HloCollective read_collective(const HloModule& module, HloId id,
                                            const HloDevices& devices);
// -1 when there is none.
[[nodiscard]] std::int64_t channel_of(const HloModule& module, HloId id);

}  // namespace shardsim
