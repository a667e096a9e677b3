#include "import_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/file.hpp"
#include "base/json.hpp"
#include "launch/launch.hpp"
#include "output.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {

constexpr const char* only_here[] = {"devices", "sequence", "machine", "leave-out", "keys", "set"};

std::string single(const Given& given, const std::string& option) {
  const Words all = given.all(option);
  if (all.size() > 1) throw UsageError(fmt::format("--{} is given twice", option));
  return all.empty() ? "" : all[0];
}

std::optional<std::int64_t> number(const Given& given, const std::string& option) {
  const std::string text = single(given, option);
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw UsageError(fmt::format("--{} {}: expected a number from 1", option, text));
  }
  return value;
}

// A model that is shipped by its name, any other whole: the experiment may lie elsewhere.
Json model_in(const std::string& name) {
  const std::vector<std::string> shipped = shipped_models();
  if (std::find(shipped.begin(), shipped.end(), name) != shipped.end()) return name;
  return *load_model_config(name, "", {"command line", "--model"}).json;
}

LaunchOptions launch_options(const Given& given) {
  const Words operands = given.all("operand");
  LaunchOptions options;
  options.devices = number(given, "devices");
  options.sequence = number(given, "sequence");
  options.mesh = single(given, "mesh");
  options.machine = single(given, "machine");
  options.leave_out = given.all("leave-out");
  options.lists_refused = given.has("keys");
  options.overrides.assign(operands.begin() + 2, operands.end());
  if (const std::string model = single(given, "model"); !model.empty()) {
    *options.model = model_in(model);
  }
  for (const std::string& setting : given.all("set")) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) throw UsageError("--set expects path=value");
    options.settings.push_back({setting.substr(0, equals), setting.substr(equals + 1)});
  }
  return options;
}

bool has_refused(const Imported& imported) {
  return std::any_of(imported.keys.begin(), imported.keys.end(),
                     [](const KeyUse& use) { return use.effect == KeyEffect::refused; });
}

}  // namespace

Words launch_kinds() {
  Words kinds;
  for (const LaunchFramework& framework : launch_frameworks()) {
    kinds.emplace_back(framework.name);
  }
  return kinds;
}

bool is_launch_kind(const std::string& kind) {
  const Words kinds = launch_kinds();
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

void add_launch_options(po::options_description& options) {
  options.add_options()("devices", po::value<std::string>()->value_name("N"),
                        "of somebody's own configuration: how many it is launched on")(
      "sequence", po::value<std::string>()->value_name("TOKENS"),
      "of DeepSpeed's, which does not say it")(
      "machine", po::value<std::string>()->value_name("NAME"),
      "of somebody's own configuration: the machine that the experiment gets")(
      "set", po::value<Words>()->value_name("PATH=VALUE"),
      "of somebody's own configuration: a field of the experiment, whatever the file says")(
      "leave-out", po::value<Words>()->value_name("KEY"),
      "of somebody's own configuration: as if the file did not have the key")(
      "keys",
      "of somebody's own configuration: only say of each key what it is, of refused ones, "
      "too; exit with 1 when there are any");
}

std::string given_launch_option(const Given& given) {
  for (const char* option : only_here) {
    if (given.has(option)) return option;
  }
  return "";
}

int run_import_launch(const Given& given) {
  const Words operands = given.all("operand");
  if (operands.size() < 2) {
    throw UsageError(fmt::format("expected: import {} FILE [KEY=VALUE...]", operands[0]));
  }
  for (const char* option : {"like", "buffers"}) {
    if (given.has(option)) throw UsageError(fmt::format("--{} is for programs", option));
  }
  const std::string format = single(given, "format");
  if (!format.empty() && format != "text" && format != "json") {
    throw UsageError(fmt::format("--format: no format \"{}\"; there are text, json", format));
  }
  if (operands[0] != "deepspeed") {
    for (const char* option : {"mesh", "sequence"}) {
      if (given.has(option)) {
        throw UsageError(
            fmt::format("--{} is for deepspeed; a file of {} says it itself", option, operands[0]));
      }
    }
  }
  const LaunchOptions options = launch_options(given);
  const Imported imported =
      import_launch(operands[0], read_file(operands[1]), operands[1], options);
  const Words files = given.all("output");
  if (options.lists_refused && !files.empty()) {
    throw UsageError("--keys makes no experiment to write with -o");
  }
  const std::string experiment = options.lists_refused ? "" : imported.experiment->dump(2) + "\n";
  for (const std::string& file : files) write_file(file, experiment);
  if (format == "json") {
    print(imported_to_json(imported).dump(1) + "\n");
  } else {
    print(imported_text(imported) + (files.empty() ? experiment : ""));
  }
  return options.lists_refused && has_refused(imported) ? exit_verdict_is_no : exit_done;
}

}  // namespace shardsim
