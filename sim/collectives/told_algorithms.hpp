// Which algorithm collectives are told to take, in place of what a library or the model chooses.
//
//   where NCCL or RCCL runs     NCCL's algorithm, protocol or both, as NCCL_ALGO and NCCL_PROTO; or
//                               an engine's own kernel for all-reduces in a node (one_shot.hpp)
//   where flows are simulated   one of network/algorithms/by_name.hpp
//   on slices of TPUs           nothing: what the compiler chooses is not told
//
// One that is told for some axes comes before one for all axes.
//
// Example: all-reduce: Ring, all-reduce over tensor: NVLS. An all-reduce over data takes rings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/nccl/availability.hpp"

namespace shardsim {

class Placement;

struct ToldAlgorithm {
  CollectiveKind kind = CollectiveKind::all_reduce;
  // Of the plan's mesh, as reports name them: "data", "fsdp:(1)4". Empty: whatever the axes.
  std::vector<std::string> axes;
  std::string algorithm;  // empty: what is chosen; so is the other
  std::string protocol;
  Place algorithm_place = {};  // where errors about them point to
  Place protocol_place = {};
  std::int64_t least_channels = 0;  // as NCCL_MIN_CTAS
};

// What one collective is told.
struct Told {
  nccl::Forced forced = {};              // where NCCL or RCCL runs
  std::optional<std::string> algorithm;  // of flows
  bool one_shot = false;
  Place place = {};
};

class ToldAlgorithms {
 public:
  // Throws InputError for names that are not known, axes that the mesh has not, what is told twice,
  // and where nothing can be told. Whether an algorithm can run is found when it is to.
  ToldAlgorithms(const Placement& placement, const std::vector<ToldAlgorithm>& told);

  // Of a collective of the plan.
  [[nodiscard]] Told of(const Collective& collective);
  // What no collective has asked for so far: "all-reduce over data".
  [[nodiscard]] std::vector<std::string> unused() const;

 private:
  struct Rule {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::vector<std::string> axes;  // sorted
    Told told;
    bool is_used = false;
  };

  const Placement& placement_;
  std::vector<Rule> rules_;  // those of some axes first
};

// Whether NCCL or RCCL can be told what to take; else why not.
[[nodiscard]] std::string why_not_told(const Profile& profile, CollectiveKind kind);

}  // namespace shardsim
