#include "validate_sweep.hpp"

#include <fmt/format.h>

#include <optional>
#include <sstream>

#include "base/json.hpp"
#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "measurements/collective_measurement.hpp"
#include "measurements/size_sweep.hpp"
#include "processes.hpp"
#include "progress.hpp"

namespace shardsim {
namespace {

constexpr auto right = TextTable::Align::right;

// What was measured, behind what it is of.
TextTable swept_table(std::vector<TextTable::Column> columns) {
  for (const char* title : {"time", "10 %", "90 %", "repeats"}) columns.push_back({title, right});
  return TextTable(std::move(columns));
}

void add_row(TextTable& table, std::vector<std::string> cells, const MeasuredTime& time) {
  for (const Seconds each : {time.median, time.low, time.high}) {
    cells.push_back(format_seconds(each));
  }
  cells.push_back(std::to_string(time.repeats));
  table.add_row(std::move(cells));
}

std::string sweep_for_people(const DeviceSweep& sweep, std::size_t width) {
  TextTable collectives = swept_table(
      {{"collective"}, {"algorithm"}, {"group", right}, {"groups", right}, {"size", right}});
  for (const SweptCollective& swept : sweep.collectives) {
    add_row(collectives,
            {std::string(name_of(swept.kind)), swept.algorithm, std::to_string(swept.group_size),
             std::to_string(swept.groups), format_bytes(swept.payload)},
            swept.time);
  }
  TextTable kernels = swept_table(
      {{"kernel"}, {"type"}, {"m x n x k", right}, {"operations", right}, {"bytes", right}});
  for (const SweptKernel& swept : sweep.kernels) {
    const Kernel& kernel = swept.kernel;
    add_row(kernels,
            {std::string(name_of(kernel.kernel_class)), std::string(name_of(kernel.dtype)),
             kernel.product ? shape_text({kernel.product->m, kernel.product->n, kernel.product->k})
                            : "",
             format_flops(kernel.flops), format_bytes(kernel.bytes)},
            swept.time);
  }
  TextTable copies = swept_table({{"copied to the host", right}});
  for (const SweptCopy& swept : sweep.copies) {
    add_row(copies, {format_bytes(swept.bytes)}, swept.time);
  }
  TextTable memory({{"memory taken by"}, {"bytes", right}});
  for (const MemoryTaken& taken : sweep.memory) {
    memory.add_row({taken.what, format_bytes(taken.bytes)});
  }
  std::string text = fmt::format("{} on {} ({}, {}), {}\n", counted(sweep.on.processes, "rank"),
                                 counted(static_cast<std::int64_t>(sweep.on.hosts.size()), "host"),
                                 sweep.processor, counted(sweep.cores, "core"), sweep.on.library);
  for (const auto& [what, value] : sweep.device) text += fmt::format("  {}: {}\n", what, value);
  if (!sweep.collectives.empty()) text += "\n" + collectives.text({}, width);
  if (!sweep.kernels.empty()) text += "\n" + kernels.text({}, width);
  if (!sweep.copies.empty()) text += "\n" + copies.text({}, width);
  if (!sweep.memory.empty()) text += "\n" + memory.text({}, width);
  return text;
}

// "all-reduce=ring".
std::pair<CollectiveKind, std::string> read_algorithm(const std::string& choice) {
  const std::size_t sign = choice.find('=');
  if (sign == std::string::npos || sign + 1 == choice.size()) {
    throw UsageError(fmt::format("--algorithms {}: expected KIND=NAME, all-reduce=ring", choice));
  }
  const Json kind = choice.substr(0, sign);
  return {read_collective_kind(JsonReader(kind, {"command line", "/algorithms"})),
          choice.substr(sign + 1)};
}

SweepOptions read_sweep_options(const Given& given, const Repeats& repeats,
                                std::int64_t processes) {
  SweepOptions options = default_sweep();
  options.part = read_sweep_part(given);
  if (options.part == SweepPart::collectives && processes == 1) {
    throw UsageError("--only collectives: one device alone has none");
  }
  options.repeats = repeats;
  if (given.has("machine")) {
    options.machine = given.all("machine").back();
    (void)load_profile(*options.machine, {"command line", "/machine"});
  }
  if (given.has("sizes")) {
    options.sizes = parse_sizes(given.all("sizes").back(), {"command line", "/sizes"});
  }
  for (const std::string& list : given.all("algorithms")) {
    std::istringstream choices(list);
    for (std::string choice; std::getline(choices, choice, ',');) {
      options.algorithms.push_back(read_algorithm(choice));
    }
  }
  return options;
}

}  // namespace

void add_sweep_options(po::options_description& options) {
  options.add_options()(
      "sweep",
      "measure collectives and kernels of many sizes; of --algorithms, as the library names\n"
      "them (all-reduce=ring), collectives told to take these, too; --machine says whose numbers\n"
      "they are, where that is not what a GPU's name tells")(
      "sizes", po::value<Words>()->value_name("SIZES"),
      "of a sweep's collectives: 1KiB:64MiB:x2; 1KiB:16MiB:x4 when left out");
}

std::vector<std::string> sweep_formats() { return {"text", "json"}; }

SweepPart read_sweep_part(const Given& given) {
  if (!given.has("only")) return SweepPart::everything;
  const std::string part = given.all("only").back();
  if (part == "collectives") return SweepPart::collectives;
  if (part != "kernels") {
    throw UsageError(fmt::format("--only {}: of a sweep there are collectives and kernels", part));
  }
  for (const char* option : {"sizes", "algorithms"}) {
    if (!given.has(option)) continue;
    throw UsageError(
        fmt::format("--{} is of collectives, which --only kernels leaves out", option));
  }
  return SweepPart::kernels;
}

int sweep_on(Backend& backend, const Given& given, const Repeats& repeats,
             const std::vector<Output>& outputs) {
  const bool prints = backend.exchange().rank() == 0;
  Attempts together(backend.exchange());
  const auto written = together([&] {
    const SweepOptions options = read_sweep_options(given, repeats, backend.exchange().size());
    std::optional<Progress> progress;
    if (prints) progress.emplace(parts_of(options, backend));
    const DeviceSweep sweep = run_sweep(options, backend, [&](const std::string& part) {
      if (progress) progress->begin(part);
    });
    progress.reset();
    if (prints) {
      write(outputs, [&](const Output& output) {
        return output.format == "json" ? sweep_text(sweep) : sweep_for_people(sweep, output.width);
      });
    }
    return true;
  });
  return written ? exit_done : together.exit_code();
}

}  // namespace shardsim
