#include <fmt/format.h>

#include <sstream>

#include "base/version.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual man_manual = {"man",
                           "Prints the manual page of the program, in roff; installed beside it.",
                           {"shardsim man"}};

void add_man_options(po::options_description& /*options*/) {}

// A line of text: no character of it is roff's.
std::string escaped(const std::string& line) {
  std::string out;
  for (const char c : line) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  const bool is_request = !out.empty() && (out.front() == '.' || out.front() == '\'');
  return is_request ? "\\&" + out : out;
}

// As it is, line for line.
std::string as_written(const std::string& text) {
  std::string out = ".nf\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += escaped(line) + "\n";
  return out + ".fi\n";
}

std::string section_of(const Verb& verb) {
  std::string out = fmt::format(".SS {}\n.B shardsim {}\n.PP\n{}", escaped(verb.name),
                                escaped(verb.manual.synopsis), as_written(verb.manual.text));
  const po::options_description described = options_of(verb);
  for (const auto& option : described.options()) {
    const bool has_value = option->semantic()->max_tokens() > 0;
    const std::string value =
        has_value ? fmt::format(" \\fI{}\\fR", escaped(option->semantic()->name())) : "";
    // "-o [ --output ]" of both, "--machine" of a long one alone.
    out += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", escaped(option->format_name()), value,
                       escaped(option->description()));
  }
  out += ".PP\nExamples:\n.PP\n";
  std::string examples;
  for (const std::string& example : verb.manual.examples) examples += "  " + example + "\n";
  return out + as_written(examples);
}

int run_man(const Given& given) {
  if (given.has("operand")) throw UsageError("expected: man");
  std::string out = fmt::format(
      ".TH SHARDSIM 1 \"\" \"shardsim {}\" \"User Commands\"\n"
      ".SH NAME\nshardsim \\- simulator and cost model for sharding strategies\n"
      ".SH SYNOPSIS\n.B shardsim\n.I COMMAND\n[\\fIOPTION\\fR...]\n"
      ".SH DESCRIPTION\nHow will this sharding of this model run on that machine?\n"
      ".SH COMMANDS\n",
      program_version);
  for (const Verb& verb : all_verbs()) out += section_of(verb);
  out +=
      ".SH EXIT STATUS\n"
      ".TP\n.B 0\ndone\n.TP\n.B 1\nthe verdict that was asked for is no\n"
      ".TP\n.B 2\nwrong usage\n.TP\n.B 3\ninvalid input\n"
      ".TP\n.B 4\ncannot run here\n.TP\n.B 70\na bug\n";
  print(out);
  return exit_done;
}

}  // namespace

Verb man_verb() { return {"man", "the manual page", man_manual, add_man_options, run_man}; }

}  // namespace shardsim
