#include "reports/format/not_counted.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim {
namespace {

Bytes fraction(Bytes bytes, double part) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.count()) * part));
}

// Devices that say how many multiprocessors they have, or whose nodes say what a library of GPUs
// sees of them.
bool is_gpu(const Profile& profile) {
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  return profile.device.sms || (cluster != nullptr && (cluster->nccl || cluster->rccl));
}

bool is_of_nvidia(const Profile& profile) {
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  return cluster != nullptr && cluster->nccl;
}

}  // namespace

NotCounted not_counted(const Profile& profile, const Result& result, Bytes counted) {
  const bool has_allocator =
      std::any_of(result.programs.begin(), result.programs.end(),
                  [](const ProgramResult& program) { return program.outside > Bytes(0); });
  if (has_allocator) {
    constexpr double median_error = 0.13;
    return {Bytes(0), fraction(counted, median_error),
            "as far as predictions of reserved memory are off in the median"};
  }
  if (std::holds_alternative<TorusProfile>(profile.network)) {
    constexpr double most_padding = 0.05;
    return {Bytes(0), fraction(counted, most_padding), "padding to tiles and gaps"};
  }
  if (!is_gpu(profile)) return {};
  constexpr std::int64_t least_context = 1 * GiB;
  constexpr std::int64_t most_context = 2 * GiB;
  constexpr double least_reserved = 0.03;
  constexpr double most_reserved = 0.12;
  return {Bytes(least_context) + fraction(counted, least_reserved),
          Bytes(most_context) + fraction(counted, most_reserved),
          fmt::format("{} and what the allocator reserves beside buffers",
                      is_of_nvidia(profile) ? "the CUDA context, NCCL's buffers"
                                            : "the driver's context, buffers of collectives")};
}

}  // namespace shardsim
