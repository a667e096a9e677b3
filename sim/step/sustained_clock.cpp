#include "sim/step/sustained_clock.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Of an operation at full clock, in joules.
double energy_at_full_clock(const DeviceProfile& device, const Kernel& kernel) {
  const PowerProfile& power = *device.power;
  const OperandPeak peak = operand_peak(device, kernel.dtype);
  const auto found = power.per_flop.find(peak.dtype);
  if (found == power.per_flop.end()) return 0;
  const double energy = found->second.value.count();
  double efficiency = device.matmul_efficiency.value;
  if (device.kernels) {
    const auto table = device.kernels->products.find(peak.dtype);
    if (table != device.kernels->products.end()) efficiency = table->second.flop_efficiency;
  }
  const double sustained = (power.limit.value - power.idle.value).count() / energy;
  const double clock = std::min(1.0, sustained / (peak.rate.count() * efficiency));
  return energy / (clock * clock);
}

// In joules.
struct Draw {
  double of_operations = 0;  // at full clock
  double of_moving = 0;
};

Draw draw_of(const DeviceProfile& device, const std::vector<KernelLoad>& mix) {
  Draw draw;
  for (const KernelLoad& load : mix) {
    const double bound_by_memory = (load.cost.moving - load.cost.computing).count();
    draw.of_moving +=
        load.count * std::max(0.0, bound_by_memory) * device.power->moving.value.count();
    if (load.kernel.kernel_class == KernelClass::memory || load.kernel.flops.count() <= 0) continue;
    draw.of_operations +=
        load.count * load.kernel.flops.count() * energy_at_full_clock(device, load.kernel);
  }
  return draw;
}

// Over that of a device in the middle.
double energy_of_slowest(const PowerProfile& power, std::int64_t devices) {
  if (!power.spread || devices < 2) return 1;
  const auto count = static_cast<double>(devices);
  const double lowest =
      boost::math::quantile(boost::math::normal(), (count - 0.375) / (count + 0.25));
  constexpr double least = 0.1;  // as below
  const double clock = std::max(least, 1 - power.spread->value * lowest);
  return 1 / (clock * clock * clock);
}

double time_at(const std::vector<KernelLoad>& mix, double clock) {
  double time = 0;
  for (const KernelLoad& load : mix) {
    time += load.count * at_clock(load.cost, clock).total().count();
  }
  return time;
}

}  // namespace

KernelCost at_clock(KernelCost cost, double clock) {
  cost.computing = cost.computing / clock;
  return cost;
}

double sustained_clock(const DeviceProfile& device, const std::vector<KernelLoad>& mix,
                       std::int64_t devices) {
  if (!device.power) return 1;
  const Power limit = device.power_limit ? device.power_limit->value : device.power->limit.value;
  const double allowed = (limit - device.power->idle.value).count();
  Draw draw = draw_of(device, mix);
  draw.of_operations *= energy_of_slowest(*device.power, devices);
  const auto is_allowed = [&](double clock) {
    const double energy = draw.of_operations * clock * clock + draw.of_moving;
    return energy <= allowed * time_at(mix, clock);
  };
  if (is_allowed(1)) return 1;
  constexpr double lowest = 0.1;  // below what any device's clock goes to
  constexpr int halvings = 20;    // to a millionth
  double low = lowest;
  double high = 1;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (is_allowed(middle) ? low : high) = middle;
  }
  return low;
}

double sustained_clock(const DeviceProfile& device, const Plan& plan, const Program& program) {
  if (!device.power) return 1;
  std::vector<double> counts(plan.kernels.size(), 0);
  for (const Task& task : program.tasks) {
    if (task.kind == TaskKind::kernel) counts[at(task.work)] += 1;
  }
  std::vector<KernelLoad> mix;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    mix.push_back({plan.kernels[i], kernel_cost(device, plan.kernels[i]), counts[i]});
  }
  return sustained_clock(device, mix, plan.mesh.devices());
}

}  // namespace shardsim
