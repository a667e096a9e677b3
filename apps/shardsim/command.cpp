#include "command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "base/error.hpp"

namespace shardsim {

namespace po = boost::program_options;

namespace {

Given parse(const Words& words, const po::options_description& options) {
  po::options_description all;
  all.add(options);
  all.add_options()("operand", po::value<Words>());
  po::positional_options_description operands;
  operands.add("operand", -1);
  try {
    namespace style = po::command_line_style;
    auto parser = po::command_line_parser(words).options(all).positional(operands);
    // No guessing: what a prefix means today could change with an option of tomorrow.
    const int strict = style::default_style & ~style::allow_guessing;
    return {parser.style(strict).run()};
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
}

bool asks_for_help(const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

std::string help_text(const Manual& manual, const po::options_description& options) {
  std::ostringstream list;
  list << options;
  std::string out =
      fmt::format("Usage: shardsim {}\n\n{}\n\n{}", manual.synopsis, manual.text, list.str());
  out += "\nExamples:\n";
  for (const std::string& example : manual.examples) out += "  " + example + "\n";
  return out;
}

}  // namespace

void add_flags(po::options_description& options, std::span<const Flag> flags) {
  for (const Flag& flag : flags) {
    options.add_options()(flag.name, po::value<std::string>()->value_name(flag.value), flag.help);
  }
}

Words Given::all(const std::string& option) const {
  Words values;
  for (const auto& given : parsed.options) {
    // A switch has no value: its name stands for it.
    if (given.string_key != option) continue;
    values.push_back(given.value.empty() ? option : given.value[0]);
  }
  return values;
}

std::optional<Given> parse_or_help(const Words& words, po::options_description& options,
                                   const Manual& manual) {
  options.add_options()("help,h", "print this help");
  if (!asks_for_help(words)) return parse(words, options);
  print(help_text(manual, options));
  return std::nullopt;
}

void print(const std::string& text) {
  if (!(std::cout << text << std::flush)) {
    throw InputError({"standard output", ""}, "cannot be written");
  }
}

}  // namespace shardsim
