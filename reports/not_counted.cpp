#include "reports/not_counted.hpp"

namespace shardsim {
namespace {

Bytes fraction(Bytes bytes, double part) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.count()) * part));
}

}  // namespace

NotCounted not_counted(const Profile& profile, Bytes peak) {
  if (std::holds_alternative<TorusProfile>(profile.network)) {
    constexpr double most_padding = 0.05;
    return {Bytes(0), fraction(peak, most_padding), "padding to tiles and gaps"};
  }
  constexpr std::int64_t least_context = 1 * GiB;
  constexpr std::int64_t most_context = 2 * GiB;
  constexpr double least_reserved = 0.03;
  constexpr double most_reserved = 0.12;
  return {Bytes(least_context) + fraction(peak, least_reserved),
          Bytes(most_context) + fraction(peak, most_reserved),
          "the CUDA context, NCCL's buffers and what the allocator reserves beside buffers"};
}

}  // namespace shardsim
