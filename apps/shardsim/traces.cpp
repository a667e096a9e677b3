#include "traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <numeric>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"
#include "progress.hpp"
#include "reports/format/report.hpp"
#include "reports/traces/chrome.hpp"
#include "reports/traces/perfetto.hpp"

namespace shardsim {
namespace {

namespace po = boost::program_options;

constexpr std::string_view chakra_ending = ".et";

std::int64_t rank_number(std::string_view text, const std::string& given, std::int64_t ranks) {
  std::int64_t rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error == std::errc{} && end == text.data() + text.size() && rank >= 0 && rank < ranks) {
    return rank;
  }
  throw UsageError(
      fmt::format("--ranks {}: \"{}\" is no rank; there are {} to {}, \"all\" and \"classes\"",
                  given, text, 0, ranks - 1));
}

// "0,8-11"
std::vector<std::int64_t> listed_ranks(const std::string& given, std::int64_t ranks) {
  std::set<std::int64_t> chosen;
  std::string_view rest = given;
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t dash = part.find('-');
    const std::int64_t first = rank_number(part.substr(0, dash), given, ranks);
    const std::int64_t last =
        dash == std::string_view::npos ? first : rank_number(part.substr(dash + 1), given, ranks);
    if (last < first) {
      throw UsageError(fmt::format("--ranks {}: {} comes before {}", given, last, first));
    }
    for (std::int64_t rank = first; rank <= last; ++rank) chosen.insert(rank);
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace

std::vector<std::string> trace_formats() { return {"perfetto", "chrome"}; }

bool is_trace(const std::string& format) { return format == "perfetto" || format == "chrome"; }

bool wants_trace(const std::vector<Output>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const Output& output) { return is_trace(output.format); });
}

SimulationOptions simulation_for_traces() {
  SimulationOptions options;
  options.keep_timeline = true;
  options.link_bins = report_link_bins;
  return options;
}

std::string render_trace(const Prediction& prediction, const std::string& format) {
  const StepTrace trace = trace_of(prediction);
  return format == "perfetto" ? perfetto_trace(trace) : chrome_trace(trace);
}

void add_ranks_option(po::options_description& options) {
  options.add_options()("ranks", po::value<std::string>()->value_name("RANKS"),
                        "of which ranks Chakra traces are written: all, classes (one of each "
                        "device class), or 0,8-11; all up to 256, else classes");
}

std::vector<std::string> take_chakra(const Given& given, std::vector<Output>& outputs) {
  std::vector<std::string> paths;
  for (const Output& output : outputs) {
    if (output.format != "chakra") continue;
    if (!output.path.ends_with(chakra_ending)) {
      throw UsageError(
          fmt::format("{}: Chakra traces are a file per rank, step.0.et and so on: give -o step.et",
                      output.path.empty() ? "--format chakra" : "-o " + output.path));
    }
    paths.push_back(output.path);
  }
  if (paths.empty() && given.has("ranks")) {
    throw UsageError("--ranks is for Chakra traces: -o step.et");
  }
  std::erase_if(outputs, [](const Output& output) { return output.format == "chakra"; });
  return paths;
}

std::vector<std::int64_t> chosen_ranks(const Given& given, const ChakraTraces& traces) {
  const Words asked = given.all("ranks");
  if (asked.size() > 1) throw UsageError("--ranks is given twice");
  const bool all = asked.empty() ? traces.ranks() <= most_ranks_unasked : asked[0] == "all";
  if (all) {
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(traces.ranks()));
    std::iota(ranks.begin(), ranks.end(), std::int64_t{0});
    return ranks;
  }
  if (!asked.empty() && asked[0] != "classes") return listed_ranks(asked[0], traces.ranks());
  std::vector<std::int64_t> firsts = traces.first_of_each_class();
  if (asked.empty()) {
    std::cerr << fmt::format(
        "note: {} of {} ranks, one of each device class; --ranks all writes a file for every "
        "rank\n",
        firsts.size(), format_count(traces.ranks()));
  }
  return firsts;
}

void write_chakra(const std::vector<std::string>& paths, const ChakraTraces& traces,
                  const std::vector<std::int64_t>& ranks) {
  const std::string warning = traces.warning();
  if (!warning.empty()) std::cerr << fmt::format("note: {}\n", warning);
  const std::string communicators = traces.communicators();
  Progress progress(paths.size() * ranks.size());
  for (const std::string& path : paths) {
    const std::string stem = path.substr(0, path.size() - chakra_ending.size());
    for (const std::int64_t rank : ranks) {
      const std::string file = fmt::format("{}.{}{}", stem, rank, chakra_ending);
      progress.begin(file);
      write_file(file, traces.rank(rank));
    }
    write_file(stem + ".comm_groups.json", communicators);
  }
}

}  // namespace shardsim
