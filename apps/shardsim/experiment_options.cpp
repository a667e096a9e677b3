#include "experiment_options.hpp"

#include "base/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

namespace shardsim {
namespace {

namespace po = boost::program_options;

constexpr std::array flags{
    Flag{"model", "workload.model", "MODEL", "shipped model, or a path to a config.json"},
    Flag{"tree", "workload.tree", "FILE", "for specs, in place of a model: a parameter tree"},
    Flag{"program", "program", "FILE",
         "in place of model, mesh and strategy: StableHLO or HLO text"},
    Flag{"like", "like", "xla",
         "of a program: reshard as XLA does, even where other ways send less"},
    Flag{"step", "workload.step", "STEP", "train"},
    Flag{"batch", "workload.batch", "N", "sequences or images per step, on all devices"},
    Flag{"sequence", "workload.sequence", "N", "tokens per sequence"},
    Flag{"mesh", "mesh", "MESH", "axes and sizes: data=2,fsdp=4"},
    Flag{"strategy", "strategy", "NAME", "fsdp, tp, ..., or a rule system: docs/rule-systems"},
    Flag{"machine", "machine", "NAME", "hardware profile, or a path to one"},
    Flag{"topology", "topology", "SHAPE",
         "slice of a torus, in chips: 4x4x4, 4x4x8_twisted, 4x4x4_open"},
    Flag{"slices", "slices", "N",
         "slices of TPUs that the devices lie on: 2, or by axis that goes over them, data=2"},
    Flag{"placement", "placement", "ORDER",
         "devices of the mesh: jax, row-major, megatron, axes from the fastest on as tp-cp-dp-pp, "
         "or a list of devices, [0,2,1,3] or a .json file"},
    Flag{"collectives", "collectives", "MODEL",
         "whose times collectives have: simulated, all-links, tpu-scheduler, xla-sol or flows"},
    Flag{"algorithms", "algorithms", "KIND=NAME",
         "what collectives are told to take, by NCCL's names or, with flows, those of "
         "docs/networks.md: all-reduce=Ring/LL128,all-gather over data=Ring"},
};

// A path in a file is relative to the file, one on the command line to where the user is.
std::string seen_from(const std::string& directory, const std::string& value) {
  const std::filesystem::path path(value);
  std::error_code unreadable;
  const std::set<std::string> endings = {".json", ".gz", ".safetensors", ".mlir", ".hlo", ".txt"};
  const bool is_file =
      endings.contains(path.extension().string()) && std::filesystem::exists(path, unreadable);
  if (!is_file || path.is_absolute() || directory.empty()) return value;
  return std::filesystem::proximate(path, directory).string();
}

void apply_flags(const Given& given, const std::string& directory, Json& document) {
  for (const auto& option : given.parsed.options) {
    for (const Flag& flag : flags) {
      if (option.string_key != flag.name) continue;
      apply_override(document, flag.path, seen_from(directory, option.value.at(0)));
    }
    if (option.string_key != "set") continue;
    const std::string& text = option.value.at(0);
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw UsageError(fmt::format("--set {}: expected PATH=VALUE", text));
    }
    apply_override(document, text.substr(0, equals), text.substr(equals + 1));
  }
}

bool has_flags(const Given& given) {
  return given.has("set") || std::any_of(flags.begin(), flags.end(),
                                         [&](const Flag& flag) { return given.has(flag.name); });
}

std::vector<Experiment> read_flags_alone(const Given& given) {
  Json document = Json::object();
  apply_flags(given, "", document);
  const Words names = given.all("name");
  if (!names.empty()) {
    document["name"] = names.back();
  } else {
    for (const char* source : {"tree", "model", "program"}) {
      if (!given.has(source)) continue;
      // A model's name may have dots: only the ending of a file comes off.
      const std::filesystem::path path(given.all(source).back());
      document["name"] = (path.extension() == ".json" ? path.stem() : path.filename()).string();
    }
  }
  return read_experiments(document, "command line");
}

// Experiments of several files may have the same name; the file then tells them apart.
void make_names_distinct(std::vector<Experiment>& experiments) {
  std::multiset<std::string> names;
  for (const Experiment& experiment : experiments) names.insert(experiment.name);
  for (Experiment& experiment : experiments) {
    if (names.count(experiment.name) == 1) continue;
    const std::string stem = std::filesystem::path(experiment.file).stem().string();
    if (stem != experiment.name) experiment.name = stem + ": " + experiment.name;
    (*experiment.resolved)["name"] = experiment.name;
  }
}

std::vector<std::string> names_of(const std::vector<Experiment>& experiments) {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments) names.push_back(experiment.name);
  return names;
}

void keep_named(std::vector<Experiment>& experiments, const Words& wanted) {
  const std::vector<std::string> names = names_of(experiments);
  for (const std::string& name : wanted) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string suggestion = closest(name, names);
    const Place place{"--name", ""};
    if (!suggestion.empty()) {
      throw InputError(place, fmt::format("no experiment is called \"{}\"", name), suggestion);
    }
    throw InputError(place, fmt::format("no experiment is called \"{}\"; there are {}", name,
                                        fmt::join(names, ", ")));
  }
  std::erase_if(experiments, [&](const Experiment& experiment) {
    return std::find(wanted.begin(), wanted.end(), experiment.name) == wanted.end();
  });
}

}  // namespace

void add_experiment_options(po::options_description& options) {
  add_flags(options, flags);
  options.add_options()("set", po::value<Words>()->value_name("PATH=VALUE"),
                        "set any field: workload.precision.master=none; may be repeated")(
      "name", po::value<Words>()->value_name("NAME"),
      "take this variant of the file; without a file, call the experiment so");
}

std::vector<Experiment> read_given_experiments(const Given& given) {
  const Words files = given.all("operand");
  if (files.empty()) {
    if (!has_flags(given))
      throw UsageError("no experiment: name a file, or give --model and so on");
    return read_flags_alone(given);
  }
  std::vector<Experiment> experiments;
  for (const std::string& file : files) {
    Json document = load_json(file);
    apply_flags(given, std::filesystem::path(file).parent_path().string(), document);
    // Of several files names may be alike, and told apart later.
    const Words wanted = files.size() == 1 ? given.all("name") : Words();
    for (Experiment& experiment : read_experiments(document, file, wanted)) {
      experiments.push_back(std::move(experiment));
    }
  }
  make_names_distinct(experiments);
  if (given.has("name")) keep_named(experiments, given.all("name"));
  return experiments;
}

Experiment read_given_experiment(const Given& given) {
  if (given.all("operand").size() > 1) throw UsageError("one experiment at a time");
  std::vector<Experiment> experiments = read_given_experiments(given);
  if (experiments.size() == 1) return std::move(experiments[0]);
  throw InputError({experiments[0].file, ""},
                   fmt::format("holds {} experiments, choose one with --name: {}",
                               experiments.size(), fmt::join(names_of(experiments), ", ")));
}

}  // namespace shardsim
