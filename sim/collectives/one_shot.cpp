#include "sim/collectives/one_shot.hpp"

#include <cmath>

namespace shardsim {
namespace {

constexpr Seconds for_all{1.6e-6};
constexpr Seconds each_doubling{1.1e-6};
constexpr Bandwidth rate_of_reads{39e9};

}  // namespace

CostBreakdown one_shot_cost(std::int64_t members, Bytes payload, Seconds launch) {
  CostBreakdown cost;
  cost.algorithm = one_shot_name;
  cost.launch = launch;
  cost.latency = for_all + each_doubling * std::log2(static_cast<double>(members));
  cost.transfer = payload / rate_of_reads;
  cost.links = {{LinkLevel::scale_up}};
  return cost;
}

}  // namespace shardsim
