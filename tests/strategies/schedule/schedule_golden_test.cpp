// Against real PyTorch and real Megatron: the order in which every rank of a pipeline runs its
// stages, what they refuse, how many activations are held, how many steps it takes, and which
// layers a stage has. Cases: tests/golden/torch/README.md and tests/golden/megatron/README.md.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <iostream>

#include "base/json.hpp"
#include "strategies/layout/layout_string.hpp"
#include "strategies/layout/stages.hpp"
#include "strategies/schedule/dry_run.hpp"
#include "strategies/schedule/messages.hpp"
#include "strategies/schedule/schedule_text.hpp"
#include "strategies/schedule/schedules.hpp"
#include "strategies/schedule/unshards.hpp"
#include "strategies/schedule/verify.hpp"
#include "tests/base/golden_files.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

const Place record_place{"record", ""};

// PyTorch's lists by rank, without the empty cells.
std::vector<std::vector<std::string>> recorded_cells(const Json& by_rank) {
  std::vector<std::vector<std::string>> ranks;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    std::vector<std::string>& cells = ranks.emplace_back();
    for (const Json& cell : by_rank[std::to_string(rank)]) {
      if (cell != "") cells.push_back(cell);
    }
  }
  return ranks;
}

std::vector<std::vector<std::string>> our_cells(const PipelineSchedule& schedule) {
  std::vector<std::vector<std::string>> ranks;
  for (const std::vector<Action>& actions : schedule.of_rank) ranks.push_back(cells_of(actions));
  return ranks;
}

// Every call at its step, with an empty cell for a step of idling; every call takes one.
std::vector<std::vector<std::string>> grid(const std::vector<std::vector<Call>>& calls,
                                           const Timetable& timetable) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    std::vector<std::string>& row = rows.emplace_back();
    for (std::size_t i = 0; i < calls[rank].size(); ++i) {
      row.resize(static_cast<std::size_t>(timetable.start[rank][i]));
      row.push_back(call_text(calls[rank][i]));
    }
  }
  return rows;
}

std::vector<std::vector<std::string>> recorded_grid(const Json& by_rank) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    rows.push_back(by_rank[std::to_string(rank)].get<std::vector<std::string>>());
    while (!rows.back().empty() && rows.back().back().empty()) rows.back().pop_back();
  }
  return rows;
}

// What differs; empty when nothing does.
std::string steps_differ(const Json& record, const PipelineSchedule& schedule) {
  const auto calls = with_messages(computations(schedule), schedule.shape, Receives::with_sends);
  const DryRun run = dry_run(schedule.shape, calls, Durations{});
  if (run.stuck) return "the list with messages is stuck";
  if (run.timetable.steps != record["simulated_steps"]) {
    return fmt::format("{} steps, PyTorch {}", run.timetable.steps,
                       record["simulated_steps"].get<std::int64_t>());
  }
  if (grid(calls, run.timetable) != recorded_grid(record["simulated"])) return "simulated steps";
  return "";
}

// PyTorch's own list of every rank: computations, messages, gathers and reductions. Where it waits
// for a send follows from dependencies.
std::string calls_differ(const Json& record, const PipelineSchedule& schedule) {
  const bool loops = schedule_kind(record["schedule"].get<std::string>(), record_place).receives ==
                     Receives::when_needed;
  const CallLists lists = with_messages(loops ? computations(schedule) : with_unshards(schedule),
                                        schedule.shape, Receives::with_sends);
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    std::vector<std::string> ours;
    for (std::size_t i = 0; i < lists[rank].size(); ++i) {
      const Call& call = lists[rank][i];
      if (call.kind != Call::Kind::compute || !call.action.with_next) {
        ours.push_back(call_text(call));
        continue;
      }
      ours.push_back(cells_of({call.action, lists[rank][++i].action}).front());
    }
    std::vector<std::string> theirs;
    for (const Json& cell : record["with_comms"][std::to_string(rank)]) {
      const std::string text = cell;
      if (text.find("WAIT_SEND") == std::string::npos) theirs.push_back(text);
    }
    const auto [mine, other] =
        std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
    if (mine == ours.end() && other == theirs.end()) continue;
    return fmt::format("rank {}, call {}: {}, PyTorch {}", rank, mine - ours.begin(),
                       mine == ours.end() ? "nothing" : *mine,
                       other == theirs.end() ? "nothing" : *other);
  }
  return "";
}

std::string torch_differs(const Json& record) {
  const ScheduleRequest request{.name = record["schedule"],
                                .ranks = record["pp"],
                                .virtual_stages = record["stages_per_rank"],
                                .microbatches = record["microbatches"]};
  if (record.contains("rejected")) {
    try {
      (void)make_schedule(request, record_place);
    } catch (const InputError&) {
      return "";
    }
    return "PyTorch refuses it: " + record["rejected"].get<std::string>();
  }
  const PipelineSchedule schedule = make_schedule(request, record_place);
  verify(schedule, record_place);
  if (schedule.shape.rank_of_stage != record["stage_to_rank"].get<std::vector<std::int16_t>>())
    return "stage_to_rank";
  if (our_cells(schedule) != recorded_cells(record["compute_order"])) return "compute_order";
  if (read_schedule_csv(schedule_csv(schedule), "csv") != schedule) return "CSV there and back";
  const ActivationsHeld held = activations_held(schedule);
  for (const auto& [key, ours] : {std::pair{"peak_forwards_held", held.forwards},
                                  {"activation_slots_stage_microbatch", held.forwards},
                                  {"activation_slots_microbatch", held.microbatches}}) {
    if (record.contains(key) && record[key].get<std::vector<std::int32_t>>() != ours) return key;
  }
  const std::string calls = record.contains("with_comms") ? calls_differ(record, schedule) : "";
  if (!calls.empty()) return calls;
  // Of DualPipeV PyTorch cannot simulate the overlapped pairs.
  return record.contains("simulated_steps") ? steps_differ(record, schedule) : "";
}

std::string megatron_schedule_differs(const Json& record) {
  const bool interleaved = !record["vpp"].is_null();
  ScheduleRequest request{.name = interleaved ? "interleaved-1f1b" : "1f1b",
                          .ranks = record["pp"],
                          .microbatches = record["microbatches"]};
  request.limits = ScheduleLimits::megatron;
  if (interleaved) {
    request.virtual_stages = record["vpp"];
    request.microbatch_group = record["microbatch_group_size_per_vp_stage"].get<std::int32_t>();
  }
  if (record.contains("rejected")) {
    try {
      (void)make_schedule(request, record_place);
    } catch (const InputError&) {
      return "";
    }
    return "Megatron refuses it: " + record["rejected"].get<std::string>();
  }
  const PipelineSchedule schedule = make_schedule(request, record_place);
  verify(schedule, record_place);
  for (std::size_t rank = 0; rank < schedule.of_rank.size(); ++rank) {
    const std::vector<std::string> cells = cells_of(schedule.of_rank[rank]);
    if (fmt::format("{}", fmt::join(cells, " ")) != record["calls"][rank]) {
      return fmt::format("calls of rank {}", rank);
    }
    const std::size_t warmup = record["warmup_forwards"][rank];
    const std::vector<Action>& actions = schedule.of_rank[rank];
    const auto first_backward = std::find_if(actions.begin(), actions.end(), [](const Action& a) {
      return a.kind == ActionKind::backward;
    });
    // After the warmup a forward stands before each backward, while there is one.
    const std::size_t before = std::min(warmup + 1, actions.size() / 2);
    if (static_cast<std::size_t>(first_backward - actions.begin()) != before) return "warmup";
  }
  return "";
}

std::vector<std::string> spelled(std::string_view letters) {
  std::vector<std::string> words;
  for (const char letter : letters) {
    words.emplace_back(letter == 'E'   ? "embedding"
                       : letter == 'L' ? "loss"
                       : letter == 'm' ? "mtp"
                                       : "decoder");
  }
  return words;
}

StagesRequest layout_request(const Json& record) {
  StagesRequest request;
  request.layers = record["num_layers"];
  request.ranks = record["pp"];
  request.mtp_layers = record.value("mtp", 0);
  request.embedding_counts = record.value("emb", false) ? 1 : 0;
  request.loss_counts = record.value("loss", false) ? 1 : 0;
  if (record.contains("vpp")) request.virtual_stages = record["vpp"].get<std::int32_t>();
  if (record.contains("first")) request.first = record["first"].get<std::int32_t>();
  if (record.contains("last")) request.last = record["last"].get<std::int32_t>();
  if (record.contains("layout")) request.layout = record["layout"].get<std::string>();
  return request;
}

std::string layout_differs(const Json& record) {
  const StagesRequest request = layout_request(record);
  if (record.contains("rejected")) {
    try {
      (void)assign_stages(request, record_place);
    } catch (const InputError&) {
      return "";
    }
    return "Megatron refuses it: " + record["rejected"].get<std::string>();
  }
  const std::vector<StageLayers> stages = assign_stages(request, record_place);
  const auto ranks = static_cast<std::size_t>(request.ranks);
  Json ours = Json::array();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Json& chunks = ours.emplace_back(Json::array());
    for (std::size_t stage = rank; stage < stages.size(); stage += ranks) {
      chunks.push_back({stages[stage].first, stages[stage].count});
    }
  }
  if (ours != record["first_layer_and_count"]) return "first_layer_and_count: " + ours.dump();
  if (!record.contains("layout_2d")) return "";
  const std::vector<std::string> letters = expand_layout(*request.layout, record_place);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Json& theirs = record["layout_2d"][stage % ranks][stage / ranks];
    if (theirs != spelled(letters[stage])) return fmt::format("layout_2d of stage {}", stage);
    const auto has = [&](const char* what) {
      return std::count(theirs.begin(), theirs.end(), what);
    };
    if (stages[stage].embedding != (has("embedding") == 1) ||
        stages[stage].loss != (has("loss") == 1) || stages[stage].mtp != has("mtp")) {
      return fmt::format("embedding, loss or mtp of stage {}", stage);
    }
  }
  return "";
}

// The file's list under `key`, each record by `differs`.
void compare_file(const std::string& file, const std::string& key, const std::string& named_by,
                  const std::function<std::string(const Json&)>& differs) {
  const Json document = load_json(file);
  Comparison comparison;
  for (const Json& record : document[key]) {
    std::string difference;
    try {
      difference = differs(record);
    } catch (const InputError& error) {
      difference = error.what();
    }
    if (difference.empty()) {
      ++comparison.passed;
      continue;
    }
    std::string name;
    for (const auto& [field, value] : record.items()) {
      if (named_by.find(field) != std::string::npos && !value.is_structured()) {
        name += fmt::format("{} {} ", field, value.dump());
      }
    }
    comparison.failures.push_back(name + ": " + difference);
  }
  report(file, comparison);
  CHECK(comparison.failures.empty());
}

}  // namespace

TEST_CASE("Orders of pipelines are PyTorch's", "[golden]") {
  for (const std::string& file : golden_files(golden_folder("torch/schedules"), ".json")) {
    compare_file(file, "schedules", "schedule pp stages_per_rank microbatches", torch_differs);
  }
}

TEST_CASE("Orders of pipelines are Megatron's", "[golden]") {
  for (const std::string& file : golden_files(golden_folder("megatron"), "schedules.json")) {
    compare_file(file, "cases", "pp vpp microbatches microbatch_group_size_per_vp_stage",
                 megatron_schedule_differs);
  }
}

TEST_CASE("Layers of stages are Megatron's", "[golden]") {
  for (const std::string& file : golden_files(golden_folder("megatron"), "layouts.json")) {
    compare_file(file, "cases", "num_layers pp vpp first last emb loss layout mtp", layout_differs);
  }
}
