#include "reports/machine/kernel_report.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/json.hpp"
#include "base/version.hpp"
#include "sim/step/kernel_cost.hpp"
#include "sim/step/sustained_clock.hpp"

namespace shardsim {
namespace {

struct Answer {
  KernelCost cost;
  double clock = 1;  // that it sustains, run again and again
  Seconds sustained{0};
  std::optional<double> of_peak;
  std::string scaled_from;  // the device of the table, where it is another
};

Answer answer(const Profile& profile, const Kernel& kernel) {
  const DeviceProfile& device = profile.device;
  Answer answer;
  answer.cost = kernel_cost(device, kernel);
  answer.clock = sustained_clock(device, {{kernel, answer.cost, 1}});
  answer.sustained = at_clock(answer.cost, answer.clock).total();
  if (kernel.kernel_class != KernelClass::memory) {
    answer.of_peak = kernel.flops.count() / answer.cost.total().count() /
                     operand_peak(device, kernel.dtype).rate.count();
  }
  if (answer.cost.source != nullptr && device.kernels->device != device.name) {
    answer.scaled_from = device.kernels->device;
  }
  return answer;
}

std::string shape_of(const Kernel& kernel) {
  if (!kernel.product) return format_bytes(kernel.bytes);
  const Product& p = *kernel.product;
  const std::string sizes = kernel.kernel_class == KernelClass::matmul
                                ? fmt::format("{}x{}x{}", p.m, p.n, p.k)
                                : fmt::format("{}x{}x{}x{}", p.batch, p.m, p.n, p.k);
  return p.batch > 1 && kernel.kernel_class == KernelClass::matmul
             ? fmt::format("{} of {}", p.batch, sizes)
             : sizes;
}

std::string where_from(const Answer& answer) {
  switch (answer.cost.evidence) {
    case Evidence::efficiency:
      return "the profile's efficiencies: no table has such kernels";
    case Evidence::modelled:
      return "modelled: a formula fitted to measured kernels";
    case Evidence::interpolated:
      return "interpolated between measured shapes";
    case Evidence::measured:
      return "measured";
  }
  return {};
}

}  // namespace

std::string kernel_report_text(const Profile& profile, const Kernel& kernel, std::size_t width) {
  const Answer found = answer(profile, kernel);
  const KernelCost& cost = found.cost;
  std::string text =
      fmt::format("{}{} {} {} on {} ({})\n\n", kernel.op,
                  kernel.implementation.empty() ? "" : " " + kernel.implementation,
                  shape_of(kernel), name_of(kernel.dtype), profile.name, profile.device.name);
  TextTable table({{"time"}, {format_seconds(cost.total())}});
  table.add_row({"launch and what no shape changes", format_seconds(cost.launch)});
  table.add_row({"computing", format_seconds(cost.computing)});
  table.add_row({"moving", format_seconds(cost.moving)});
  if (cost.adding.count() > 0) table.add_row({"adding", format_seconds(cost.adding)});
  if (found.of_peak) {
    const FlopRate rate(kernel.flops.count() / cost.total().count());
    table.add_row({"rate", fmt::format("{}, {:.1f} % of the peak", format_flop_rate(rate),
                                       100 * *found.of_peak)});
  } else {
    const Bandwidth rate(static_cast<double>(kernel.bytes.count()) / cost.total().count());
    table.add_row({"rate", format_bandwidth(rate)});
  }
  if (profile.device.power) {
    table.add_row(
        {"again and again", fmt::format("{}, at {:.0f} % of the clock",
                                        format_seconds(found.sustained), 100 * found.clock)});
  }
  text += table.text("", width) + "\n" + where_from(found);
  if (!found.scaled_from.empty()) {
    text += fmt::format("; scaled from {} by peak and bandwidth", found.scaled_from);
  }
  text += "\n";
  if (cost.source != nullptr) {
    text += wrapped(fmt::format("{} ({}). {}", cost.source->reference, cost.source->date,
                                cost.source->note),
                    0, width) +
            "\n";
  }
  return text;
}

Json kernel_report_json(const Profile& profile, const Kernel& kernel) {
  const Answer found = answer(profile, kernel);
  const KernelCost& cost = found.cost;
  const double time = cost.total().count();
  Json work{{"op", kernel.op},
            {"class", name_of(kernel.kernel_class)},
            {"dtype", name_of(kernel.dtype)},
            {"flops", kernel.flops.count()},
            {"bytes", kernel.bytes.count()}};
  if (!kernel.implementation.empty()) work["implementation"] = kernel.implementation;
  if (kernel.product) {
    work["product"] = {{"batch", kernel.product->batch},
                       {"m", kernel.product->m},
                       {"n", kernel.product->n},
                       {"k", kernel.product->k}};
  }
  Json json{{"schema", "shardsim/kernel/1"},
            {"shardsim", program_version},
            {"machine", profile.name},
            {"device", profile.device.name},
            {"kernel", std::move(work)},
            {"time_s", time},
            {"launch_s", cost.launch.count()},
            {"computing_s", cost.computing.count()},
            {"moving_s", cost.moving.count()},
            {"clock", found.clock},
            {"sustained_s", found.sustained.count()},
            {"bytes_per_s", static_cast<double>(kernel.bytes.count()) / time},
            {"evidence", name_of(cost.evidence)}};
  if (found.of_peak) {
    json["flops_per_s"] = kernel.flops.count() / time;
    json["of_peak"] = *found.of_peak;
  }
  if (!found.scaled_from.empty()) json["scaled_from"] = found.scaled_from;
  if (cost.source != nullptr) {
    json["source"] = {{"kind", cost.source->kind},
                      {"source", cost.source->reference},
                      {"date", cost.source->date},
                      {"note", cost.source->note}};
  }
  return json;
}

}  // namespace shardsim
