// What collectives and kernels of many sizes took on real devices: `shardsim validate --sweep`
// measures it, `shardsim calibrate` makes a profile of it.
//
// "shardsim/sweep/1":
//   { "schema": "shardsim/sweep/1",  // first
//     "shardsim": version, "date": "2026-11-22",
//     "source": document and table,     // of published figures alone
//     "profile": "cpu-host",            // whose numbers it measures
//     "backend": {"name", "library", "processes", "hosts": [s...], "host_of_rank": [i...]},
//     "processor": {"name", "cores"},   // of the first host
//     "device": {what: text...},        // of rank 0: its name, clocks, driver
//     "collectives": [{"kind", "group_size", "groups", "payload_bytes", "algorithm",
//                      "time_s", "low_s", "high_s", "repeats"}...],
//     "kernels": [{"class", "dtype", "flops", "bytes", "product": [batch, m, n, k],
//                  "time_s", "low_s", "high_s", "repeats"}...],
//     "copies": [{"direction", "bytes", "time_s", "low_s", "high_s", "repeats"}...],
//     "memory": [{"what", "bytes"}...] }
//
// `host_of_rank` has an index into `hosts` for every process; files without it are read, too.
// All `groups` of a collective run at the same time, neighbours each; processes in none of them
// have nothing to do. A kernel runs on all devices, and so does a copy.
// `algorithm` is as the library names it, and left out where it chose itself; `product` is left out
// of kernels that are none. `memory` is what is taken of a device besides a plan's buffers. Times
// are medians over repeats, low and high the 10th and 90th percentile; of published figures, which
// have the time alone, low, high and repeats are left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "measurements/run_on.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct MeasuredTime {
  Seconds median{0};
  Seconds low{0};  // 10th and 90th percentile; the median where they are not known
  Seconds high{0};
  int repeats = 0;  // 0: not known
};

struct SweptCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t group_size = 2;
  std::int64_t groups = 1;
  Bytes payload{0};
  MeasuredTime time;
  std::string algorithm = {};  // empty: the library's own choice
};

struct SweptKernel {
  Kernel kernel;
  MeasuredTime time;
};

// Between the device and its host.
struct SweptCopy {
  TaskKind direction = TaskKind::to_host;  // or from_host
  Bytes bytes{0};
  MeasuredTime time;
};

struct MemoryTaken {
  std::string what;  // "context", "communicators", ...
  Bytes bytes{0};
};

struct DeviceSweep {
  std::string file;    // that it was read from
  std::string source;  // where published figures stand; empty: measured by the program
  std::string date;
  std::string profile;
  RunOn on;
  std::vector<std::int64_t> host_of_rank = {};  // index into on.hosts; empty: the file has none
  std::string processor;
  std::int64_t cores = 1;
  std::map<std::string, std::string> device;
  std::vector<SweptCollective> collectives;
  std::vector<SweptKernel> kernels;
  std::vector<SweptCopy> copies;
  std::vector<MemoryTaken> memory;
};

inline constexpr std::int64_t most_swept_bytes = std::int64_t{1} << 60;
inline constexpr std::string_view sweep_schema = "shardsim/sweep/1";

// Throws InputError with the place in the file.
[[nodiscard]] DeviceSweep read_sweep(const Json& document, const std::string& file);
// Throws InputError where hosts have not as many each, of consecutive ranks, and where the file
// does not say which have which.
[[nodiscard]] std::int64_t processes_per_host(const DeviceSweep& sweep);
// A record to a line. Reads back to the same sweep.
[[nodiscard]] std::string sweep_text(const DeviceSweep& sweep);

}  // namespace shardsim
