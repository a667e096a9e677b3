#include "reports/format/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "reports/format/known_error.hpp"

namespace shardsim {
namespace {

// What steps are ranked by: their time or, where they do different work, that time over it.
class Measure {
 public:
  explicit Measure(const std::vector<Figures>& all) {
    const auto same = [&](std::int64_t Figures::*work) {
      return std::all_of(all.begin(), all.end(),
                         [&](const Figures& one) { return one.*work == all.front().*work; });
    };
    const auto have = [&](std::int64_t Figures::*work) {
      return std::all_of(all.begin(), all.end(), [&](const Figures& one) { return one.*work > 0; });
    };
    const auto is_forward = [](const Figures& one) { return one.step_kind == "forward"; };
    other_passes_ = std::any_of(all.begin(), all.end(), is_forward) &&
                    !std::all_of(all.begin(), all.end(), is_forward);
    same_work_ = same(&Figures::tokens_per_step) && same(&Figures::images_per_step);
    if (same_work_) return;
    if (have(&Figures::tokens_per_step)) {
      work_ = &Figures::tokens_per_step;
      unit_ = "token";
    } else if (have(&Figures::images_per_step)) {
      work_ = &Figures::images_per_step;
      unit_ = "image";
    }
  }

  [[nodiscard]] double operator()(const Figures& one) const {
    return seconds(one.step) / (unit_.empty() ? 1.0 : static_cast<double>(one.*work_));
  }
  // "1.230 s", "9.38 us per token"
  [[nodiscard]] std::string text(const Figures& one) const {
    const std::string time = format_seconds(Seconds((*this)(one)));
    return unit_.empty() ? time : fmt::format("{} per {}", time, unit_);
  }
  [[nodiscard]] std::string shortest() const {
    return unit_.empty() ? "shortest step" : "shortest time per " + unit_;
  }
  [[nodiscard]] std::string remark() const {
    if (other_passes_) return "; note that a forward step does a part of a training step's work";
    if (same_work_) return {};
    if (unit_.empty()) return "; note that their steps do different work";
    return fmt::format("; their steps have different numbers of {0}s: what counts is time per {0}",
                       unit_);
  }

 private:
  bool same_work_ = true;
  bool other_passes_ = false;  // some train, some do not
  std::int64_t Figures::*work_ = nullptr;
  std::string unit_;  // of work; empty: whole steps are compared
};

// Indices of those that fit, best first.
std::vector<std::size_t> ranking(const std::vector<Figures>& all, const Measure& measure) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].fits) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(measure(all[a]), all[a].peak) < std::pair(measure(all[b]), all[b].peak);
  });
  return order;
}

std::string nothing_fits(const std::vector<Figures>& all) {
  if (all.empty()) return "nothing to choose from";
  const auto nearest = std::min_element(
      all.begin(), all.end(),
      [](const Figures& a, const Figures& b) { return a.peak - a.capacity < b.peak - b.capacity; });
  return fmt::format("nothing fits: nearest is {}, which needs {}, {} more than the {} of one {}",
                     nearest->name, format_bytes(nearest->peak),
                     format_bytes(nearest->peak - nearest->capacity),
                     format_bytes(nearest->capacity), nearest->device);
}

// By how much the errors of two such steps differ: the most that is known of any of them.
double between_two(const std::vector<Figures>& all) {
  double most = 1;
  for (const Figures& figures : all) {
    const bool is_known = figures.known_error && figures.known_error->pairs > 0;
    most = std::max(most, (is_known ? *figures.known_error : known_error()).between_two);
  }
  return most;
}

// Those after the best whose steps are not known to be longer, in order.
std::vector<int> ties_of(const std::vector<Figures>& all, const std::vector<std::size_t>& order,
                         const Measure& measure) {
  std::vector<int> ties;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (is_tie(measure(all[order[0]]), measure(all[order[i]]), between_two(all))) {
      ties.push_back(static_cast<int>(order[i]));
    }
  }
  return ties;
}

// "fsdp (1.230 s), fsdp+tp (1.250 s) tie among the 3 that fit: predictions less than 14 % apart
// are no difference"
std::string tie_text(const std::vector<Figures>& all, const std::vector<std::size_t>& order,
                     const std::vector<int>& ties, const Measure& measure) {
  const auto named = [&](std::size_t i) {
    return fmt::format("{} ({})", all[i].name, measure.text(all[i]));
  };
  std::string text = named(order[0]);
  for (const int tie : ties) text += ", " + named(static_cast<std::size_t>(tie));
  return fmt::format(
      "{} tie among the {} that fit: predictions less than {:.0f} % apart are no "
      "difference",
      text, order.size(), 100 * (between_two(all) - 1));
}

// "fsdp: shortest step among the 3 that fit: 1.230 s, 18.1 % shorter than fsdp+tp (1.500 s)"
std::string against_the_second(const std::vector<Figures>& all,
                               const std::vector<std::size_t>& order, const Measure& measure) {
  const Figures& best = all[order[0]];
  if (all.size() == 1) return fmt::format("{}: the only configuration, and it fits", best.name);
  if (order.size() == 1) {
    return fmt::format("{}: the only one of {} that fits: {}", best.name, all.size(),
                       measure.text(best));
  }
  const Figures& second = all[order[1]];
  const std::string lead = fmt::format("{}: {} among the {} that fit: {}", best.name,
                                       measure.shortest(), order.size(), measure.text(best));
  return fmt::format("{}, {} shorter than {} ({})", lead,
                     format_percent(1 - measure(best) / measure(second)), second.name,
                     measure.text(second));
}

// "; fsdp exposes 8.0 % of the step as communication, fsdp+tp 15.2 %"
std::string exposure(const std::vector<Figures>& all, const std::vector<std::size_t>& order) {
  const Figures& best = all[order[0]];
  std::string text = fmt::format("; {} exposes {} of the step as communication", best.name,
                                 format_percent(best.share(best.exposed)));
  if (order.size() > 1) {
    const Figures& second = all[order[1]];
    text += fmt::format(", {} {}", second.name, format_percent(second.share(second.exposed)));
  }
  return text;
}

// "; of a stages 3, 7 bind, idle 122.08 ms; ..."
std::string binding_of(const std::vector<Figures>& all, const std::vector<std::size_t>& order) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 2); ++i) {
    const Figures& figures = all[order[i]];
    const std::string binding = binding_stage(figures);
    if (!binding.empty()) text += fmt::format("; of {} {}", figures.name, binding);
  }
  return text;
}

// "; dp would take 0.900 s but does not fit": a shorter step is no use when memory runs out.
std::string shorter_but_too_large(const std::vector<Figures>& all, const Figures& best,
                                  const Measure& measure) {
  std::string text;
  for (const Figures& figures : all) {
    if (figures.fits || measure(figures) >= measure(best)) continue;
    text += fmt::format("; {} would take {} but does not fit", figures.name, measure.text(figures));
  }
  return text;
}

std::string sequence_of(const Figures& figures) {
  for (const auto& [name, value] : figures.workload) {
    if (name == "sequence") return value;
  }
  return {};
}

// Of those that fit: in what they differ from the best, so that the error between two is not known.
std::string beyond_the_known(const std::vector<Figures>& all,
                             const std::vector<std::size_t>& order) {
  const Figures& best = all[order[0]];
  const auto any = [&](const auto& is) {
    return std::any_of(order.begin() + 1, order.end(), [&](std::size_t i) { return is(all[i]); });
  };
  for (const auto& [kind, what] :
       {std::pair{"program", "compiled programs"}, std::pair{"forward", "forward steps"}}) {
    if (best.step_kind != kind &&
        !any([&, kind = kind](const Figures& one) { return one.step_kind == kind; })) {
      continue;
    }
    return fmt::format("; how far predictions of {} err is not known", what);
  }
  std::vector<std::string_view> parts;
  if (any([&](const Figures& one) { return one.model != best.model; })) parts.emplace_back("model");
  if (any([&](const Figures& one) { return sequence_of(one) != sequence_of(best); })) {
    parts.emplace_back("sequence");
  }
  if (any([&](const Figures& one) { return one.machine != best.machine; })) {
    parts.emplace_back("machine");
  }
  if (parts.empty()) return {};
  return fmt::format(
      "; how far predictions that differ in {} err from each other is not known (of one model, "
      "sequence and machine: {:.0f} %)",
      fmt::join(parts, ", "), 100 * (between_two(all) - 1));
}

}  // namespace

std::string binding_stage(const Figures& figures) {
  if (!figures.bubble) return {};
  const auto by_idle = [](const ClassFigures& a, const ClassFigures& b) { return a.idle < b.idle; };
  const auto [binds, waits] =
      std::minmax_element(figures.classes.begin(), figures.classes.end(), by_idle);
  constexpr double noted = 0.01;
  if (figures.share(waits->idle - binds->idle) < noted) return {};
  const bool are_several = binds->name.find(',') != std::string::npos;
  return fmt::format("{} {}, idle {}; the longest wait, {}, is that of {}", binds->name,
                     are_several ? "bind" : "binds", format_seconds(to_seconds(binds->idle)),
                     format_seconds(to_seconds(waits->idle)), waits->name);
}

std::string memory_verdict(const Figures& figures) {
  if (figures.host_capacity && figures.on_a_host > *figures.host_capacity) {
    return fmt::format("does not fit: the memory of a host needs {}, {} more than its {}",
                       format_bytes(figures.on_a_host),
                       format_bytes(figures.on_a_host - *figures.host_capacity),
                       format_bytes(*figures.host_capacity));
  }
  const std::string needs = format_bytes(figures.process);
  const std::string in_it =
      figures.process == figures.peak
          ? ""
          : fmt::format(" ({} allocated, {} reserved)", format_bytes(figures.allocated),
                        format_bytes(figures.reserved));
  if (figures.fits_narrowly()) {
    return fmt::format("fits narrowly: {} of {}{}; {} to {} more are not counted: {}", needs,
                       format_bytes(figures.capacity), in_it, format_bytes(figures.not_counted.low),
                       format_bytes(figures.not_counted.high), figures.not_counted.what);
  }
  if (figures.fits) {
    return fmt::format("fits: {} of {}{}", needs, format_bytes(figures.capacity), in_it);
  }
  return fmt::format("does not fit: needs {}{}, {} more than the {} of one {}: {}", needs, in_it,
                     format_bytes(figures.process - figures.capacity),
                     format_bytes(figures.capacity), figures.device, largest_categories(figures));
}

Choice choose(const std::vector<Figures>& all) {
  const Measure measure(all);
  const std::vector<std::size_t> order = ranking(all, measure);
  if (order.empty()) return {.best = -1, .ties = {}, .why = nothing_fits(all)};
  std::vector<int> ties = ties_of(all, order, measure);
  std::string why = (ties.empty() ? against_the_second(all, order, measure)
                                  : tie_text(all, order, ties, measure)) +
                    exposure(all, order) + binding_of(all, order) +
                    shorter_but_too_large(all, all[order[0]], measure) +
                    beyond_the_known(all, order) + measure.remark();
  return {.best = static_cast<int>(order[0]), .ties = std::move(ties), .why = std::move(why)};
}

Choice choose(const std::vector<Prediction>& predictions) {
  return choose(figures_of(predictions));
}

}  // namespace shardsim
