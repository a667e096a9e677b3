// CUDA, cuBLAS and NCCL in place of the real libraries, for a process whose threads are the ranks.
//
// Time is reckoned, not spent. A stream is a clock: a kernel puts it forward by what it takes, an
// event takes it down, a wait for an event puts it forward to what was taken down. The members of a
// collective leave it together, what it takes after the last has come; each device's clock is ahead
// of the true one by its number in hours. A call of a collective blocks its thread until all
// members have called it, which the real one does not: where ranks call in different orders it
// fails after some seconds.
//
// Memory is the host's, and what is sent is not: results are not looked at, calls are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardsim::testing {

struct FakeGpus {
  int count = 8;  // for a program that loads them, FAKE_GPUS in its environment
  // Rates.
  double flops_per_second = 1e12;
  double memory_bytes_per_second = 1e12;
  double host_bytes_per_second = 1e10;
  double network_bytes_per_second = 1e11;  // of a member's buffer, whatever the collective
  double collective_latency = 10e-6;
  float estimate_us = 25;  // by ncclGroupSimulateEnd; 0 for sends and receives

  bool has_fp8 = true;  // tensor cores for numbers of 8 bits
  bool driver_is_missing = false;
  bool communicators_fail = false;  // from the first step on
  bool kernels_hang = false;        // events after them are never reached
};
// Of the whole process; a test sets it before it begins.
FakeGpus& fake_gpus();

// A call, as a rank made it.
struct FakeCall {
  int device = 0;
  std::string name;  // "AllReduce", "GemmEx", ...
  std::int64_t count = 0;
  std::string type;          // "bf16"; empty for kernels
  std::vector<int> members;  // devices of the communicator, in its order
  friend bool operator==(const FakeCall&, const FakeCall&) = default;
};
// Since the last time it was asked, in the order of the device's calls.
std::vector<FakeCall> take_fake_calls(int device);

}  // namespace shardsim::testing
