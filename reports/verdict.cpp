#include "reports/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "reports/known_error.hpp"

namespace shardsim {
namespace {

std::string step_text(const Figures& figures) { return format_seconds(to_seconds(figures.step)); }

bool better(const Figures& a, const Figures& b) {
  return std::tie(a.step, a.peak) < std::tie(b.step, b.peak);
}

// Indices of those that fit, best first.
std::vector<std::size_t> ranking(const std::vector<Figures>& all) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].fits) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return better(all[a], all[b]); });
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

// Those after the best whose steps are not known to be longer, in order.
std::vector<int> ties_of(const std::vector<Figures>& all, const std::vector<std::size_t>& order) {
  std::vector<int> ties;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (is_tie(all[order[0]].step, all[order[i]].step)) ties.push_back(static_cast<int>(order[i]));
  }
  return ties;
}

// "fsdp (1.230 s), fsdp+tp (1.250 s) tie among the 3 that fit: predictions less than 14 % apart
// are no difference"
std::string tie_text(const std::vector<Figures>& all, const std::vector<std::size_t>& order,
                     const std::vector<int>& ties) {
  const auto named = [&](std::size_t i) {
    return fmt::format("{} ({})", all[i].name, step_text(all[i]));
  };
  std::string text = named(order[0]);
  for (const int tie : ties) text += ", " + named(static_cast<std::size_t>(tie));
  return fmt::format(
      "{} tie among the {} that fit: predictions less than {:.0f} % apart are no "
      "difference",
      text, order.size(), 100 * (known_error.between_two - 1));
}

// "fsdp: shortest step among the 3 that fit: 1.230 s, 18.1 % shorter than fsdp+tp (1.500 s)"
std::string against_the_second(const std::vector<Figures>& all,
                               const std::vector<std::size_t>& order) {
  const Figures& best = all[order[0]];
  if (all.size() == 1) return fmt::format("{}: the only configuration, and it fits", best.name);
  if (order.size() == 1) {
    return fmt::format("{}: the only one of {} that fits: {}", best.name, all.size(),
                       step_text(best));
  }
  const Figures& second = all[order[1]];
  const std::string lead = fmt::format("{}: shortest step among the {} that fit: {}", best.name,
                                       order.size(), step_text(best));
  return fmt::format("{}, {} shorter than {} ({})", lead,
                     format_percent(1 - static_cast<double>(best.step.count()) /
                                            static_cast<double>(second.step.count())),
                     second.name, step_text(second));
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

// "; dp would take 0.900 s but does not fit": a shorter step is no use when memory runs out.
std::string shorter_but_too_large(const std::vector<Figures>& all, const Figures& best) {
  std::string text;
  for (const Figures& figures : all) {
    if (figures.fits || figures.step >= best.step) continue;
    text += fmt::format("; {} would take {} but does not fit", figures.name, step_text(figures));
  }
  return text;
}

}  // namespace

std::string memory_verdict(const Figures& figures) {
  if (figures.fits_narrowly()) {
    return fmt::format("fits narrowly: {} of {}; {} to {} more are not counted: {}",
                       format_bytes(figures.peak), format_bytes(figures.capacity),
                       format_bytes(figures.not_counted.low),
                       format_bytes(figures.not_counted.high), figures.not_counted.what);
  }
  if (figures.fits) {
    return fmt::format("fits: {} of {}", format_bytes(figures.peak),
                       format_bytes(figures.capacity));
  }
  return fmt::format("does not fit: needs {}, {} more than the {} of one {}: {}",
                     format_bytes(figures.peak), format_bytes(figures.peak - figures.capacity),
                     format_bytes(figures.capacity), figures.device, largest_categories(figures));
}

Choice choose(const std::vector<Figures>& all) {
  const std::vector<std::size_t> order = ranking(all);
  if (order.empty()) return {.best = -1, .ties = {}, .why = nothing_fits(all)};
  std::vector<int> ties = ties_of(all, order);
  std::string why = (ties.empty() ? against_the_second(all, order) : tie_text(all, order, ties)) +
                    exposure(all, order) + shorter_but_too_large(all, all[order[0]]);
  const bool same_work = std::all_of(all.begin(), all.end(), [&](const Figures& figures) {
    return figures.tokens_per_step == all.front().tokens_per_step;
  });
  if (!same_work) why += "; note that they process different numbers of tokens per step";
  return {.best = static_cast<int>(order[0]), .ties = std::move(ties), .why = std::move(why)};
}

Choice choose(const std::vector<Prediction>& predictions) {
  return choose(figures_of(predictions));
}

}  // namespace shardsim
