// Steps of real models (tests/golden/xla_models): the plan with fused kernels beside the plan with
// one kernel per op, and beside what XLA's TPU compiler says of the program that it made
// (`cost_analysis`, per device, every loop body counted once; optimal_seconds of v5e and v6e are
// negative and left out).
//
// The rings that it makes of matmuls count once there, too: a few of their steps. Laws are what was
// found, no more: bytes of the training steps in the median, how many are far off, and the time of
// the kernels at the chip's rates. Matmuls and collectives are those of the plan without fusion.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <iostream>
#include <optional>
#include <vector>

#include "base/json.hpp"
#include "hardware_profiles/machine.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/to_plan.hpp"
#include "tests/base/golden_files.hpp"
#include "tests/spmd/memory_comparison.hpp"

namespace shardsim::test {
namespace {

constexpr double largest_median_error = 0.10;
constexpr double far_off = 0.20;
constexpr double most_far_off = 0.05;  // of the records
constexpr double largest_time_error = 0.20;

struct Plans {
  Plan per_op;
  Plan fused;
};

Plans plans_of(const std::string& program, spmd::MemoryTarget target) {
  stablehlo::Module module = spmd::prepare(stablehlo::read_module(program));
  spmd::propagate(module);
  const stablehlo::Module local = spmd::partition(module, {.like_xla = true});
  return {spmd::plan_of(local), spmd::plan_of(local, target)};
}

// What XLA counts for a collective: its operand and its result.
double touched_bytes(const Plan& plan, const Collective& collective) {
  const auto payload = static_cast<double>(collective.payload.count());
  const bool changes_size = collective.kind == CollectiveKind::all_gather ||
                            collective.kind == CollectiveKind::reduce_scatter;
  const auto devices = static_cast<double>(group_size(plan, collective));
  return payload * (changes_size ? 1 + 1 / devices : 2);
}

// Of every op once, as XLA counts.
double bytes_of(const Plan& plan) {
  double bytes = 0;
  for (const Kernel& kernel : plan.kernels) bytes += static_cast<double>(kernel.bytes.count());
  for (const Collective& one : plan.collectives) bytes += touched_bytes(plan, one);
  return bytes;
}

// At the peak rates of a v5p, as XLA's optimum: no efficiency.
Seconds optimum(const Plan& plan) {
  static const DeviceProfile v5p = load_profile("tpu-v5p", {}).device;
  const FlopRate peak = v5p.peak.at(DType::bf16).value;
  Seconds time{0};
  for (const Kernel& kernel : plan.kernels) {
    const bool is_matmul = kernel.kernel_class == KernelClass::matmul;
    const Seconds computing = is_matmul ? kernel.flops / peak : Seconds{0};
    time += std::max(computing, kernel.bytes / v5p.memory_bandwidth.value);
  }
  return time;
}

// Of the whole step.
struct Totals {
  double bytes = 0;
  double matmul = 0;
  std::vector<Task> collectives;
};

Totals totals_of(const Plan& plan) {
  Totals totals;
  for (const Task& task : plan.programs.at(0).tasks) {
    if (task.kind == TaskKind::collective) totals.collectives.push_back(task);
    if (task.kind != TaskKind::kernel) continue;
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(task.work));
    totals.bytes += static_cast<double>(kernel.bytes.count());
    if (kernel.kernel_class == KernelClass::matmul) totals.matmul += kernel.flops.count();
  }
  return totals;
}

bool same_collectives(const Plans& plans, const Totals& per_op, const Totals& fused) {
  return plans.per_op.collectives == plans.fused.collectives &&
         std::equal(per_op.collectives.begin(), per_op.collectives.end(), fused.collectives.begin(),
                    fused.collectives.end(), [](const Task& a, const Task& b) {
                      return a.work == b.work && a.layer == b.layer && a.microbatch == b.microbatch;
                    });
}

struct Ratios {
  std::vector<double> per_op;
  std::vector<double> fused;
  std::vector<double> time;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

void print(const std::string& what, const std::vector<double>& ratios) {
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::cout << fmt::format("{} of {} training steps: median {:.2f}, {:.2f} to {:.2f}\n", what,
                           ratios.size(), median(ratios), *least, *most);
}

void compare(const Plans& plans, const JsonReader& record, Ratios& ratios) {
  const auto cost = record.find("cost_analysis");
  if (!cost) return;
  const double bytes = cost->at("bytes accessed").number();
  const double seconds = cost->at("optimal_seconds").number();
  const double per_op = bytes_of(plans.per_op) / bytes;
  const double fused = bytes_of(plans.fused) / bytes;
  const bool is_v5p = record.at("target").at("chip").string() == "v5p";
  const double time = is_v5p && seconds > 0 ? optimum(plans.fused).count() / seconds : 0;
  std::cout << fmt::format("bytes {:5.2f} one kernel per op {:5.2f} fused, time {:4.2f}  {}\n",
                           per_op, fused, time, record.at("id").string());
  if (record.at("step").string() != "train") return;
  ratios.per_op.push_back(per_op);
  ratios.fused.push_back(fused);
  if (time > 0) ratios.time.push_back(time);
}

}  // namespace

TEST_CASE("fused kernels move what XLA's move; matmuls and collectives stay") {
  Ratios ratios;
  int passed = 0;
  int failed = 0;
  const auto folder = golden_folder("xla_models") / "records";
  for (const std::string& file : golden_files(folder, ".json")) {
    const Json document = load_json(file);
    const JsonReader record(document, {file, ""});
    const bool is_tpu = record.at("target").at("platform").string() == "tpu";
    const Plans plans =
        plans_of(memory_program(file), is_tpu ? spmd::MemoryTarget::tpu : spmd::MemoryTarget::gpu);
    const Totals per_op = totals_of(plans.per_op);
    const Totals fused = totals_of(plans.fused);
    INFO(file);
    const bool moves_less = fused.bytes <= per_op.bytes;
    const bool multiplies_as_much = fused.matmul == per_op.matmul;
    const bool sends_the_same = same_collectives(plans, per_op, fused);
    CHECK(moves_less);
    CHECK(multiplies_as_much);
    CHECK(sends_the_same);
    ++(moves_less && multiplies_as_much && sends_the_same ? passed : failed);
    compare(plans, record, ratios);
  }
  REQUIRE(!ratios.fused.empty());
  print("bytes, one kernel per op,", ratios.per_op);
  print("bytes, fused,", ratios.fused);
  print("time, fused,", ratios.time);
  std::cout << fmt::format("{}: {} passed, {} failed\n", folder.string(), passed, failed);
  CHECK(std::abs(median(ratios.fused) - 1) <= largest_median_error);
  const auto far = std::count_if(ratios.fused.begin(), ratios.fused.end(),
                                 [](double ratio) { return std::abs(ratio - 1) > far_off; });
  CHECK(static_cast<double>(far) <= most_far_off * static_cast<double>(ratios.fused.size()));
  for (const double ratio : ratios.time) CHECK(std::abs(ratio - 1) <= largest_time_error);
}

}  // namespace shardsim::test
