#include "output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"

#include "terminal.hpp"

namespace shardsim {
namespace {

struct Ending {
  std::string_view text;
  const char* format;
};
// The longer ones first: what ends in .trace.json ends in .json, too.
constexpr Ending endings[] = {{".trace.json", "chrome"},
                              {".chrome.json", "chrome"},
                              {".perfetto-trace", "perfetto"},
                              {".pftrace", "perfetto"},
                              {"deepspeed.json", "deepspeed"},
                              {"ds_config.json", "deepspeed"},
                              {".args", "megatron"},
                              {".csv", "csv"},
                              {".dot", "dot"},
                              {".et", "chakra"},
                              {".gv", "dot"},
                              {".htm", "html"},
                              {".html", "html"},
                              {".json", "json"},
                              {".md", "markdown"},
                              {".toml", "torchtitan"},
                              {".txt", "text"},
                              {".xml", "junit"},
                              {".yaml", "maxtext"},
                              {".yml", "maxtext"}};

void require_known(const std::string& format, const std::vector<std::string>& formats,
                   const std::string& where) {
  if (std::find(formats.begin(), formats.end(), format) != formats.end()) return;
  throw UsageError(
      fmt::format("{}: no format \"{}\"; there are {}", where, format, fmt::join(formats, ", ")));
}

// Where a verb has no traces, step.trace.json is JSON.
std::string format_of(const std::string& path, const std::vector<std::string>& formats) {
  // GitLab's own name for its report: gl-code-quality-report.json.
  const std::string name = std::filesystem::path(path).filename().string();
  if (name == "gl.json" || (name.starts_with("gl-") && name.ends_with(".json"))) {
    if (std::find(formats.begin(), formats.end(), "gitlab") != formats.end()) return "gitlab";
  }
  const char* unknown = nullptr;  // to this verb
  for (const Ending& ending : endings) {
    if (!path.ends_with(ending.text)) continue;
    if (std::find(formats.begin(), formats.end(), ending.format) != formats.end()) {
      return ending.format;
    }
    if (unknown == nullptr) unknown = ending.format;
  }
  if (unknown != nullptr) return unknown;
  throw UsageError(fmt::format("-o {}: the extension does not say the format, add --format", path));
}

}  // namespace

void add_output_options(po::options_description& options, const std::vector<std::string>& formats) {
  const std::string list = fmt::format("{}", fmt::join(formats, ", "));
  options.add_options()("format", po::value<std::string>()->value_name("FORMAT"), list.c_str())(
      "output,o", po::value<Words>()->value_name("FILE"),
      "write to FILE, whole or not at all; the format by its extension; may be repeated; without "
      "--format text is printed, too");
}

std::vector<Output> read_outputs(const Given& given, const std::vector<std::string>& formats) {
  const Words asked = given.all("format");
  if (asked.size() > 1) throw UsageError("--format is given twice");
  if (!asked.empty()) require_known(asked[0], formats, "--format");
  std::vector<Output> outputs;
  for (const std::string& path : given.all("output")) {
    const std::string format = asked.empty() ? format_of(path, formats) : asked[0];
    require_known(format, formats, "-o " + path);
    outputs.push_back({.path = path, .format = format});
  }
  const bool prints = outputs.empty() || (asked.empty() && !wants(outputs, "text"));
  if (prints) {
    outputs.push_back(
        {.path = "", .format = asked.empty() ? "text" : asked[0], .width = terminal_width()});
  }
  if (outputs.back().path.empty() && outputs.back().format == "perfetto" &&
      ::isatty(STDOUT_FILENO) == 1) {
    throw UsageError("--format perfetto is binary: give -o FILE, or send it elsewhere");
  }
  return outputs;
}

bool wants(const std::vector<Output>& outputs, const std::string& format) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const Output& output) { return output.format == format; });
}

void write(const std::vector<Output>& outputs,
           const std::function<std::string(const Output& output)>& render) {
  std::vector<std::string> contents;
  for (const Output& output : outputs) contents.push_back(render(output));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) {
      print(contents[i]);
    } else {
      write_file(outputs[i].path, contents[i]);
    }
  }
}

void write(const std::vector<Output>& outputs,
           const std::function<std::string(const std::string& format)>& render) {
  write(outputs, [&](const Output& output) { return render(output.format); });
}

}  // namespace shardsim
