// What the PyTorch profiler (torch.profiler, Kineto) writes of one rank, as the collectives in it.
//
//   { "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "pg_config": [...], ...},
//     "traceEvents": [
//       {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(...)", "pid": 0,
//        "ts": 4491498366345.717, "dur": 1130.748,
//        "args": {"External id": 1025, "Collective name": "_allgather_base", "dtype": "BFloat16",
//                 "In msg nelems": 27264000, "Out msg nelems": 218112000, "Group size": 8,
//                 "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}},
//       {"cat": "cpu_op", "name": "record_param_comms", "args": {"External id": 1025, ...}}, ...] }
//
// ts and dur are microseconds. A kernel has what record_param_comms says of its collective (PyTorch
// 2.2 and later); where it has only its External id, the operation of that id says it. Lists of
// ranks and splits are text and end in "..." after 30 members. "Seq" counts the collectives of a
// group (2026 and later). Kernels in CUDA graphs, of coalesced collectives and of batches of sends
// and receives say nothing of what they do.
//
// Sources: pytorch/kineto libkineto/src/output_json.cpp @002d991, pytorch/pytorch
// torch/csrc/profiler/util.{h,cpp}, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and
// torch/profiler/profiler.py (2.4 to 2.15), pytorch/kineto pull request 1294, pytorch/pytorch issue
// 131462.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"

namespace shardsim {

struct RankList {
  std::vector<std::int64_t> ranks;
  bool is_cut = false;  // there are more
};

// What record_param_comms says of a collective.
struct CollectiveRecord {
  std::string name;   // PyTorch's: "_allgather_base"
  std::string dtype;  // "BFloat16"
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
  std::int64_t group_size = 0;
  std::string group;  // its name; empty: not said
  RankList ranks;     // empty: not said
  bool has_even_splits = true;
  std::optional<std::int64_t> sequence;
};

// One kernel of NCCL's or RCCL's. "Beside" means for more than a hundredth of its time.
struct TracedCollective {
  std::string kernel;  // "ncclDevKernel_AllGather_RING_LL(...)"
  CollectiveRecord record;
  double begin = 0;     // microseconds of the trace's clock
  double duration = 0;  // microseconds
  std::int64_t device = 0;
  bool is_one_of_several = false;        // that one operation launched
  bool is_beside_collectives = false;    // on its device
  bool is_beside_other_kernels = false;  // likewise
};

struct RankTrace {
  std::string file;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  std::string nccl_version;                                 // empty: not said
  std::map<std::string, std::vector<std::int64_t>> groups;  // of pg_config, by name
  std::vector<TracedCollective> collectives;                // as they began
  std::int64_t unexplained = 0;  // kernels of NCCL's that say nothing of what they do
};

// Whether a text is to be read as a trace: it has a key "traceEvents".
[[nodiscard]] bool is_trace(std::string_view text);

// Throws InputError with the line or the event: what is no JSON, an event that is not as above.
[[nodiscard]] RankTrace read_trace(std::string_view text, const std::string& file);

}  // namespace shardsim
