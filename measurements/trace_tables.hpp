// Measured tables (collective_measurement.hpp) from traces of one job (kineto_trace.hpp): one for
// each kind of collective, size of its groups, number of nodes they lie on and algorithm of NCCL's,
// where a kernel's name tells it.
//
//   bytes      the payload: of an all-gather the elements out, of the others those in
//   time_us    the kernel's, without its launch. A kernel waits for late ranks, which is not what
//              the collective takes. Where all ranks of a group are there, an instance takes what
//              the rank took that waited least, and a row the median of its instances, of those
//              that ran beside no other kernel if there are some. Else a row is the shortest
//              kernel of its size: waiting and sharing only lengthen one.
//   nodes      rank r is on node r / devices_per_node, as torchrun and Slurm number them; where
//              lists of ranks are cut, their steps go on; not said where that is not known
//   algo       "Tree" where the kernel is one of trees; with NCCL before 2.19 ("ncclKernel_...")
//              also the others
//
// The protocol is not told: NCCL names all its kernels after LL, whatever runs in them, and since
// 2.19 all but trees after rings (NVIDIA/nccl src/device/generate.py @081eafa, best_kernel;
// src/enqueue.cc of 2.18, NCCL_FUNC5). RCCL's are all ncclDevKernel_Generic.
//
// Passed over, and counted in the notes: collectives that are not modelled, sends and receives,
// coalesced ones, those without data or of one rank, uneven all-to-alls, what shares its time with
// another collective, kernels on symmetric memory, and parts of a rank that are no multiple of 16
// bytes: NCCL copies them element by element (src/device/common_kernel.h, reduceCopy).
//
// Example, 8 x H100 (tests/measurements/trace_tables_test.cpp): of 480 all-gathers of 416 MiB rank
// 0 waited 20.6 ms on average, and the shortest took 1131 us, where nccl-tests on such a machine
// take 1139 us; with two bytes more on each rank it took 1791 us.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "measurements/kineto_trace.hpp"

namespace shardsim {

// A job's traces, of different ranks. `name` begins the tables' ids, `source` is theirs. Throws
// InputError: a rank twice or not said beside others, no collective that can be taken.
[[nodiscard]] std::vector<Json> tables_of_traces(
    const std::vector<RankTrace>& traces, const std::string& name, const std::string& source,
    const std::optional<std::int64_t>& devices_per_node);

}  // namespace shardsim
