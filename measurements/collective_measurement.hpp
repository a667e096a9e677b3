// A measured table of one collective on one system, as a JSON file (comments allowed):
//
//   { "id": "h100_dgx_1n8g_allreduce", "machine": "dgx-h100",
//     "collective": "all_reduce", "ranks": 8, "nodes": 1, "gpus_per_node": 8,
//     "algo": null, "proto": null, "healthy": true, "healthy_reason": "as NVIDIA expects it",
//     "rows": [{"bytes": 1048576, "time_us": 52.9, "algbw_GBps": 19.8, "busbw_GBps": 34.7}, ...] }
//
//   machine      a shipped profile, or the path of one, relative to the file
//   collective   the plan's name of a kind or nccl-tests': all_reduce, all_gather, reduce_scatter,
//                alltoall, sendrecv; a remark may follow in parentheses
//   ranks        devices of the one group; where it is null, hardware.chips, as TPUs are counted
//   hardware.topology   the slice of a torus, "2x2x1"
//   nodes        over which the ranks lie evenly; gpus_per_node must agree
//   algo, proto  what NCCL was told to take, or took
//   env          variables that were set; of these NCCL_MIN_CTAS (NCCL_MIN_NCHANNELS) is read
//   healthy      true, false or "unknown"; healthy_reason says why
//   notes        a list: what a reader of the times must know; as text it is passed over
//   bytes        nccl-tests' size, that is the payload of plan/plan.hpp; GB is 10^9
//
// Of a row the first of these that it has and that is not 0 tells the time: time_us, algbw_GBps,
// busbw_GBps, then the same with inplace_ before it. All keys but "rows" may be null or missing.
// Files describe a system in keys of their own: those that are in use (hardware, dtype, ...) are
// passed over, others are named in `notes`, and a key that looks like one of the above where that
// one is missing is an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct MeasuredRow {
  Bytes bytes{0};
  std::optional<Seconds> time;
};

// What ran: a kind "unknown" is none.
struct MeasuredGroup {
  std::optional<CollectiveKind> kind;
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> nodes;
};

struct CollectiveMeasurement {
  std::string file;
  std::string id;  // the file's stem if it says none
  std::string source;
  std::optional<std::string> machine;
  std::optional<std::string> topology;  // hardware.topology where it is a shape: of a torus
  MeasuredGroup group;
  std::string algorithm;  // empty: not said
  std::string protocol;
  std::int64_t least_channels = 0;     // NCCL_MIN_CTAS, once NCCL_MIN_NCHANNELS; 0: not set
  std::optional<bool> healthy = true;  // nothing: unknown
  std::string healthy_reason;
  std::vector<MeasuredRow> rows;   // as in the file
  std::vector<std::string> notes;  // what a reader of the times must know
};

// Of what is taken for a measured time, in seconds.
inline constexpr double shortest_measured = 1e-12;
inline constexpr double longest_measured = 1e9;

// Ranks that a collective is measured or predicted over.
inline constexpr std::int64_t most_ranks = std::int64_t{1} << 20;

// `otherwise` holds where the file leaves something of the group open. Throws InputError with the
// place in the file.
[[nodiscard]] CollectiveMeasurement read_measurement(const Json& document, const std::string& file,
                                                     const MeasuredGroup& otherwise);

// "all-reduce", "all_reduce", "alltoall", "sendrecv", ...
[[nodiscard]] CollectiveKind read_collective_kind(const JsonReader& json);

}  // namespace shardsim
