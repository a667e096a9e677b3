#include "strategies/schedule/schedule_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <optional>

#include "strategies/schedule/dry_run.hpp"

namespace shardsim {
namespace {

constexpr std::array<std::string_view, 5> action_words{"F", "B", "I", "W", "OPTIMIZER"};
constexpr std::string_view overlap_word = "OVERLAP_F_B";
constexpr std::int32_t max_microbatches = 1 << 24;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the digits at the front; nothing where there are none or too many.
std::optional<std::int32_t> take_number(std::string_view& text, std::int32_t limit) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value >= limit) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// What PyTorch's lists have once they are lowered.
bool is_lowered_word(std::string_view word) {
  static constexpr std::array<std::string_view, 10> words{
      "UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD", "SEND_F",
      "RECV_F",  "SEND_B",  "RECV_B",      "WAIT_SEND_F",      "WAIT_SEND_B"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

[[noreturn]] void fail_action(std::string_view text, const Place& place) {
  throw InputError(place, fmt::format("\"{}\" is no action; expected stage, F, B, I or W, and "
                                      "microbatch (\"2F0\"), or a stage's \"2OPTIMIZER\"",
                                      text));
}

Action read_action(std::string_view text, const Place& place) {
  std::string_view rest = trimmed(text);
  const auto stage = take_number(rest, max_stages);
  if (!stage) fail_action(text, place);
  const auto word_end =
      std::find_if(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto word = rest.substr(0, static_cast<std::size_t>(word_end - rest.begin()));
  if (is_lowered_word(word)) {
    throw InputError(place, fmt::format("\"{}\" is communication, which follows from the "
                                        "computations: write the list with format=\"compute_only\"",
                                        text));
  }
  const auto* const found = std::find(action_words.begin(), action_words.end(), word);
  if (found == action_words.end()) fail_action(text, place);
  Action action;
  action.kind = static_cast<ActionKind>(found - action_words.begin());
  action.stage = static_cast<std::int16_t>(*stage);
  rest.remove_prefix(word.size());
  if (action.kind != ActionKind::optimizer) {
    const auto microbatch = take_number(rest, max_microbatches);
    if (!microbatch) fail_action(text, place);
    action.microbatch = *microbatch;
  }
  if (!rest.empty()) fail_action(text, place);
  return action;
}

std::vector<Action> read_overlap(std::string_view text, const Place& place) {
  const std::size_t close = text.find(')');
  const std::size_t between = text.find(';');
  const bool is_pair = between != std::string_view::npos && close != std::string_view::npos &&
                       between < close && text.substr(close + 1) == overlap_word;
  if (is_pair) {
    Action first = read_action(text.substr(1, between - 1), place);
    const Action second = read_action(text.substr(between + 1, close - between - 1), place);
    if (first.kind == ActionKind::forward && makes_input_gradient(second.kind)) {
      first.with_next = true;
      return {first, second};
    }
  }
  throw InputError(place, fmt::format("\"{}\" is no overlapped pair; expected a forward and a "
                                      "backward, as in \"(0F3;7B1)OVERLAP_F_B\"",
                                      text));
}

std::string joined(const std::vector<std::string>& cells) {
  return fmt::format("{}\n", fmt::join(cells, ","));
}

struct Line {
  std::vector<Action> actions;
  std::vector<Place> places;  // of each
};

Line read_line(std::string_view text, const std::string& file, std::size_t number) {
  Line line;
  std::size_t begin = 0;
  for (std::size_t cell = 1;; ++cell) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const Place place{file, fmt::format("line {}, cell {}", number, cell)};
    for (const Action& action : read_cell(text.substr(begin, end - begin), place)) {
      line.actions.push_back(action);
      line.places.push_back(place);
    }
    if (end == text.size()) return line;
    begin = end + 1;
  }
}

std::vector<Line> read_lines(std::string_view text, const std::string& file) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(read_line(line, file, lines.size() + 1));
    if (lines.back().actions.empty()) {
      throw InputError(
          {file, fmt::format("line {}", lines.size())},
          fmt::format("rank {} has no action: a schedule has one line per rank", lines.size() - 1));
    }
  }
  if (lines.empty())
    throw InputError({file, ""}, "a schedule has one line per rank, this has none");
  if (lines.size() > static_cast<std::size_t>(max_stages)) {
    throw InputError({file, ""}, fmt::format("{} lines, one per rank: at most {} ranks",
                                             lines.size(), max_stages));
  }
  return lines;
}

}  // namespace

std::string_view word_of(ActionKind kind) {
  return action_words.at(static_cast<std::size_t>(kind));
}

std::string action_text(const Action& action) {
  if (action.kind == ActionKind::optimizer) {
    return fmt::format("{}{}", action.stage, word_of(action.kind));
  }
  return fmt::format("{}{}{}", action.stage, word_of(action.kind), action.microbatch);
}

std::vector<std::string> cells_of(const std::vector<Action>& actions) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (!actions[i].with_next) {
      cells.push_back(action_text(actions[i]));
      continue;
    }
    assert(i + 1 < actions.size());
    cells.push_back(fmt::format("({};{}){}", action_text(actions[i]), action_text(actions[i + 1]),
                                overlap_word));
    ++i;
  }
  return cells;
}

std::vector<Action> read_cell(std::string_view text, const Place& place) {
  const std::string_view cell = trimmed(text);
  if (cell.empty()) return {};
  if (cell.front() == '(') return read_overlap(cell, place);
  return {read_action(cell, place)};
}

std::string schedule_csv(const PipelineSchedule& schedule) {
  std::string text;
  for (const std::vector<Action>& actions : schedule.of_rank) text += joined(cells_of(actions));
  return text;
}

std::string schedule_csv_by_step(const PipelineSchedule& schedule) {
  const Timetable timetable = dry_run(schedule, Durations{});
  std::string text;
  for (std::size_t rank = 0; rank < schedule.of_rank.size(); ++rank) {
    const std::vector<std::string> cells = cells_of(schedule.of_rank[rank]);
    std::vector<std::string> row;
    std::size_t action = 0;
    for (const std::string& cell : cells) {
      const auto start = static_cast<std::size_t>(timetable.start[rank][action]);
      if (row.size() < start) row.resize(start);
      row.push_back(cell);
      action += schedule.of_rank[rank][action].with_next ? 2 : 1;
    }
    text += joined(row);
  }
  return text;
}

PipelineSchedule read_schedule_csv(std::string_view text, const std::string& file) {
  std::vector<Line> lines = read_lines(text, file);
  PipelineSchedule schedule;
  schedule.shape.ranks = static_cast<std::int32_t>(lines.size());
  std::vector<std::int16_t>& rank_of_stage = schedule.shape.rank_of_stage;
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    for (std::size_t i = 0; i < lines[rank].actions.size(); ++i) {
      const Action& action = lines[rank].actions[i];
      const auto stage = static_cast<std::size_t>(action.stage);
      schedule.shape.microbatches = std::max(schedule.shape.microbatches, action.microbatch + 1);
      if (rank_of_stage.size() <= stage) rank_of_stage.resize(stage + 1, -1);
      std::int16_t& on = rank_of_stage[stage];
      if (on == -1) on = static_cast<std::int16_t>(rank);
      if (on != static_cast<std::int16_t>(rank)) {
        throw InputError(lines[rank].places[i],
                         fmt::format("\"{}\": stage {} is rank {}'s already (line {}); a stage "
                                     "lies on one rank",
                                     action_text(action), stage, on, on + 1));
      }
    }
    schedule.of_rank.push_back(std::move(lines[rank].actions));
  }
  for (std::size_t stage = 0; stage < rank_of_stage.size(); ++stage) {
    if (rank_of_stage[stage] >= 0) continue;
    throw InputError({file, ""}, fmt::format("no rank has stage {}; stages are counted from 0 to "
                                             "{}, the largest here",
                                             stage, rank_of_stage.size() - 1));
  }
  return schedule;
}

}  // namespace shardsim
