// A plan as Chakra execution traces, one file per rank, and its communicator groups as the JSON
// beside them: what ASTRA-sim 2 takes as a workload (docs/export.md).
//
//   ChakraTraces traces(plan, nullptr);
//   write_file("step.0.et", traces.rank(0));
//   write_file("step.comm_groups.json", traces.communicators());
//
//   kernel                COMP_NODE       num_ops, tensor_size (bytes read and written)
//   collective            COMM_COLL_NODE  comm_type, comm_size, pg_name
//   collective-permute    COMM_SEND_NODE and COMM_RECV_NODE for every pair that the rank is in
//   message to a stage    the same        comm_src, comm_dst, comm_tag, comm_size
//   copy to, from host    MEM_STORE_NODE, MEM_LOAD_NODE
//   dependency            data_deps
//   order on a stream     ctrl_deps: the task before
//
// comm_size is what a rank puts in, in bytes, as ASTRA-sim reckons: of an all-gather the payload
// divided by the ranks of the group, of all others the payload. A rank is a position in the mesh.
// Nothing is approximated, but times are whole microseconds, both ends rounded to the nearest, so
// that sums do not drift; without a simulation there are none. num_ops and tensor_size are at least
// 1: readers divide by them.
//
// Cost: the communicators once, O(devices) for every set of axes; O(tasks + dependencies) a rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "sim/simulate.hpp"

namespace shardsim {

class ChakraTraces {
 public:
  // Both outlive it. `result`: of the plan's simulation, or null. Throws InputError for messages
  // between programs of different size.
  ChakraTraces(const Plan& plan, const Result* result);

  [[nodiscard]] std::int64_t ranks() const { return plan_.mesh.devices(); }
  // The first of every device class: traces of others differ in ranks and groups alone.
  [[nodiscard]] std::vector<std::int64_t> first_of_each_class() const;
  // The bytes of a rank's file; of one that runs no program a file without nodes.
  [[nodiscard]] std::string rank(std::int64_t rank) const;
  // {"1": [0, 1, 2, 3], "2": [4, 5, 6, 7]}: the ranks of every group, under its number, pg_name.
  // Numbers begin at 1: ASTRA-sim takes 0 for all ranks.
  [[nodiscard]] std::string communicators() const;

 private:
  using Ranks = std::vector<std::int64_t>;
  static constexpr std::int32_t none = -1;

  // How the ranks meet in a collective.
  struct Grouping {
    std::vector<std::int32_t> group_of;       // by rank: index into groups_; none: it has no part
    std::vector<std::int32_t> sends_to = {};  // of a permute, by rank
    std::vector<std::int32_t> receives_from = {};
  };

  [[nodiscard]] Ranks devices_of(const Program& program) const;
  void place_ranks();
  void check_messages(const Program& program) const;
  void group_ranks();
  [[nodiscard]] Grouping make_grouping(const Collective& collective) const;
  void number_groups(std::size_t program, const Collective& collective, Grouping& grouping);

  friend class ChakraRank;  // writes one file

  const Plan& plan_;
  const Result* result_;
  std::vector<std::int32_t> program_of_;       // by rank; none: it runs nothing
  std::vector<std::int64_t> place_of_;         // by rank, among the devices of its program
  std::vector<Ranks> groups_;                  // their numbers are one more than their indices
  std::map<Ranks, std::int32_t> group_index_;  // into groups_
  std::vector<Grouping> groupings_;
  std::vector<std::int32_t> grouping_of_;  // by collective; none: it is not executed
};

}  // namespace shardsim
