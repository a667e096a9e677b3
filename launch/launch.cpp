#include "launch/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "launch/framework_files.hpp"

namespace shardsim {
namespace {

// As a command line has it: --num_layers is num-layers to a file of arguments.
std::string key_in_file(const FrameworkFile& framework, std::string key) {
  if (framework.read != nullptr) return key;
  if (key.starts_with("--")) key.erase(0, 2);
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// "TP=2" behind a file of arguments is a variable that it reads; keys are in small letters.
bool is_variable(const FrameworkFile& framework, std::string_view name) {
  if (framework.read != nullptr) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

std::size_t end_of_key(const std::string& override) {
  const std::size_t equals = override.find('=');
  if (equals != std::string::npos && equals != 0) return equals;
  throw InputError({"command line", override}, "expected KEY=VALUE, in the file's own words");
}

GivenVariables variables_in(const FrameworkFile& framework, const std::string& text,
                            const std::vector<std::string>& overrides) {
  GivenVariables given;
  for (const std::string& override : overrides) {
    const std::string name = override.substr(0, end_of_key(override));
    if (!is_variable(framework, name)) continue;
    if (!has_variable(text, name)) {
      throw InputError({"command line", name}, fmt::format("the file reads no ${}", name));
    }
    given[name] = override.substr(name.size() + 1);
  }
  return given;
}

void apply_overrides(const FrameworkFile& framework, const std::vector<std::string>& overrides,
                     std::vector<Entry>& entries) {
  for (const std::string& override : overrides) {
    const std::size_t equals = end_of_key(override);
    if (is_variable(framework, override.substr(0, equals))) continue;
    const std::string key = key_in_file(framework, override.substr(0, equals));
    std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
    entries.push_back(
        {key, key, OwnedJson(value_of_word(override.substr(equals + 1))), {"command line", key}});
  }
}

int count(const Imported& imported, KeyEffect effect) {
  return static_cast<int>(std::count_if(imported.keys.begin(), imported.keys.end(),
                                        [&](const KeyUse& use) { return use.effect == effect; }));
}

constexpr KeyEffect effects[] = {KeyEffect::used, KeyEffect::harmless, KeyEffect::refused,
                                 KeyEffect::left_out};

// What is the same in the files of all frameworks.
Json begin_experiment(const FrameworkFile& framework, const LaunchOptions& options,
                      const Facts& facts) {
  Json experiment;
  experiment["workload"] = {{"model", nullptr}, {"step", "train"}};
  experiment["mesh"] = Json::object();
  experiment["strategy"]["name"] = framework.strategy;
  facts.copy_paths("workload.", experiment);
  facts.copy_paths("strategy.", experiment);
  if (!options.machine.empty()) experiment["machine"] = options.machine;
  return experiment;
}

}  // namespace

Imported import_launch(std::string_view name, const std::string& text, const std::string& file,
                       const LaunchOptions& options) {
  const FrameworkFile& framework = framework_file(name);
  KeyFile read = framework.read != nullptr
                     ? framework.read(text, file)
                     : read_arguments(text, file, variables_in(framework, text, options.overrides));
  for (const auto& [program, what] : framework.other_programs) {
    if (read.program != program || options.lists_refused || !options.model.is_null()) continue;
    throw InputError(read.program_place,
                     fmt::format("{} trains {}, and arguments are read as a decoder's, those of "
                                 "pretrain_gpt.py: name the model's config.json with --model",
                                 program, what));
  }
  apply_overrides(framework, options.overrides, read.entries);
  if (framework.expand != nullptr) {
    read.entries = framework.expand(std::move(read.entries), text, file);
  }
  std::vector<std::string> leave_out;
  for (const std::string& key : options.leave_out) {
    leave_out.push_back(key_in_file(framework, key));
  }
  SortedKeys sorted =
      sort_keys(read.entries, framework.keys, leave_out, {file, ""}, options.lists_refused,
                /*has_model=*/!options.model.is_null());
  Imported imported;
  imported.framework = framework.name;
  imported.file = file;
  imported.keys = std::move(sorted.uses);
  for (const KeyUse& use : imported.keys) {
    if (use.effect == KeyEffect::left_out) {
      imported.notes.push_back(fmt::format("{} is left out as asked", use.entry.said));
    }
  }
  if (options.lists_refused) return imported;
  const auto devices = options.devices ? options.devices : read.devices;
  if (devices) sorted.facts.set("devices", *devices);
  Json experiment = begin_experiment(framework, options, sorted.facts);
  if (!options.model.is_null()) {
    experiment["workload"]["model"] = *options.model;
    if (framework.has_comments) {
      imported.notes.emplace_back("the model is that of --model, whatever the file says of it");
    }
  }
  if (!framework.other_programs.empty() && read.program.empty() && options.model.is_null()) {
    imported.notes.emplace_back(
        "no program is named: arguments are read as a decoder's, those of pretrain_gpt.py; another "
        "program's model is named with --model");
  }
  framework.to_experiment(sorted.facts, options, imported.notes, experiment);
  if (experiment["mesh"].empty()) experiment["mesh"]["dp"] = 1;
  for (const Setting& setting : options.settings) {
    apply_override(experiment, setting.path, setting.value);
  }
  (void)read_experiments(experiment, file + ", as an experiment");
  *imported.experiment = std::move(experiment);
  return imported;
}

Json imported_to_json(const Imported& imported) {
  Json json = {
      {"schema", "shardsim/import/1"}, {"framework", imported.framework}, {"file", imported.file}};
  for (const KeyEffect effect : effects) {
    std::string key(name_of(effect));
    std::replace(key.begin(), key.end(), ' ', '_');
    json["counts"][key] = count(imported, effect);
  }
  json["keys"] = Json::array();
  for (const auto& [entry, effect, what] : imported.keys) {
    Json key = {{"key", entry.said},
                {"value", *entry.value},
                {"place", entry.place.pointer},
                {"effect", name_of(effect)}};
    key[effect == KeyEffect::used ? "becomes" : "why"] = what;
    json["keys"].push_back(std::move(key));
  }
  json["notes"] = imported.notes;
  json["experiment"] = *imported.experiment;
  return json;
}

std::string imported_text(const Imported& imported) {
  std::string text = fmt::format(
      "{}: {} of {}: ", imported.file,
      imported.keys.size() == 1 ? "1 key" : std::to_string(imported.keys.size()) + " keys",
      imported.framework);
  bool first = true;
  for (const KeyEffect effect : effects) {
    const int number = count(imported, effect);
    if (number == 0 && effect == KeyEffect::left_out) continue;
    text += fmt::format("{}{} {}", first ? "" : ", ", number,
                        effect == KeyEffect::harmless ? "without influence" : name_of(effect));
    first = false;
  }
  text += "\n";
  for (const KeyEffect effect : {KeyEffect::refused, KeyEffect::left_out}) {
    for (const KeyUse& use : imported.keys) {
      if (use.effect != effect) continue;
      text += fmt::format("  {} {}: {}\n", name_of(effect), use.entry.place.pointer, use.what);
    }
  }
  for (const std::string& note : imported.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

const std::vector<LaunchFramework>& launch_frameworks() {
  static const std::vector<LaunchFramework> all = [] {
    std::vector<LaunchFramework> list;
    for (const FrameworkFile& file : framework_files()) {
      list.push_back({file.name, file.file, file.meaning, file.from_experiment != nullptr});
    }
    return list;
  }();
  return all;
}

}  // namespace shardsim
