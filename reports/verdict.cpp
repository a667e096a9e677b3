#include "reports/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.hpp"

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

// "fsdp: shortest step among the 3 that fit: 1.230 s, 12.1 % shorter than fsdp+tp (1.400 s)"
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
  if (best.step == second.step) return fmt::format("{}, as long as {}", lead, second.name);
  return fmt::format("{}, {} shorter than {} ({})", lead,
                     format_percent(1 - static_cast<double>(best.step.count()) /
                                            static_cast<double>(second.step.count())),
                     second.name, step_text(second));
}

// "; it exposes 8.0 % of the step as communication, fsdp+tp 15.2 %"
std::string exposure(const std::vector<Figures>& all, const std::vector<std::size_t>& order) {
  const Figures& best = all[order[0]];
  std::string text = fmt::format("; it exposes {} of the step as communication",
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
  if (order.empty()) return {.best = -1, .why = nothing_fits(all)};
  std::string why = against_the_second(all, order) + exposure(all, order) +
                    shorter_but_too_large(all, all[order[0]]);
  const bool same_work = std::all_of(all.begin(), all.end(), [&](const Figures& figures) {
    return figures.tokens_per_step == all.front().tokens_per_step;
  });
  if (!same_work) why += "; note that they process different numbers of tokens per step";
  return {.best = static_cast<int>(order[0]), .why = std::move(why)};
}

Choice choose(const std::vector<Prediction>& predictions) {
  return choose(figures_of(predictions));
}

}  // namespace shardsim
