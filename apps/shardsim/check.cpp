#include "checks/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "base/file.hpp"
#include "base/json.hpp"
#include "check_sources.hpp"
#include "checks/check_report.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

namespace fs = std::filesystem;

const Manual check_manual = {
    "check BASELINE [EXPERIMENT...] [--record] [--update[=NAME]] [OPTION...]",
    "Predicts again what a baseline recorded, and says what became worse, why, and whether that "
    "is\n"
    "allowed: exit code 1 when a limit is violated (docs/check.md). An EXPERIMENT is a file as "
    "for\n"
    "run, or a folder of programs as XLA and jax dump them, matched by the names of their "
    "modules;\n"
    "without any, all that the baseline names. In place of a baseline a file may hold budgets\n"
    "alone; a folder of dumps is compared with directly.\n"
    "GITHUB_ACTIONS=true prints annotations as well, GITHUB_STEP_SUMMARY gets the Markdown.",
    {"shardsim check examples/check/baseline.json",
     "shardsim check examples/check/baseline.json --name fsdp -o report.md -o junit.xml",
     "shardsim check examples/check/budgets.json examples/llama-3.1-8b-8xh100.json --name fsdp"}};

// "--update NAME" and "--update=NAME" as "--update-only=NAME". What follows the former may
// also be a file, or a folder: the latter is what reports print.
Words with_joined_update(const Words& words) {
  Words joined;
  for (const std::string& word : words) {
    const bool names = !joined.empty() && joined.back() == "--update" && !word.starts_with("-") &&
                       !fs::exists(word);
    if (names) {
      joined.back() = "--update-only=" + word;
    } else if (word.starts_with("--update=")) {
      joined.push_back("--update-only" + word.substr(word.find('=')));
    } else {
      joined.push_back(word);
    }
  }
  return joined;
}

std::vector<Output> read_check_outputs(const Given& given) {
  return read_outputs(given, check_formats());
}

// What --update names; nothing: it is not given. Empty: all.
std::optional<std::set<std::string>> read_update(const Given& given) {
  const Words names = given.all("update-only");
  if (names.empty() && !given.has("update")) return std::nullopt;
  return std::set<std::string>(names.begin(), names.end());
}

// A file that does not exist yet has no limits and no experiments.
Baseline read_or_start(const std::string& path, bool may_be_new) {
  if (may_be_new && !fs::exists(path)) {
    Baseline baseline;
    baseline.file = path;
    return baseline;
  }
  return load_baseline(path);
}

Recorded place_measured(const CheckSource& source, Recorded measured) {
  measured.file = source.origin.file;
  measured.folder = source.origin.folder;
  measured.name = source.origin.name;
  measured.options = source.origin.options;
  if (!source.origin.folder.empty()) forget_program_path(measured);
  return measured;
}

class CheckRun {
 public:
  explicit CheckRun(const Given& given)
      : given_(given), update_(read_update(given)), records_(given.has("record")) {}

  CheckReport run() {
    Words operands = given_.all("operand");
    if (operands.empty()) throw UsageError("no baseline: name its file");
    if (records_ && update_) throw UsageError("--record records all; leave out --update");
    const std::string path = operands.front();
    operands.erase(operands.begin());
    CheckSources sources;
    if (fs::is_directory(path)) {
      if (operands.empty()) throw UsageError("name the programs to compare with " + path);
      if (records_ || update_) throw UsageError("a folder is no baseline to write: name a file");
      baseline_.file = path;
      record_folder(path);
      sources = given_sources(given_, operands, baseline_);
    } else {
      baseline_ = read_or_start(path, records_);
      if (baseline_.is_limits && (records_ || update_)) {
        throw InputError({path, ""}, "holds limits alone: record into another file");
      }
      if (records_ && !operands.empty()) baseline_.experiments.clear();
      sources = find_sources(operands);
    }
    choose_updated(sources);
    if (sources.sources.empty()) {
      throw UsageError("nothing to check: " + path + " names no experiment; name one");
    }
    check(sources);
    if (records_) baseline_.experiments = recorded_;
    if (update_) {
      for (auto& [key, recorded] : recorded_) baseline_.experiments[key] = std::move(recorded);
    }
    return std::move(report_);
  }

  // Nothing is written when something before has failed.
  void write_baseline() const {
    if (records_ || update_) write_file(baseline_.file, baseline_text(baseline_));
  }

 private:
  [[nodiscard]] CheckSources find_sources(const Words& operands) const {
    const bool flags_alone = operands.empty() && baseline_.experiments.empty();
    if (!operands.empty() || flags_alone) return given_sources(given_, operands, baseline_);
    return recorded_sources(given_, baseline_);
  }

  void record_folder(const std::string& folder) {
    const CheckSources sources = given_sources(given_, {folder}, baseline_);
    Progress progress(sources.sources.size());
    for (const CheckSource& source : sources.sources) {
      progress.begin(source.key);
      baseline_.experiments[source.key] =
          place_measured(source, meter_.measure(source.experiment).recorded);
    }
  }

  // Of all sources those that --update names, where it names any.
  void choose_updated(CheckSources& sources) const {
    if (!update_ || update_->empty()) return;
    std::vector<std::string> known;
    for (const CheckSource& source : sources.sources) known.push_back(source.key);
    for (const std::string& name : *update_) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw InputError({"--update", ""}, fmt::format("no experiment is called \"{}\"", name),
                       closest(name, known));
    }
    std::erase_if(sources.sources,
                  [&](const CheckSource& source) { return !update_->contains(source.key); });
  }

  // In a baseline a limit of nothing is a mistake; budgets may be for others, too.
  void match_limits(const CheckSources& sources) {
    std::vector<std::string> names;
    for (const auto& [key, recorded] : baseline_.experiments) names.push_back(key);
    for (const CheckSource& source : sources.sources) names.push_back(source.key);
    if (baseline_.experiments.empty()) {
      report_.idle_limits = baseline_.limits.unmatched(names);
    } else {
      baseline_.limits.require_matches(names);
    }
  }

  // The same for limits over axes that nothing has; `axes` of what was predicted now.
  void match_axes(AxesByExperiment axes) {
    for (const auto& [key, recorded] : baseline_.experiments) {
      const auto now = axes.try_emplace(key).first;
      const std::set<std::string> before = axes_of(recorded);
      now->second.insert(before.begin(), before.end());
    }
    if (baseline_.experiments.empty()) {
      const std::vector<std::string> idle = baseline_.limits.without_axes(axes);
      report_.idle_limits.insert(report_.idle_limits.end(), idle.begin(), idle.end());
    } else {
      baseline_.limits.require_axes(axes);
    }
  }

  void check(const CheckSources& sources) {
    match_limits(sources);
    report_.baseline = baseline_.file;
    report_.gone = sources.gone;
    report_.warn_only = given_.has("warn-only");
    AxesByExperiment axes;
    Progress progress(sources.sources.size());
    for (const CheckSource& source : sources.sources) {
      progress.begin(source.key);
      Measured measured = meter_.measure(source.experiment);
      measured.recorded = place_measured(source, std::move(measured.recorded));
      axes[source.key] = axes_of(measured);
      if (records_ || update_) {
        recorded_[source.key] = measured.recorded;
        report_.recorded.push_back(source.key);
      }
      const auto known = baseline_.experiments.find(source.key);
      const bool compares =
          !records_ && known != baseline_.experiments.end() && known->second.holds_figures();
      Remedies remedies;
      if (std::holds_alternative<ProgramStep>(source.experiment.subject)) {
        remedies = [&] { return explain_with_remedies(source.experiment); };
      }
      CheckedExperiment checked = check_experiment(source.key, compares ? &known->second : nullptr,
                                                   measured, baseline_.limits, remedies);
      // Of budgets alone nothing is new.
      checked.is_new = known == baseline_.experiments.end() && !baseline_.experiments.empty();
      checked.file = source.shown;
      report_.experiments.push_back(std::move(checked));
    }
    match_axes(std::move(axes));
  }

  const Given& given_;
  std::optional<std::set<std::string>> update_;
  bool records_;
  Meter meter_;
  Baseline baseline_;
  std::map<std::string, Recorded> recorded_;
  CheckReport report_;
};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// What GitHub's runner reads from a step beside its output.
void tell_github(const CheckReport& report, bool prints_text) {
  if (is_set("GITHUB_ACTIONS") && std::string(std::getenv("GITHUB_ACTIONS")) == "true") {
    const std::string commands = check_annotations(report);
    if (prints_text) {
      print(commands);
    } else {
      std::cerr << commands;
    }
  }
  if (!is_set("GITHUB_STEP_SUMMARY")) return;
  const std::string path = std::getenv("GITHUB_STEP_SUMMARY");
  std::ofstream summary(path, std::ios::app);
  if (!(summary << check_markdown(report) << "\n" << std::flush)) {
    throw InputError({path, ""}, "cannot be written: GITHUB_STEP_SUMMARY names it");
  }
}

void add_check_options(po::options_description& options) {
  add_experiment_options(options);
  add_output_options(options, check_formats());
  options.add_options()("record", "write the baseline anew, of the experiments given or named")(
      "update", "write what is now into the baseline; --update=NAME: of that experiment only")(
      "update-only", po::value<Words>()->value_name("NAME"),
      "the same as --update=NAME; may be repeated")("warn-only",
                                                    "tell violations, but exit with 0");
}

int run_check(const Given& given) {
  const std::vector<Output> outputs = read_check_outputs(given);
  CheckRun check(given);
  const CheckReport report = check.run();
  write(outputs, [&](const std::string& format) { return report_check(report, format); });
  check.write_baseline();
  if (!report.recorded.empty()) return exit_done;
  tell_github(report, outputs.back().path.empty() && outputs.back().format == "text");
  return report.violations() > 0 && !report.warn_only ? exit_verdict_is_no : exit_done;
}

}  // namespace

Verb check_verb() {
  return {"check",      "what became worse since a baseline was recorded, and why: for CI",
          check_manual, add_check_options,
          run_check,    with_joined_update};
}

}  // namespace shardsim
