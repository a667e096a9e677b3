// What the tasks of a plan take of a machine, as the engine counts it: numbered resources, and of
// every kernel, collective and message which of them it uses, by what share (work_sharing.hpp).
//
//   of the devices of each program   levels of links, two directions each; memory; cores, and these
//                                    once more for products
//   of a network written in place    its links
//
// Resources that everything uses alike are one: of a symmetric network a few are left.
//
//   kernel       computing / time of the cores, moving / time of the memory (kernel_cost.hpp): the
//                larger is 1, and what others take of the other is felt only where too little is
//                left
//   collective   CostBreakdown::links; memory by what it reads and writes (memory_traffic.hpp); it
//                holds thread_blocks / sms of the cores, from its start to its end; of products'
//                sms_per_block times as much, whose tiles are dealt out to all multiprocessors
//   message      the same, out at one end and in at the other
//   host copy    its direction of the link to the host, both where the link is not full duplex;
//                memory by its bytes
//
// Nothing is taken of what is not known: of cores without `sms`, of memory and cores by collectives
// on networks written in place.
//
// Example: attention of 132 us on the 132 SMs of an H100 while NCCL runs 24 thread blocks: 108 SMs
// are left, 161 us. A product loses 1.6 SMs to each of them: 93.6 are left, 186 us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective_cost.hpp"
#include "sim/step/engine.hpp"

namespace shardsim {

// 20 hours: what tasks take of each other may make it a hundred times longer within SimTime.
inline constexpr SimTime longest_step{std::int64_t{1} << 56};
// Throws InputError for a longer one: `what` says whose it is, "a task takes".
void check_length(const Machine& machine, const char* what, Seconds length);

// What a work takes of a level of links of the devices of a program, while it transfers alone; of a
// network written in place, of links that all works of the plan load alike.
struct LevelUse {
  std::int32_t program = 0;
  LinkLevel level = LinkLevel::scale_up;
  LinkDirection direction = LinkDirection::out;
  double share = 0;
  std::int32_t links = -1;  // index into LinkUses::alike
};

struct LinksAlike {
  std::string first;  // "device 0 -> device 1"
  std::int64_t links = 1;
};

struct LinkUses {
  std::vector<std::vector<LevelUse>> by_work;
  std::vector<LinksAlike> alike;  // of a network written in place, in the order of the first
};

enum class FollowLinks : std::uint8_t { where_messages_meet, always };

class Resources {
 public:
  // All of it outlives it. `follow`: when each link of a network written in place is, which takes
  // time.
  Resources(const Plan& plan, const Placement& placement, CollectiveCosts& costs,
            FollowLinks follow);

  // Numbers of works. Throw InputError for one that takes longer than a step may.
  std::int32_t add_kernel(std::size_t program, const Kernel& kernel);
  std::int32_t add_host_copy(std::size_t program, TaskKind kind, Bytes bytes);
  // In all of these programs together.
  std::int32_t add_collective(const std::vector<std::size_t>& programs,
                              const Collective& collective, const CostBreakdown& cost);
  std::int32_t add_message(std::size_t from, std::size_t to, const Collective& permute,
                           const CostBreakdown& cost);

  // Before finish(), which forgets what resources are. Of kernels, and of links that are too many,
  // nothing.
  [[nodiscard]] LinkUses link_uses() const;
  // When all are added: TaskGraph::works and resources.
  void finish(TaskGraph& graph);
  // What whoever reads the times must know.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Of those of a network written in place, behind those of programs.
  [[nodiscard]] ResourceId first_link() const;
  [[nodiscard]] Work work_of(Seconds fixed, Seconds total) const;
  [[nodiscard]] Work work_of(const CostBreakdown& cost) const;
  [[nodiscard]] double memory_share(double bytes, Seconds time) const;
  void hold_cores(std::size_t program, const CostBreakdown& cost, Work& work);
  std::int32_t add(Work work);
  struct OnLinks {
    std::int32_t work = 0;
    std::vector<std::int32_t> programs;
    std::vector<std::int32_t> parts;  // by link; empty: not followed
  };
  std::int32_t add_on_links(Work work, const Collective& collective, const CostBreakdown& cost,
                            const std::vector<std::int64_t>& devices,
                            std::vector<std::int32_t> programs);
  void add_uses_of_links(LinkUses& uses) const;
  void note(const std::string& text);

  const Plan& plan_;
  const Placement& placement_;
  CollectiveCosts& costs_;
  std::vector<Work> works_;
  FollowLinks follow_;
  bool messages_meet_ = false;     // several streams have collectives or messages
  bool links_known_ = true;        // all loads could be found
  std::vector<OnLinks> on_links_;  // works that are on such a network
  std::vector<std::string> notes_;
  std::vector<double> clocks_;  // by program
};

}  // namespace shardsim
