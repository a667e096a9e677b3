#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "experiments/experiment.hpp"

#include "command.hpp"
#include "hardware_profiles/nccl_topology.hpp"
#include "hardware_profiles/plausibility.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "output.hpp"
#include "reports/machine/machine_report.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual profiles_manual = {
    "profiles [list | show NAME | check FILE | import FILE.xml] [OPTION...]",
    "Hardware profiles: the machines that are built in, a picture of one and every number with "
    "its\n"
    "source, and whether a file of your own is a valid profile. `show` draws networks written in\n"
    "place and graphs of your own, too (docs/networks.md). `import` makes a profile, as JSON, out "
    "of the topology file "
    "of\n"
    "NCCL (NCCL_TOPO_DUMP_FILE) and of a profile that has the same GPUs.",
    {"shardsim profiles", "shardsim profiles show dgx-h100",
     "shardsim profiles show tpu-v5p --topology 4x4x4 -o v5p.html",
     "shardsim profiles show 'fat-tree(4x4,bandwidth=50GB/s,latency=1us)' --format text",
     "shardsim profiles show examples/topologies/two-hosts.json -o two-hosts.html",
     "shardsim profiles show tpu-v5p --format json -o my-machine.json",
     "shardsim profiles import examples/topologies/h100x2.xml --extends dgx-h100 --date 2026-11",
     "shardsim profiles check hardware_profiles/profiles/dgx-h100.json"}};

std::vector<Profile> shipped() {
  std::vector<Profile> profiles;
  for (const std::string& name : shipped_profiles()) profiles.push_back(load_profile(name, {}));
  return profiles;
}

void list(const std::vector<Output>& outputs) {
  const std::vector<Profile> profiles = shipped();
  write(outputs, [&](const Output& output) {
    return output.format == "json" ? profile_list_json(profiles).dump(2) + "\n"
                                   : profile_list_text(profiles, output.width);
  });
}

// As many devices as make a picture that says something.
std::int64_t devices_to_show(const Profile& profile, const Place& place) {
  if (const auto* cluster = std::get_if<ClusterProfile>(&profile.network)) {
    return cluster->devices_per_node.value;
  }
  if (const auto* torus = std::get_if<TorusProfile>(&profile.network)) {
    constexpr std::int64_t most = 64;
    return largest_slice(*torus, most);
  }
  constexpr std::int64_t few = 8;
  return devices_of(std::get<NetworkDescription>(profile.network), place).value_or(few);
}

constexpr std::array profiles_flags{
    Flag{"devices", "devices", "N", "of the machine that `show` draws"},
    Flag{"topology", "topology", "SHAPE", "slice of a torus that `show` draws: 4x4x4"},
    Flag{"slices", "slices", "N", "slices of TPUs that `show` tells of"},
    Flag{"extends", "extends", "NAME", "profile whose GPUs an imported topology has"},
    Flag{"date", "date", "YYYY-MM", "when the imported topology was written"},
    Flag{"name", "name", "NAME", "of the imported profile; the file's when left out"},
};

Json machine_of_flags(const Given& given) {
  Json document = Json::object();
  for (const Flag& flag : profiles_flags) {
    const Words values = given.all(flag.name);
    if (values.size() > 1) throw UsageError(std::string("--") + flag.name + " is given twice");
    if (!values.empty()) apply_override(document, flag.path, values[0]);
  }
  return document;
}

Machine machine_to_show(const std::string& name, const Json& asked) {
  const Place place{"command line", ""};
  const JsonReader reader(asked, place);
  const Profile profile = load_profile(name, place);
  std::optional<std::string> topology;
  std::int64_t devices = devices_to_show(profile, place);
  if (const auto shape = reader.find("topology")) {
    topology = shape->string();
    const auto* torus = std::get_if<TorusProfile>(&profile.network);
    devices = torus == nullptr ? 1 : devices_per_chip(*torus);
    // Behind "_" stands how it closes: 4x4x8_twisted.
    const std::string sizes = topology->substr(0, topology->find('_'));
    for (const std::int64_t size : parse_shape(sizes, shape->place())) devices *= size;
  }
  std::int64_t slices = 1;
  constexpr std::int64_t most_slices = 1024;
  if (const auto count = reader.find("slices")) slices = count->integer(1, most_slices);
  devices *= slices;
  if (const auto count = reader.find("devices")) {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    devices = count->integer(1, most);
  }
  return make_machine(profile, devices, topology, place, slices);
}

void show(const std::string& name, const Given& given, const std::vector<Output>& outputs) {
  if (is_network_text(name) && wants(outputs, "json")) {
    throw InputError({"command line", ""}, "a network written in place has no profile in JSON");
  }
  const Place place{"command line", ""};
  const Machine machine = machine_to_show(name, machine_of_flags(given));
  write(outputs, [&](const Output& output) {
    if (output.format == "json") return profile_to_json(machine.profile).dump(2) + "\n";
    return output.format == "html" ? machine_report_html(machine, place)
                                   : machine_report_text(machine, place, output.width);
  });
}

void import_topology(const std::string& file, const Given& given,
                     const std::vector<Output>& outputs) {
  const Json asked = machine_of_flags(given);
  for (const char* needed : {"extends", "date"}) {
    if (!asked.contains(needed)) {
      throw UsageError(fmt::format("profiles import needs --{}: the file does not say {}", needed,
                                   std::string_view(needed) == "date"
                                       ? "when it was written"
                                       : "what memory and peaks its GPUs have"));
    }
  }
  const JsonReader reader(asked, {"command line", ""});
  TopologyImport how;
  how.extends = reader.at("extends").string();
  how.date = reader.at("date").string();
  how.name = std::filesystem::path(file).stem().string();
  if (const auto name = reader.find("name")) how.name = name->string();
  const ImportedTopology imported = import_nccl_topology(read_file(file), file, how);
  for (const std::string& note : imported.notes) fmt::print(stderr, "note: {}: {}\n", file, note);
  // It is JSON as text, too: with a file there is nothing else to print.
  std::vector<Output> files = outputs;
  if (given.has("output")) {
    std::erase_if(files, [](const Output& output) { return output.path.empty(); });
  }
  write(files, [&](const std::string&) { return imported.profile.dump(2) + "\n"; });
}

// Reading is the check; what is odd beside known hardware is a warning.
void check(const std::string& file) {
  const Profile profile = read_profile(load_json(file, FileKind::profile), file);
  std::string text = fmt::format("{}: a valid profile, {}\n", file, profile.name);
  const std::string assumed = assumed_numbers(profile);
  if (!assumed.empty()) text += fmt::format("note: {}\n", assumed);
  for (const std::string& line : implausible_numbers(profile)) {
    text += fmt::format("warning: {}\n", line);
  }
  print(text);
}

const std::vector<std::string> profiles_formats = {"text", "json", "html"};

void add_profiles_options(po::options_description& options) {
  add_flags(options, profiles_flags);
  add_output_options(options, profiles_formats);
}

int run_profiles(const Given& given) {
  const auto outputs = read_outputs(given, profiles_formats);
  const Words operands = given.all("operand");
  const std::string action = operands.empty() ? "list" : operands[0];
  for (const Flag& flag : profiles_flags) {
    const std::string_view name = flag.name;
    const std::string_view verb =
        name == "devices" || name == "topology" || name == "slices" ? "show" : "import";
    if (given.has(flag.name) && action != verb) {
      throw UsageError(fmt::format("--{} is for profiles {}", name, verb));
    }
  }
  if (action != "show" && wants(outputs, "html")) {
    throw UsageError(fmt::format("profiles {} has no format html", action));
  }
  if (action == "list" && operands.size() <= 1) {
    list(outputs);
  } else if (action == "show" && operands.size() == 2) {
    show(operands[1], given, outputs);
  } else if (action == "check" && operands.size() == 2) {
    check(operands[1]);
  } else if (action == "import" && operands.size() == 2) {
    import_topology(operands[1], given, outputs);
  } else {
    throw UsageError("expected: profiles [list | show NAME | check FILE | import FILE.xml]");
  }
  return exit_done;
}

}  // namespace

Verb profiles_verb() {
  return {.name = "profiles",
          .summary = "hardware profiles: list, show, check",
          .manual = profiles_manual,
          .add_options = add_profiles_options,
          .run = run_profiles,
          .actions = {"list", "show", "check", "import"}};
}

}  // namespace shardsim
