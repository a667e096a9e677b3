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
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "reports/traces/chakra_communicators.hpp"
#include "sim/step/simulate.hpp"

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
  // What a reader will stumble over; empty where there is nothing. ASTRA-sim numbers the streams of
  // a communicator from its number times a million on, in 32 bits: 2,147 fit.
  [[nodiscard]] std::string warning() const;

 private:
  const Plan& plan_;
  const Result* result_;
  ChakraCommunicators communicators_;  // numbered from 1 in the files
};

}  // namespace shardsim
