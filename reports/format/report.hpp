// One prediction, or several side by side, as text, JSON, CSV, Markdown or one HTML file.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "experiments/experiment.hpp"

namespace shardsim {

enum class Format { text, json, csv, html, markdown };

// SimulationOptions::link_bins for HTML and JSON: as fine as a page shows them, and a multiple of
// the bins of JSON.
inline constexpr std::size_t report_link_bins = 600;

// `width`: of text, in characters.

// `run`. JSON is "shardsim/result/1".
[[nodiscard]] std::string report_run(const Prediction& prediction, Format format,
                                     std::size_t width = default_text_width);
// `compare`. JSON is "shardsim/comparison/1": {"results": [result...], "best": name,
// "ties": [name...], "why": text}.
// Best: the shortest step among those that fit, by token where steps have different numbers of them
// (verdict.hpp); "ties" names those that are not known to be longer (known_error.hpp).
[[nodiscard]] std::string report_comparison(const std::vector<Prediction>& predictions,
                                            Format format, std::size_t width = default_text_width);

struct Choice {
  int best = -1;          // -1: nothing fits
  std::vector<int> ties;  // others that are not known to be longer, the shortest first
  std::string why;        // in a sentence, with the figures
};
[[nodiscard]] Choice choose(const std::vector<Prediction>& predictions);

}  // namespace shardsim
