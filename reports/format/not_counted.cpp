#include "reports/format/not_counted.hpp"

#include <fmt/format.h>

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

NotCounted not_counted(const Profile& profile, Bytes peak) {
  if (std::holds_alternative<TorusProfile>(profile.network)) {
    constexpr double most_padding = 0.05;
    return {Bytes(0), fraction(peak, most_padding), "padding to tiles and gaps"};
  }
  if (!is_gpu(profile)) return {};
  constexpr std::int64_t least_context = 1 * GiB;
  constexpr std::int64_t most_context = 2 * GiB;
  constexpr double least_reserved = 0.03;
  constexpr double most_reserved = 0.12;
  return {Bytes(least_context) + fraction(peak, least_reserved),
          Bytes(most_context) + fraction(peak, most_reserved),
          fmt::format("{} and what the allocator reserves beside buffers",
                      is_of_nvidia(profile) ? "the CUDA context, NCCL's buffers"
                                            : "the driver's context, buffers of collectives")};
}

}  // namespace shardsim
