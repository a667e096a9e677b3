#include "strategies/layout/layout_string.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardsim {
namespace {

constexpr std::size_t longest_layout = 1 << 20;  // stages and layers, unrolled

// The n of "*n" at the front, and how many characters that is; 0 characters where it is not there.
struct Times {
  std::size_t n = 0;
  std::size_t length = 0;
};
Times times_at(std::string_view text) {
  if (!text.starts_with('*')) return {};
  Times times;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), times.n);
  if (error == std::errc::invalid_argument) return {};
  if (error != std::errc()) times.n = longest_layout + 1;
  times.length = static_cast<std::size_t>(end - text.data());
  return times;
}

void repeat(std::string& text, std::string_view what, std::size_t n, const Place& place) {
  if (n > longest_layout || text.size() + what.size() * n > longest_layout) {
    throw InputError(place,
                     fmt::format("the layout unrolls to more than {} characters", longest_layout));
  }
  for (std::size_t i = 0; i < n; ++i) text += what;
}

std::string unroll_brackets(std::string_view text, const Place& place) {
  std::string unrolled;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t close = text[i] == '(' ? text.find(')', i) : std::string_view::npos;
    const Times times =
        close == std::string_view::npos ? Times{} : times_at(text.substr(close + 1));
    if (times.length > 0 && close > i + 1) {
      repeat(unrolled, text.substr(i + 1, close - i - 1), times.n, place);
      i = close + 1 + times.length;
    } else {
      unrolled += text[i++];
    }
  }
  return unrolled;
}

std::string unroll_letters(std::string_view text, const Place& place) {
  std::string unrolled;
  for (std::size_t i = 0; i < text.size();) {
    const Times times = times_at(text.substr(i + 1));
    repeat(unrolled, text.substr(i, 1), times.length > 0 ? times.n : 1, place);
    i += 1 + times.length;
  }
  return unrolled;
}

std::int32_t count_of(std::string_view text, char letter) {
  return static_cast<std::int32_t>(std::count(text.begin(), text.end(), letter));
}

void check_letters(const std::string& all, const StagesRequest& request, const Place& place) {
  if (!all.starts_with('E') || count_of(all, 'E') != 1) {
    throw InputError(place, "a layout begins with its one E, the embedding");
  }
  if (!all.ends_with('L') || count_of(all, 'L') != 1) {
    throw InputError(place, "a layout ends with its one L, the loss");
  }
  if (count_of(all, 't') != request.layers) {
    throw InputError(place, fmt::format("the layout has {} layers (t), the model {}",
                                        count_of(all, 't'), request.layers));
  }
  if (count_of(all, 'm') != request.mtp_layers) {
    throw InputError(place, fmt::format("the layout has {} layers of multi-token prediction (m), "
                                        "the model {}",
                                        count_of(all, 'm'), request.mtp_layers));
  }
  const std::size_t first_mtp = all.find('m');
  if (first_mtp != std::string::npos && all.find('t', first_mtp) != std::string::npos) {
    throw InputError(place, "layers (t) come before those of multi-token prediction (m)");
  }
}

void check_mtp(const std::vector<std::string>& stages, const StagesRequest& request,
               const Place& place) {
  const std::size_t last_chunk = stages.size() - static_cast<std::size_t>(request.ranks);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::int32_t mtp = count_of(stages[stage], 'm');
    if (mtp == 0) continue;
    if (stage < last_chunk) {
      throw InputError(place,
                       fmt::format("stage {} has multi-token prediction (m), which is for the "
                                   "last stage of a rank: {} to {}",
                                   stage, last_chunk, stages.size() - 1));
    }
    if (mtp != request.mtp_layers) {
      throw InputError(place, "multi-token prediction (m) is in several stages; one has all of it");
    }
  }
}

}  // namespace

std::vector<std::string> expand_layout(std::string_view layout, const Place& place) {
  std::string plain(layout);
  std::erase(plain, ',');
  const std::string text = unroll_letters(unroll_brackets(plain, place), place);
  const std::size_t bad = text.find_first_not_of("ELtm|");
  if (bad != std::string::npos) {
    throw InputError(place, fmt::format("'{}' in the layout \"{}\": expected E, t, m, L, |, and "
                                        "repetitions as in \"t*3\" and \"(tt|)*3\"",
                                        text[bad], layout));
  }
  std::vector<std::string> stages(1);
  for (const char letter : text) {
    if (letter == '|') {
      stages.emplace_back();
    } else {
      stages.back() += letter;
    }
  }
  return stages;
}

std::vector<StageLayers> stages_of_layout(const StagesRequest& request, const Place& place) {
  const std::vector<std::string> letters = expand_layout(*request.layout, place);
  const auto ranks = static_cast<std::size_t>(request.ranks);
  if (letters.size() % ranks != 0) {
    throw InputError(place, fmt::format("the layout has {} stages, which do not divide by {} ranks",
                                        letters.size(), ranks));
  }
  const std::size_t chunks = letters.size() / ranks;
  if (request.virtual_stages && static_cast<std::size_t>(*request.virtual_stages) != chunks) {
    throw InputError(place, fmt::format("the layout has {} stages per rank, virtual_stages is {}",
                                        chunks, *request.virtual_stages));
  }
  std::string all;
  for (const std::string& stage : letters) all += stage;
  check_letters(all, request, place);
  check_mtp(letters, request, place);
  std::vector<StageLayers> stages;
  std::int32_t first = 0;
  for (const std::string& stage : letters) {
    StageLayers layers{first, count_of(stage, 't'), stage.starts_with('E'), stage.ends_with('L'),
                       count_of(stage, 'm')};
    first += layers.count;
    stages.push_back(layers);
  }
  return stages;
}

}  // namespace shardsim
