#include "reports/evidence/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "reports/html/resources.hpp"

namespace shardsim {
namespace {

constexpr std::size_t fewest = 8;  // of which percentiles say something
constexpr std::size_t most = 30;   // that are near
constexpr std::size_t named = 3;   // in reports
constexpr double far_outside = 2;  // times the largest that was measured, or a part of the least
constexpr std::size_t columns = 11;

using Steps = std::vector<const PublishedStep*>;

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

double number(std::string_view text, int line) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0)) {
    throw InputError({"steps.tsv", fmt::format("line {}", line)},
                     fmt::format("\"{}\" is no positive number", text));
  }
  return value;
}

PublishedStep read_step(std::string_view text, int line) {
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields.size() != columns) {
    throw InputError({"steps.tsv", fmt::format("line {}", line)},
                     fmt::format("has {} fields, not {}", fields.size(), columns));
  }
  const auto at = [&](std::size_t i) { return number(fields[i], line); };
  return {.id = std::string(fields[0]),
          .situation = {.stack = std::string(fields[1]),
                        .device = std::string(fields[2]),
                        .step = std::string(fields[3]),
                        .has_experts = fields[4] == "experts",
                        .parameters = at(5),
                        .devices = at(6),
                        .tokens = at(7),
                        .sequence = at(8)},
          .measured = at(9),
          .predicted = at(10)};
}

double percentile(const std::vector<double>& ascending, double share) {
  const double place = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] +
         (place - static_cast<double>(below)) * (ascending[above] - ascending[below]);
}

double distance(const Situation& a, const Situation& b) {
  double sum = 0;
  for (const auto size :
       {&Situation::parameters, &Situation::devices, &Situation::tokens, &Situation::sequence}) {
    const double factor = std::log(a.*size / b.*size);
    sum += factor * factor;
  }
  return sum;
}

// Those that are alike, and what they have in common.
struct Alike {
  Steps steps;
  std::string words;
};

Alike alike(const Situation& situation, const std::vector<PublishedStep>& all) {
  const std::string kind = situation.has_experts ? "mixtures of experts" : "dense models";
  const std::string of = fmt::format("published {} steps", situation.step);
  struct Wanted {
    bool experts, device, stack;
    std::string words;
  };
  const std::array levels = {
      Wanted{true, true, true,
             fmt::format("{} of {}, {} on {}", of, kind, situation.stack, situation.device)},
      Wanted{true, true, false, fmt::format("{} of {} on {}", of, kind, situation.device)},
      Wanted{true, false, true, fmt::format("{} of {}, {}", of, kind, situation.stack)},
      Wanted{true, false, false, fmt::format("{} of {}", of, kind)},
      Wanted{false, false, false, of}};
  Alike found;
  for (const Wanted& wanted : levels) {
    found = {{}, wanted.words};
    for (const PublishedStep& step : all) {
      const Situation& other = step.situation;
      const bool is_alike = other.step == situation.step &&
                            (!wanted.experts || other.has_experts == situation.has_experts) &&
                            (!wanted.device || other.device == situation.device) &&
                            (!wanted.stack || other.stack == situation.stack);
      if (is_alike) found.steps.push_back(&step);
    }
    if (found.steps.size() >= fewest) return found;
  }
  return found;
}

std::string_view source_of(const PublishedStep& step) {
  const std::string_view id = step.id;
  return id.substr(0, id.find('/'));
}

// Of every two that have source, model, sequence and device in common: how differently they are
// off, ascending.
std::vector<double> between_two(const Steps& steps) {
  std::vector<double> found;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (std::size_t k = i + 1; k < steps.size(); ++k) {
      const Situation& one = steps[i]->situation;
      const Situation& other = steps[k]->situation;
      const bool is_pair = source_of(*steps[i]) == source_of(*steps[k]) &&
                           one.device == other.device && one.parameters == other.parameters &&
                           one.sequence == other.sequence;
      if (!is_pair) continue;
      const double apart = steps[i]->ratio() / steps[k]->ratio();
      found.push_back(std::max(apart, 1 / apart));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> outside(const Situation& situation, const Steps& steps) {
  constexpr std::array sizes = {std::pair{&Situation::parameters, "parameters"},
                                std::pair{&Situation::devices, "devices"},
                                std::pair{&Situation::tokens, "tokens of a device"},
                                std::pair{&Situation::sequence, "sequence"}};
  std::vector<std::string> found;
  for (const auto& [size, name] : sizes) {
    const auto [least, largest] = std::minmax_element(
        steps.begin(), steps.end(), [size = size](const auto* a, const auto* b) {
          return a->situation.*size < b->situation.*size;
        });
    const double here = situation.*size;
    const double low = (*least)->situation.*size;
    const double high = (*largest)->situation.*size;
    const auto text = [](double value) { return format_count(std::llround(value)); };
    if (here > far_outside * high) {
      found.push_back(fmt::format("{} {}; at most {} was measured", name, text(here), text(high)));
    } else if (here * far_outside < low) {
      found.push_back(fmt::format("{} {}; at least {} was measured", name, text(here), text(low)));
    }
  }
  return found;
}

}  // namespace

std::vector<PublishedStep> read_published_steps(std::string_view text) {
  std::vector<PublishedStep> steps;
  bool has_header = false;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (row.empty() || row.front() == '#') continue;
    if (std::exchange(has_header, true)) steps.push_back(read_step(row, line));
  }
  return steps;
}

const std::vector<PublishedStep>& published_steps() {
  static const std::vector<PublishedStep> steps =
      read_published_steps(resources::published_steps_tsv);
  return steps;
}

StepEvidence evidence_for(const Situation& situation, const std::vector<PublishedStep>& steps) {
  Alike found = alike(situation, steps);
  StepEvidence evidence;
  evidence.of = found.words;
  if (found.steps.empty()) return evidence;
  evidence.outside = outside(situation, found.steps);
  std::stable_sort(found.steps.begin(), found.steps.end(), [&](const auto* a, const auto* b) {
    return distance(a->situation, situation) < distance(b->situation, situation);
  });
  if (found.steps.size() > most) {
    evidence.of = fmt::format("the nearest {} of {} {}", most, found.steps.size(), found.words);
    found.steps.resize(most);
  } else {
    evidence.of = fmt::format("{} {}", found.steps.size(), found.words);
  }
  std::vector<double> ratios;
  for (const PublishedStep* step : found.steps) ratios.push_back(step->ratio());
  std::sort(ratios.begin(), ratios.end());
  evidence.steps = static_cast<int>(ratios.size());
  evidence.low = percentile(ratios, 0.1);
  evidence.median = percentile(ratios, 0.5);
  evidence.high = percentile(ratios, 0.9);
  const std::vector<double> pairs = between_two(found.steps);
  evidence.pairs = static_cast<int>(pairs.size());
  if (!pairs.empty()) evidence.between_two = percentile(pairs, 0.9);
  for (std::size_t i = 0; i < std::min(named, found.steps.size()); ++i) {
    evidence.nearest.push_back(*found.steps[i]);
  }
  return evidence;
}

std::string evidence_sentence(const StepEvidence& evidence) {
  return fmt::format(
      "measured steps took {:.2f} times the predicted time ({:.2f} to {:.2f} times in "
      "8 of 10; {})",
      evidence.median, evidence.low, evidence.high, evidence.of);
}

}  // namespace shardsim
