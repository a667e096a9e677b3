#include "command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "base/error.hpp"

namespace shardsim {

namespace {

bool asks_for_help(const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
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

Given parse_words(const Words& words, const po::options_description& options) {
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

po::options_description options_of(const Verb& verb) {
  po::options_description options("Options");
  verb.add_options(options);
  options.add_options()("help,h", "print this help");
  return options;
}

std::string help_text(const Verb& verb) {
  std::ostringstream list;
  list << options_of(verb);
  std::string out = fmt::format("Usage: shardsim {}\n\n{}\n\n{}", verb.manual.synopsis,
                                verb.manual.text, list.str());
  out += "\nExamples:\n";
  for (const std::string& example : verb.manual.examples) out += "  " + example + "\n";
  return out;
}

int run_verb_with(const Verb& verb, const Words& words) {
  if (!asks_for_help(words)) {
    const Words rewritten = verb.rewrite == nullptr ? words : verb.rewrite(words);
    return verb.run(parse_words(rewritten, options_of(verb)));
  }
  print(help_text(verb));
  return exit_done;
}

void print(const std::string& text) {
  if (!(std::cout << text << std::flush)) {
    throw InputError({"standard output", ""}, "cannot be written");
  }
}

}  // namespace shardsim
