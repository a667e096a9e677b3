// Where a result goes: --format and -o, the same for all verbs.
//
//   (nothing)                   text on standard output
//   --format json               JSON on standard output
//   -o a.html -o a.csv          both files, the format by the extension
//   --format json -o result     the file, as JSON
//
// With files and no --format, text is printed as well, unless text is what a file gets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "command.hpp"

namespace shardsim {

struct Output {
  std::string path;  // empty: standard output
  std::string format;
  std::size_t width = default_text_width;  // of text; on standard output the terminal's
};

// Adds --format, naming what the verb has, and -o.
void add_output_options(po::options_description& options, const std::vector<std::string>& formats);
// Throws UsageError for a format that the verb does not have.
[[nodiscard]] std::vector<Output> read_outputs(const Given& given,
                                               const std::vector<std::string>& formats);
[[nodiscard]] bool wants(const std::vector<Output>& outputs, const std::string& format);
// All are rendered before the first is written.
void write(const std::vector<Output>& outputs,
           const std::function<std::string(const Output& output)>& render);
// Of what is the same at any width.
void write(const std::vector<Output>& outputs,
           const std::function<std::string(const std::string& format)>& render);

}  // namespace shardsim
