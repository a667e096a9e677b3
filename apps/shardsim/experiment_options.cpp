#include "experiment_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>

#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "flag_variants.hpp"

namespace shardsim {
namespace {

constexpr std::array flags{
    Flag{"model", "workload.model", "MODEL", "shipped model, or a path to a config.json"},
    Flag{"tree", "workload.tree", "FILE", "for specs, in place of a model: a parameter tree"},
    Flag{"program", "program", "FILE",
         "in place of model, mesh and strategy: StableHLO or HLO text"},
    Flag{"like", "like", "xla",
         "of a program: reshard as XLA does, even where other ways send less"},
    Flag{"step", "workload.step", "STEP", "train, forward, prefill, decode, generate"},
    Flag{"batch", "workload.batch", "N", "sequences or images per step, on all devices"},
    Flag{"sequence", "workload.sequence", "N", "tokens per sequence"},
    Flag{"microbatches", "workload.microbatches", "N",
         "parts of the batch, one after the other: gradient accumulation"},
    Flag{"rematerialization", "workload.rematerialization", "POLICY",
         "what is computed again in backward: none, full, selective"},
    Flag{"mesh", "mesh", "MESH", "axes and sizes: data=2,fsdp=4"},
    Flag{"strategy", "strategy", "NAME", "fsdp, tp, ..., or a rule system: shardsim help strategy"},
    Flag{"machine", "machine", "NAME", "hardware profile, or a path to one"},
    Flag{"calibration", "calibration", "NAME",
         "of collectives, in place of the machine's: one that is shipped, what calibrate wrote, or "
         "a list, '[\"h100-nvswitch\",\"mine.json\"]'"},
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
  Json list = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (list.is_array()) {
    for (Json& one : list) {
      if (one.is_string()) one = seen_from(directory, one.get<std::string>());
    }
    return list.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  const std::filesystem::path path(value);
  std::error_code unreadable;
  const std::set<std::string> endings = {".json", ".gz", ".safetensors", ".mlir", ".hlo", ".txt"};
  const bool is_file =
      endings.contains(path.extension().string()) && std::filesystem::exists(path, unreadable);
  if (!is_file || path.is_absolute() || directory.empty()) return value;
  return std::filesystem::proximate(path, directory).string();
}

void apply_set(const std::string& text, std::set<std::string>& paths, Json& document) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw UsageError(fmt::format("--set {}: expected PATH=VALUE", text));
  }
  const std::string path = text.substr(0, equals);
  if (!paths.insert(path).second) {
    throw UsageError(fmt::format("--set {} is given twice", path));
  }
  apply_override(document, path, text.substr(equals + 1));
}

// Flags and --set in the order in which they are given.
void apply_flags(const Given& given, const std::vector<FlagChoice>& choices, const Variant& variant,
                 const std::string& directory, Json& document) {
  std::set<std::string> paths;
  std::vector<bool> applied(choices.size());
  for (const auto& option : given.parsed.options) {
    if (option.string_key == "set") apply_set(option.value.at(0), paths, document);
    if (option.string_key == "allow-uneven") apply_override(document, "allow_uneven", "true");
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (option.string_key != choices[i].flag->name || applied[i]) continue;
      applied[i] = true;
      const std::string& value = choices[i].values[variant.indices[i]];
      apply_override(document, choices[i].flag->path, seen_from(directory, value));
    }
  }
}

bool has_flags(const Given& given) {
  return given.has("set") || std::any_of(flags.begin(), flags.end(),
                                         [&](const Flag& flag) { return given.has(flag.name); });
}

void rename(Experiment& experiment, const std::string& name) {
  experiment.name = name;
  (*experiment.resolved)["name"] = name;
}

std::string name_of_flags(const Given& given) {
  const Words names = given.all("name");
  if (!names.empty()) return names.back();
  for (const char* source : {"tree", "model", "program"}) {
    if (!given.has(source)) continue;
    // A model's name may have dots: only the ending of a file comes off.
    const std::filesystem::path path(given.all(source).back());
    return (path.extension() == ".json" ? path.stem() : path.filename()).string();
  }
  return {};
}

[[noreturn]] void fail_unknown(const std::string& name, const std::vector<std::string>& names) {
  const std::string suggestion = closest(name, names);
  const Place place{"--name", ""};
  if (!suggestion.empty()) {
    throw InputError(place, fmt::format("no experiment is called \"{}\"", name), suggestion);
  }
  throw InputError(place, fmt::format("no experiment is called \"{}\"; there are {}", name,
                                      fmt::join(names, ", ")));
}

// Names of variants choose them, one other calls the experiment so. Says whether they choose.
bool choose_variants(const Words& names, std::vector<Variant>& variants) {
  const auto is_named = [&](const Variant& variant) {
    return !variant.label.empty() &&
           std::find(names.begin(), names.end(), variant.label) != names.end();
  };
  if (std::none_of(variants.begin(), variants.end(), is_named)) {
    if (names.size() <= 1) return false;
    throw UsageError(fmt::format(
        "--name is given {} times and chooses nothing: one name calls the experiment so",
        names.size()));
  }
  std::vector<std::string> labels;
  for (const Variant& variant : variants) labels.push_back(variant.label);
  for (const std::string& name : names) {
    if (std::find(labels.begin(), labels.end(), name) == labels.end()) fail_unknown(name, labels);
  }
  std::erase_if(variants, std::not_fn(is_named));
  return true;
}

std::vector<Experiment> read_flags_alone(const Given& given) {
  const std::vector<FlagChoice> choices = choices_of(given, flags);
  std::vector<Variant> variants = variants_of(choices);
  const Words names = given.all("name");
  const bool chooses = choose_variants(names, variants);
  std::vector<Experiment> experiments;
  for (const Variant& variant : variants) {
    Json document = Json::object();
    apply_flags(given, choices, variant, "", document);
    const std::string name = name_of_flags(given);
    if (!name.empty()) document["name"] = name;
    for (Experiment& experiment : read_experiments(document, "command line")) {
      if (!variant.label.empty()) {
        rename(experiment, names.empty() || chooses ? variant.label
                                                    : fmt::format("{}, {}", name, variant.label));
      }
      experiments.push_back(std::move(experiment));
    }
  }
  return experiments;
}

// Experiments of several files may have the same name; the file then tells them apart.
void make_names_distinct(std::vector<Experiment>& experiments) {
  std::multiset<std::string> names;
  for (const Experiment& experiment : experiments) names.insert(experiment.name);
  for (Experiment& experiment : experiments) {
    if (names.count(experiment.name) == 1) continue;
    const std::string stem = std::filesystem::path(experiment.file).stem().string();
    if (stem != experiment.name) rename(experiment, stem + ": " + experiment.name);
  }
}

std::vector<std::string> names_of(const std::vector<Experiment>& experiments) {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments) names.push_back(experiment.name);
  return names;
}

// `in_file`: names before those of the flags' variants, by experiment; either may be meant.
void keep_named(std::vector<Experiment>& experiments, const std::vector<std::string>& in_file,
                const Words& wanted) {
  std::vector<Experiment> kept;
  std::set<std::string> found;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    bool is_kept = false;
    for (const std::string& name : wanted) {
      if (name != experiments[i].name && name != in_file[i]) continue;
      found.insert(name);
      is_kept = true;
    }
    if (is_kept) kept.push_back(experiments[i]);
  }
  for (const std::string& name : wanted) {
    if (!found.contains(name)) fail_unknown(name, names_of(experiments));
  }
  experiments = std::move(kept);
}

}  // namespace

void add_experiment_options(po::options_description& options) {
  add_flags(options, flags);
  options.add_options()("set", po::value<Words>()->value_name("PATH=VALUE"),
                        "set any field: workload.precision.master=none; may be repeated")(
      "allow-uneven",
      "price parameters and inputs whose shards do not divide, with a warning, where the rule "
      "system's jit or shard_map refuses them")(
      "name", po::value<Words>()->value_name("NAME"),
      "take this variant of the file or of the lists of flags; may be repeated; without a file one "
      "other name calls the experiment so");
}

std::vector<Experiment> read_given_experiments(const Given& given) {
  const Words files = given.all("operand");
  if (files.empty()) {
    if (!has_flags(given))
      throw UsageError("no experiment: name a file, or give --model and so on");
    return read_flags_alone(given);
  }
  const std::vector<FlagChoice> choices = choices_of(given, flags);
  const std::vector<Variant> variants = variants_of(choices);
  std::vector<Experiment> experiments;
  std::vector<std::string> in_file;
  for (const std::string& file : files) {
    const Json original = load_json(file, FileKind::experiment);
    const bool has_variants = original.is_object() && original.contains("variants");
    for (const Variant& variant : variants) {
      Json document = original;
      apply_flags(given, choices, variant, std::filesystem::path(file).parent_path().string(),
                  document);
      // Of several files or variants names may be alike, and told apart later.
      const bool by_name = files.size() == 1 && variant.label.empty();
      const Words wanted = by_name ? given.all("name") : Words();
      for (Experiment& experiment : read_experiments(document, file, wanted)) {
        in_file.push_back(experiment.name);
        if (!variant.label.empty()) {
          rename(experiment, has_variants ? fmt::format("{}, {}", experiment.name, variant.label)
                                          : variant.label);
        }
        experiments.push_back(std::move(experiment));
      }
    }
  }
  make_names_distinct(experiments);
  if (given.has("name")) keep_named(experiments, in_file, given.all("name"));
  return experiments;
}

Experiment read_given_experiment(const Given& given) {
  if (given.all("operand").size() > 1) throw UsageError("one experiment at a time");
  std::vector<Experiment> experiments = read_given_experiments(given);
  if (experiments.size() == 1) return std::move(experiments[0]);
  if (!given.has("operand")) {
    throw UsageError(fmt::format("one experiment at a time, not {}: compare takes several",
                                 fmt::join(names_of(experiments), "; ")));
  }
  throw InputError({experiments[0].file, ""},
                   fmt::format("holds {} experiments, choose one with --name: {}",
                               experiments.size(), fmt::join(names_of(experiments), ", ")));
}

void require_single_values(const Given& given) {
  for (const FlagChoice& choice : choices_of(given, flags)) {
    if (choice.values.size() == 1) continue;
    throw UsageError(fmt::format("--{}: one value at a time, not {}", choice.flag->name,
                                 fmt::join(choice.values, "; ")));
  }
}

}  // namespace shardsim
