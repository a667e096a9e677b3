// Plans that no change of the code may change unnoticed: those of all examples and of matrix.json.
// recorded.json has of each plan digests of its parts, two digits of each task, and what the step
// takes where there is a machine. What a change means to change is recorded again, and looked at
// and explained in its commit:
//
//   build/release/tests/fingerprints_test "record the fingerprints"
#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "checks/digest.hpp"
#include "experiments/experiment.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

namespace fs = std::filesystem;

const std::string folder = SHARDSIM_SOURCE_DIR "/tests/fingerprints/";
const std::string recorded_file = folder + "recorded.json";

std::string digits_of(const Json& part, std::size_t count) {
  return text_digest(part.dump()).substr(0, count);
}

// Whose collectives do not say which parallelism each is part of: that has digits of its own.
Json without_parallelism(Json plan) {
  for (Json& collective : plan.at("collectives")) collective.erase("parallelism");
  return plan;
}

Json parallelisms_of(const Json& plan) {
  Json list = Json::array();
  for (const Json& collective : plan.at("collectives")) {
    list.push_back(collective.value("parallelism", "unknown"));
  }
  return list;
}

// A task as it is written, but with what it does in place of a number into another list.
Json whole_task(const Json& task, const Json& plan) {
  static const std::map<std::string, std::string> lists = {
      {"collective", "collectives"}, {"kernel", "kernels"}, {"transfer", "transfers"}};
  Json whole = task;
  const auto list = lists.find(task.at("kind").get<std::string>());
  if (list != lists.end()) whole["work"] = plan.at(list->second).at(task.at("work").get<int>());
  return whole;
}

Json fingerprint_of(const Json& whole) {
  const Json plan = without_parallelism(whole);
  constexpr std::size_t part_digits = 8;
  constexpr std::size_t task_digits = 2;
  Json fingerprint = Json::object();
  for (const auto& [key, part] : plan.items()) {
    if (key == "programs" || key == "shardsim") continue;
    fingerprint[key] = digits_of(part, part_digits);
  }
  fingerprint["parallelisms"] = digits_of(parallelisms_of(whole), part_digits);
  for (const Json& program : plan.at("programs")) {
    std::string tasks;
    for (const Json& task : program.at("tasks")) {
      tasks += digits_of(whole_task(task, plan), task_digits);
    }
    fingerprint["programs"].push_back({{"buffers", digits_of(program.at("buffers"), part_digits)},
                                       {"streams", digits_of(program.at("streams"), part_digits)},
                                       {"tasks", tasks}});
  }
  return fingerprint;
}

struct Subject {
  Json plan;         // null: `fingerprint` says why there is none
  Json fingerprint;  // with "step_ps" and "peak_bytes" where there is a machine
};

Subject look_at(const Experiment& experiment) {
  Subject subject;
  if (experiment.machine.empty()) {
    subject.plan = plan_to_json(compile_experiment(experiment).plan);
    subject.fingerprint = fingerprint_of(subject.plan);
    return subject;
  }
  const Prediction prediction = predict(experiment, {});
  for (const ProgramResult& program : prediction.result.programs) {  // causes add up on every stage
    CHECK(std::accumulate(program.parts.begin(), program.parts.end(), SimTime(0)) ==
          prediction.result.step_time);
  }
  subject.plan = plan_to_json(prediction.step.plan);
  subject.fingerprint = fingerprint_of(subject.plan);
  subject.fingerprint["step_ps"] = prediction.result.step_time.count();
  subject.fingerprint["peak_bytes"] = prediction.result.peak().count();
  return subject;
}

using Subjects = std::map<std::string, Subject>;
using Experiments = std::map<std::string, Experiment>;

void add(const Json& document, const std::string& path, const std::string& prefix,
         Experiments& experiments) {
  for (Experiment& experiment : read_experiments(document, path)) {
    if (std::holds_alternative<TreeSubject>(experiment.subject)) continue;  // has no plan
    const std::string name = prefix.empty() ? experiment.name : prefix + ": " + experiment.name;
    INFO(name);
    REQUIRE(experiments.emplace(name, std::move(experiment)).second);
  }
}

void add_examples(Experiments& experiments) {
  for (const auto& entry : fs::directory_iterator(SHARDSIM_SOURCE_DIR "/examples")) {
    const std::string file = entry.path().filename().string();
    if (entry.path().extension() != ".json" || file.starts_with("sweep-")) continue;
    add(load_json(entry.path().string()), entry.path().string(), file, experiments);
  }
}

// Every choice of the lists from `list` on laid over `document`.
void add_choices(const Json& group, Json::const_iterator list, const Json& document,
                 Experiments& experiments) {
  if (list == group.end()) return add(document, folder + "matrix.json", "", experiments);
  for (const Json& choice : *list) {
    Json next = document;
    next.merge_patch(choice);
    const std::string before = document.value("name", "");
    next["name"] = before + (before.empty() ? "" : ", ") + choice.at("name").get<std::string>();
    add_choices(group, std::next(list), next, experiments);
  }
}

Experiments all_experiments() {
  Experiments experiments;
  add_examples(experiments);
  const Json matrix = load_json(folder + "matrix.json");
  for (const Json& group : matrix.at("groups")) {
    add_choices(group, group.begin(), matrix.at("base"), experiments);
  }
  return experiments;
}

Subjects all_subjects() {
  Subjects subjects;
  for (const auto& [name, experiment] : all_experiments()) {
    INFO(name);
    subjects[name] = look_at(experiment);
  }
  return subjects;
}

// The experiment with its layout written out; without what a recipe would make it of.
Experiment written_out(const Experiment& experiment, const Json& layout) {
  Json document = *experiment.resolved;
  Json& strategy = document["strategy"];
  strategy["layout"] = layout;
  if (!std::get<ModelStep>(experiment.subject).partitioning.strategy.is_rule_system()) {
    for (const char* key : {"rules", "activations", "shard_dimension", "sequence_parallel",
                            "gather_embedding", "outputs", "zero_stage"}) {
      strategy.erase(key);
    }
  }
  return read_experiments(document, experiment.file).at(0);
}

// Where two programs differ first, for a person.
std::string first_difference(const Json& plan, const Json& now, const Json& recorded) {
  for (std::size_t p = 0; p < now.size() && p < recorded.size(); ++p) {
    const auto tasks = now[p].at("tasks").get<std::string>();
    const auto before = recorded[p].at("tasks").get<std::string>();
    const auto [differs, there] =
        std::mismatch(tasks.begin(), tasks.end(), before.begin(), before.end());
    const auto task = static_cast<std::size_t>(differs - tasks.begin()) / 2;
    if (differs != tasks.end()) {
      return fmt::format("program {}, {} tasks, {} recorded; the first that differs is {}: {}", p,
                         tasks.size() / 2, before.size() / 2, task,
                         whole_task(plan.at("programs")[p].at("tasks")[task], plan).dump());
    }
    if (there != before.end()) {
      return fmt::format("program {} ends with task {}, recorded are {}", p, task,
                         before.size() / 2);
    }
  }
  return "";
}

std::string difference(const Subject& subject, const Json& recorded) {
  std::string parts;
  for (const auto& [key, value] : subject.fingerprint.items()) {
    if (!recorded.contains(key) || recorded.at(key) != value) parts += " " + key;
  }
  for (const auto& [key, value] : recorded.items()) {
    if (!subject.fingerprint.contains(key)) parts += " " + key;
  }
  if (parts.empty()) return "";
  for (const char* figure : {"step_ps", "peak_bytes"}) {
    if (!subject.fingerprint.contains(figure) || !recorded.contains(figure)) continue;
    if (subject.fingerprint.at(figure) == recorded.at(figure)) continue;
    parts += fmt::format("; {} {}, recorded {}", figure, subject.fingerprint.at(figure).dump(),
                         recorded.at(figure).dump());
  }
  return fmt::format("differs in{}\n{}", parts,
                     first_difference(subject.plan, subject.fingerprint.at("programs"),
                                      recorded.value("programs", Json::array())));
}

}  // namespace

// A strategy's collectives all say what they are part of.
TEST_CASE("each collective of a strategy is part of a parallelism") {
  for (const auto& [name, experiment] : all_experiments()) {
    if (!std::holds_alternative<ModelStep>(experiment.subject)) continue;
    INFO(name);
    for (const Collective& collective : compile_experiment(experiment).plan.collectives) {
      INFO(collective.reason);
      CHECK(collective.parallelism != Parallelism::unknown);
    }
  }
}

TEST_CASE("plans are those that were recorded") {
  const Json recorded = load_json(recorded_file);
  const Subjects subjects = all_subjects();
  CHECK(subjects.size() >= 300);
  for (const auto& [name, subject] : subjects) {
    INFO(name);
    REQUIRE(recorded.contains(name));
    CHECK(difference(subject, recorded.at(name)) == "");
  }
  for (const auto& [name, fingerprint] : recorded.items()) {
    INFO(name << " is recorded and not made any more");
    CHECK(subjects.count(name) == 1);
  }
}

TEST_CASE("a layout that is written out gives the plan of the strategy that came to it") {
  std::size_t written = 0;
  for (const auto& [name, experiment] : all_experiments()) {
    if (!std::holds_alternative<ModelStep>(experiment.subject)) continue;
    INFO(name);
    const CompiledStep step = compile_experiment(experiment);
    const CompiledStep again = compile_experiment(written_out(experiment, *step.layout));
    CHECK(*again.layout == *step.layout);
    CHECK(fingerprint_of(plan_to_json(again.plan)) == fingerprint_of(plan_to_json(step.plan)));
    ++written;
  }
  CHECK(written >= 300);
}

// One plan a line, so that a diff names those that changed.
TEST_CASE("record the fingerprints", "[.]") {
  std::string text;
  for (const auto& [name, subject] : all_subjects()) {
    text += fmt::format("{}{}: {}", text.empty() ? "{\n" : ",\n", Json(name).dump(),
                        subject.fingerprint.dump());
  }
  write_file(recorded_file, text + "\n}\n");
}

}  // namespace shardsim
