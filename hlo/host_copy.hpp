// Copies between the memory of a device and that of its host in a compiled module: arrays whose
// layout has memory space 5, S(5), lie on the host.
//
//   (bf16[2,512]{1,0:S(5)}, bf16[2,512]{1,0}, u32[]) copy-start(%f)          there, 2 KiB
//   bf16[1,512]{1,0} dynamic-slice(%saved, ..), %saved bf16[4,512]{1,0:S(5)} back, 1 KiB
//   dynamic-update-slice(%saved, %f, ..)                                     there, what %f has
//   fusion-start(..), calls=%only_one_of_these_and_views                     the same
//
// Offloaded activations are these: whole where layers are written out, slices where they are the
// iterations of a loop; compilers for GPUs wrap slices in fusions.
#pragma once

#include <optional>
#include <unordered_map>

#include "hlo/module.hpp"
#include "hlo/shape.hpp"

namespace shardsim {

struct HostCopy {
  bool to_host = true;
  bool asynchronous = false;  // X-start, and X-done elsewhere
  DType dtype = DType::bf16;
  Bytes bytes{0};  // as they lie in memory, padding included
};

class HostCopies {
 public:
  explicit HostCopies(const HloModule& module) : module_(module), shapes_(module) {}

  // Nothing where an instruction is no copy between the two. Throws InputError: a start whose
  // result is not what its opcode has.
  [[nodiscard]] std::optional<HostCopy> find(HloId id);
  // Whether an instruction reads or makes an array on the host.
  [[nodiscard]] bool touches_host(HloId id);

 private:
  [[nodiscard]] std::optional<HostCopy> copy_of(std::string_view opcode, HloId id, bool starts);
  [[nodiscard]] std::optional<HostCopy> only_copy_of(HloComputationId fused);
  [[nodiscard]] const HloShape& made_by_start(HloId id);

  const HloModule& module_;
  HloShapes shapes_;
  std::unordered_map<HloId, std::optional<HostCopy>> fusions_;  // that have been looked into
};

}  // namespace shardsim
