#include "sim/nccl/selection.hpp"

#include <fmt/format.h>

#include <set>

#include "sim/nccl/tuner_constants.hpp"

namespace shardsim::nccl {
namespace {

double size_factor(const Communicator& communicator, const Request& request,
                   const Estimate& estimate) {
  if (request.operation != Operation::all_reduce) return 1;
  const bool x86 = communicator.cpu != Cpu::arm && communicator.cpu != Cpu::power;
  const bool corrected =
      estimate.algorithm == Algorithm::tree ||
      (estimate.algorithm == Algorithm::nvls_tree && communicator.version >= Version::v2_29 &&
       communicator.least_compute_capability >= blackwell_capability && x86);
  if (!corrected) return 1;
  return tree_size_factor(estimate.algorithm, estimate.protocol, request.bytes);
}

double plateau_of(const Communicator& communicator, const Request& request,
                  const Estimate& estimate) {
  if (estimate.algorithm != Algorithm::ring || estimate.protocol != Protocol::simple ||
      request.operation != Operation::all_reduce || communicator.nodes == 1) {
    return 1;
  }
  const std::int64_t parts = communicator.ring_channels * communicator.ranks;
  if (request.bytes.count() < plateau_bytes * parts) return 1;
  return communicator.least_compute_capability < ampere_capability ? plateau_before_ampere
                                                                   : plateau;
}

Candidate candidate_of(const Communicator& communicator, const Request& request,
                       const Estimate& estimate) {
  Candidate candidate;
  candidate.algorithm = estimate.algorithm;
  candidate.protocol = estimate.protocol;
  candidate.latency = estimate.latency * plateau_of(communicator, request, estimate);
  candidate.bandwidth = estimate.bandwidth * size_factor(communicator, request, estimate);
  candidate.time = candidate.latency + request.bytes / candidate.bandwidth;
  if (request.fp8 && estimate.algorithm == Algorithm::ring &&
      communicator.ranks > most_ranks_of_fp8_ring) {
    candidate.time = candidate.time * fp8_ring_penalty;
  }
  return candidate;
}

// The reasons against all pairs that the forced names allow, each once.
std::string reasons(const Communicator& communicator, const Request& request) {
  const Forced& forced = request.forced;
  std::set<std::string> told;
  for (int a = 0; a < algorithms; ++a) {
    for (int p = 0; p < protocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (forced.algorithm.value_or(algorithm) != algorithm) continue;
      // Without a forced protocol, that another one is not spoken says nothing.
      const bool last = protocol == Protocol::simple;
      if (forced.protocol ? *forced.protocol != protocol : !last) continue;
      const std::string why =
          why_disabled(communicator, request.operation, algorithm, protocol, forced);
      told.insert(why.empty() ? "NVSwitch cannot reduce this type" : why);
    }
  }
  return fmt::format("{}", fmt::join(told, "; "));
}

std::string forced_text(const Forced& forced) {
  std::string text;
  if (forced.algorithm) text = name_of(*forced.algorithm);
  if (forced.protocol) {
    if (!text.empty()) text += " with ";
    text += name_of(*forced.protocol);
  }
  return text;
}

}  // namespace

Selection select(const Communicator& communicator, const Request& request, const Place& place) {
  Selection selection;
  for (const Estimate& estimate : tuning_table(communicator, request.operation, request.forced)) {
    const bool reduces = request.operation != Operation::all_gather;
    if (is_nvls(estimate.algorithm) && reduces && !request.switch_reduces) continue;
    selection.candidates.push_back(candidate_of(communicator, request, estimate));
    if (selection.candidates.back().time < selection.choice().time) {
      selection.chosen = selection.candidates.size() - 1;
    }
  }
  if (selection.candidates.empty()) {
    throw InputError(place, fmt::format("NCCL cannot use {} for {} on these {} ranks: {}",
                                        forced_text(request.forced), name_of(request.operation),
                                        communicator.ranks, reasons(communicator, request)));
  }
  return selection;
}

}  // namespace shardsim::nccl
