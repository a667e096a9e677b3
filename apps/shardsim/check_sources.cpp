#include "check_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/json.hpp"
#include "checks/dumps.hpp"
#include "experiment_options.hpp"

namespace shardsim {
namespace {

namespace fs = std::filesystem;

std::string relative_to_baseline(const std::string& path, const Baseline& baseline) {
  const fs::path folder = fs::absolute(baseline.file).parent_path();
  return fs::absolute(path).lexically_normal().lexically_proximate(folder.lexically_normal());
}

// As the user would name it from here.
std::string from_here(const std::string& recorded, const Baseline& baseline) {
  return (fs::path(baseline.file).parent_path() / recorded).lexically_normal();
}

// Those of the words that say what an experiment is, but for its name.
Words experiment_words(const Given& given) {
  po::options_description options;
  add_experiment_options(options);
  Words words;
  for (const auto& option : given.parsed.options) {
    if (option.string_key == "name" || option.string_key.empty()) continue;
    if (options.find_nothrow(option.string_key, /*approx=*/false) == nullptr) continue;
    words.push_back("--" + option.string_key +
                    (option.value.empty() ? "" : "=" + option.value.front()));
  }
  return words;
}

// A baseline's experiments are known by their names: flags that make variants would rename them.
Given given_with(Words words, const Words& options, const Words& names) {
  words.insert(words.end(), options.begin(), options.end());
  for (const std::string& name : names) words.push_back("--name=" + name);
  po::options_description known;
  add_experiment_options(known);
  Given given = parse_words(words, known);
  require_single_values(given);
  return given;
}

std::vector<Experiment> read_with(const Words& words, const Words& options, const Words& names) {
  return read_given_experiments(given_with(words, options, names));
}

Experiment read_one_with(const Words& words, const Words& options, const Words& names) {
  return read_given_experiment(given_with(words, options, names));
}

// What an option sets: "--batch" of "--batch=8", "--set=mesh.data" of "--set=mesh.data=2".
std::string_view target_of(std::string_view word) {
  const std::size_t first = word.find('=');
  const bool sets = word.starts_with("--set=");
  return word.substr(0, sets ? word.find('=', first + 1) : first);
}

// Those that were recorded, and over them those of the command line.
Words laid_over(Words recorded, const Words& given) {
  for (const std::string& word : given) {
    std::erase_if(recorded,
                  [&](const std::string& other) { return target_of(other) == target_of(word); });
  }
  recorded.insert(recorded.end(), given.begin(), given.end());
  return recorded;
}

Experiment read_program(const std::string& name, const std::string& path, const Words& options) {
  Experiment experiment = read_one_with({"--program=" + path}, options, {});
  experiment.name = name;
  (*experiment.resolved)["name"] = name;
  return experiment;
}

std::vector<CheckSource> dumped(const std::string& folder, const Words& options,
                                const Baseline& baseline) {
  std::vector<CheckSource> sources;
  for (const auto& [name, path] : programs_in(folder)) {
    CheckSource source{
        .key = name, .experiment = read_program(name, path, options), .origin = {}, .shown = path};
    source.origin.folder = relative_to_baseline(folder, baseline);
    source.origin.name = name;
    source.origin.options = options;
    sources.push_back(std::move(source));
  }
  return sources;
}

// The baseline's name of an experiment that it knows; empty: it does not.
std::string known_key(const CheckSource& source, const Baseline& baseline,
                      const std::set<std::string>& given_files) {
  const Recorded& origin = source.origin;
  for (const auto& [key, recorded] : baseline.experiments) {
    const bool same_place =
        origin.folder.empty() ? recorded.file == origin.file : !recorded.folder.empty();
    if (same_place && recorded.name == origin.name) return key;
  }
  // A file that was moved.
  const auto same_name = baseline.experiments.find(origin.name);
  if (same_name == baseline.experiments.end() || given_files.contains(same_name->second.file)) {
    return {};
  }
  return same_name->first;
}

// A name may be that of an experiment of any of the files.
void require_names(const Words& names, const std::vector<CheckSource>& sources) {
  std::vector<std::string> known;
  for (const CheckSource& source : sources) known.push_back(source.origin.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw InputError({"--name", ""}, fmt::format("no experiment is called \"{}\"", name),
                     closest(name, known));
  }
}

void name_sources(std::vector<CheckSource>& sources, const Baseline& baseline) {
  std::set<std::string> files;
  for (const CheckSource& source : sources) files.insert(source.origin.file);
  std::set<std::string> taken;
  for (CheckSource& source : sources) {
    source.key = known_key(source, baseline, files);
    if (!source.key.empty()) taken.insert(source.key);
  }
  for (CheckSource& source : sources) {
    if (!source.key.empty()) continue;
    const auto is_taken = [&](const std::string& key) {
      return taken.contains(key) || baseline.experiments.contains(key);
    };
    source.key = source.origin.name;
    const std::string stem = fs::path(source.origin.file).stem().string();
    if (is_taken(source.key)) source.key = stem + ": " + source.origin.name;
    const std::string without_number = source.key;
    for (int i = 2; is_taken(source.key); ++i) {
      source.key = fmt::format("{} ({})", without_number, i);
    }
    taken.insert(source.key);
  }
}

CheckSource from_file(Experiment experiment, const std::string& file, const Words& options) {
  CheckSource source{.key = {}, .experiment = std::move(experiment), .origin = {}, .shown = {}};
  source.origin.name = source.experiment.name;
  source.origin.options = options;
  source.origin.file = file;
  source.shown = source.experiment.file;
  return source;
}

// Of a file those that are wanted: as the baseline has them where it has them with flags.
std::vector<CheckSource> from_operand(const std::string& operand, bool only_operand,
                                      const Words& options, const Words& wanted,
                                      const Baseline& baseline) {
  const std::string file = relative_to_baseline(operand, baseline);
  const auto is_wanted = [&](const std::string& name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  std::map<Words, Words> names_by_options;
  std::set<std::string> with_flags;
  for (const auto& [key, recorded] : baseline.experiments) {
    if (recorded.file != file || recorded.options.empty() || !is_wanted(recorded.name)) continue;
    names_by_options[recorded.options].push_back(recorded.name);
    with_flags.insert(recorded.name);
  }
  std::vector<CheckSource> sources;
  for (const auto& [recorded_options, names] : names_by_options) {
    const Words all = laid_over(recorded_options, options);
    for (Experiment& one : read_with({operand}, all, names)) {
      sources.push_back(from_file(std::move(one), file, all));
    }
  }
  const bool has_all = !wanted.empty() && with_flags.size() == wanted.size();
  if (has_all) return sources;
  // What is wrong with variants that are not wanted does not matter.
  const Words read_names = only_operand && with_flags.empty() ? wanted : Words();
  for (Experiment& one : read_with({operand}, options, read_names)) {
    if (!is_wanted(one.name) || with_flags.contains(one.name)) continue;
    sources.push_back(from_file(std::move(one), file, options));
  }
  return sources;
}

// The flags that the folder's programs were recorded with, of which all have the same.
Words recorded_options_of_dumps(const Baseline& baseline) {
  for (const auto& [key, recorded] : baseline.experiments) {
    if (!recorded.folder.empty()) return recorded.options;
  }
  return {};
}

// Where experiments of a baseline are from, and their names there with those in the baseline.
struct Origin {
  std::string file;
  std::string folder;
  Words options;
  auto operator<=>(const Origin&) const = default;
};
using KeysByName = std::map<std::string, std::string>;

void require_recorded(const Words& names, const Baseline& baseline) {
  std::vector<std::string> known;
  for (const auto& [key, recorded] : baseline.experiments) known.push_back(key);
  for (const std::string& name : names) {
    if (baseline.experiments.contains(name)) continue;
    throw InputError({baseline.file, ""}, fmt::format("no experiment is called \"{}\"", name),
                     closest(name, known));
  }
}

void add_experiments(const Origin& origin, const KeysByName& keys, const Words& options,
                     const Baseline& baseline, CheckSources& result) {
  const auto add = [&](Experiment experiment, const std::string& key) {
    result.sources.push_back(from_file(std::move(experiment), origin.file, options));
    result.sources.back().key = key;
    if (origin.file.empty()) result.sources.back().shown.clear();
  };
  if (origin.file.empty()) {
    for (const auto& [name, key] : keys) add(read_one_with({}, options, {name}), key);
    return;
  }
  Words names;
  for (const auto& [name, key] : keys) names.push_back(name);
  for (Experiment& one : read_with({from_here(origin.file, baseline)}, options, names)) {
    const std::string& key = keys.at(one.name);
    add(std::move(one), key);
  }
}

// All programs of the folder: those that the baseline does not have are new.
void add_dumps(const Origin& origin, const KeysByName& keys, const Words& options,
               const Baseline& baseline, CheckSources& result) {
  std::set<std::string> found;
  for (CheckSource& one : dumped(from_here(origin.folder, baseline), options, baseline)) {
    const auto key = keys.find(one.origin.name);
    if (key != keys.end()) one.key = key->second;
    found.insert(one.key);
    result.sources.push_back(std::move(one));
  }
  for (const auto& [name, key] : keys) {
    if (!found.contains(key)) result.gone.push_back(key);
  }
}

}  // namespace

CheckSources given_sources(const Given& given, const Words& operands, const Baseline& baseline) {
  CheckSources result;
  const Words options = experiment_words(given);
  const Words names = given.all("name");
  for (const std::string& operand : operands) {
    std::vector<CheckSource> sources;
    if (fs::is_directory(operand)) {
      sources = dumped(operand, laid_over(recorded_options_of_dumps(baseline), options), baseline);
    } else {
      sources = from_operand(operand, operands.size() == 1, options, names, baseline);
    }
    for (CheckSource& one : sources) result.sources.push_back(std::move(one));
  }
  if (operands.empty()) {
    for (Experiment& one : read_with({}, options, names)) {
      result.sources.push_back(from_file(std::move(one), "", options));
      result.sources.back().shown.clear();
    }
  }
  require_names(names, result.sources);
  name_sources(result.sources, baseline);
  std::set<std::string> folders;
  std::set<std::string> keys;
  for (const CheckSource& source : result.sources) {
    folders.insert(source.origin.folder);
    keys.insert(source.key);
  }
  const bool has_dumps = folders.size() > (folders.contains("") ? 1 : 0);
  for (const auto& [key, recorded] : baseline.experiments) {
    if (has_dumps && !recorded.folder.empty() && !keys.contains(key)) result.gone.push_back(key);
  }
  return result;
}

CheckSources recorded_sources(const Given& given, const Baseline& baseline) {
  const Words options = experiment_words(given);
  const Words names = given.all("name");
  require_recorded(names, baseline);
  std::map<Origin, KeysByName> origins;
  for (const auto& [key, recorded] : baseline.experiments) {
    const bool is_wanted =
        names.empty() || std::find(names.begin(), names.end(), key) != names.end();
    if (!is_wanted) continue;
    origins[{recorded.file, recorded.folder, recorded.options}][recorded.name] = key;
  }
  CheckSources result;
  for (const auto& [origin, keys] : origins) {
    const Words all = laid_over(origin.options, options);
    if (origin.folder.empty()) {
      add_experiments(origin, keys, all, baseline, result);
    } else {
      add_dumps(origin, keys, all, baseline, result);
    }
  }
  if (!names.empty()) {
    std::erase_if(result.sources, [&](const CheckSource& source) {
      return std::find(names.begin(), names.end(), source.key) == names.end();
    });
  }
  std::sort(result.sources.begin(), result.sources.end(),
            [](const CheckSource& a, const CheckSource& b) { return a.key < b.key; });
  return result;
}

}  // namespace shardsim
