// What nccl-tests and rccl-tests print, as a measured table (collective_measurement.hpp): their
// text, also in the middle of a job's log and behind Open MPI's --tag-output, or the JSON of -J.
//
//   # Collective test starting: all_reduce_perf
//   #  Rank  0 Group  0 Pid  14010 on node-1 device  0 [0000:06:00] NVIDIA H100 80GB HBM3
//   #       size         count      type   redop    root     time   algbw   busbw #wrong    ...
//        1048576        262144     float     sum      -1    85.58   12.25   22.97      0    ...
//
//   collective     of the line above, older versions have none, or of the one NAME_perf in the text
//   ranks, nodes   lines of devices and the hosts in them; of JSON, which lists one device of each
//                  process, times its threads and GPUs
//   rows           size and time, out of place and in place; sizes of 0, where nothing is sent, are
//                  left out
//   healthy        not where results are wrong; unknown where the end of the test is missing
//
// Which machine it was is not printed.
// Source: NVIDIA/nccl-tests src/util.cu @0fdb00a (2.18.x) and what versions since 2.0 have printed.
#pragma once

#include <string>
#include <string_view>

#include "base/json_reader.hpp"

namespace shardsim {

// Throws InputError with the line: no table or several, a row that does not fit its heading, times
// of the CPU (-C).
[[nodiscard]] Json table_of_log(std::string_view text, const std::string& file);
[[nodiscard]] Json table_of_json(const Json& document, const std::string& file);

// Whether a document is the JSON of -J.
[[nodiscard]] bool is_of_nccl_tests(const Json& document);

}  // namespace shardsim
