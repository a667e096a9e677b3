// What a sweep holds beside what its profile is fitted to.
//
//   contention   groups that run at the same time against one of them alone: of every kind and
//                size of group the median, over sizes of payloads, of the ratio of the two times,
//                and the same by the fitted profile, which knows of what groups share between
//                nodes alone
//   algorithms   of every kind, size of group and algorithm, the library's own choice too:
//                time = start + byte * payload (robust_fit.hpp), and which was the fastest of each
//                payload
//
// Example: two all-reduces of 1 MiB at once take 3 ms and one alone 2: 1.5, where the profile says
// 1. The ring takes 40 us + 1 ns a byte, recursive doubling 10 us + 2 ns: even at 30 kB.
//
// In the JSON of `shardsim calibrate SWEEP`, beside the profile, whose readers pass over them:
//
//   "contention": [{"kind", "group_size", "groups", "sizes", "ratio", "low", "high",
//                   "predicted"}...]                       // low and high: the range over sizes
//   "algorithms": [{"kind", "group_size", "groups",
//                   "fits": [{"algorithm", "sizes", "median_error",
//                             "start": {"time_s", "low_s", "high_s"},
//                             "byte": {"time_s", "low_s", "high_s"}}...],
//                   "fastest": [{"payload_bytes", "algorithm", "time_s", "next_s"}...]}...]
//
// `algorithm` is left out where the library chose itself; low_s and high_s are 95 % intervals, and
// high_s is left out where nothing bounds it; what records do not tell is null. "fastest" has the
// payloads for which two or more were measured, `next_s` the time of the second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "hardware_profiles/machine.hpp"
#include "measurements/device_sweep.hpp"
#include "validate/fit/robust_fit.hpp"

namespace shardsim {

struct Contention {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t group_size = 2;
  std::int64_t groups = 2;  // at once
  std::int64_t sizes = 0;   // of which both are there
  double ratio = 1;         // the median over sizes
  double low = 1;           // the range
  double high = 1;
  double predicted = 1;  // the median over the same sizes
};

struct AlgorithmFit {
  std::string algorithm;  // empty: the library's own choice
  std::int64_t sizes = 0;
  FittedTerm start;  // seconds
  FittedTerm byte;   // of payload
  double median_error = 0;
};

struct FastestAlgorithm {
  Bytes payload{0};
  std::string algorithm;
  Seconds time{0};
  Seconds next{0};  // of the second
};

struct ComparedAlgorithms {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t group_size = 2;
  std::int64_t groups = 1;  // at once: all
  std::vector<AlgorithmFit> fits;
  std::vector<FastestAlgorithm> fastest;
};

struct SweepFindings {
  std::vector<Contention> contention;
  std::vector<ComparedAlgorithms> algorithms;
};

// By kind, then size of group, then algorithm or payload; the order of records does not matter.
// `fitted` is the profile made of the sweep.
[[nodiscard]] SweepFindings find_in_sweep(const DeviceSweep& sweep, const Profile& fitted);

// Adds both keys.
void add_findings(Json& document, const SweepFindings& findings);

}  // namespace shardsim
