// What every verb of the program is made of.
//
// A verb is one file with one function, `Verb run_verb()`, and one row in the table of verbs.cpp.
// The options that it adds are what is parsed, and what its help, the completion of shells and the
// manual page show. `run` prints its result to standard output and returns an exit code; what goes
// wrong it throws: UsageError (exit code 2), InputError (3), CannotRunError (4), any other
// exception is a bug (70).
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardsim {

namespace po = boost::program_options;

using Words = std::vector<std::string>;  // the command line after the verb

inline constexpr int exit_done = 0;
inline constexpr int exit_verdict_is_no = 1;  // the verdict that was asked for
inline constexpr int exit_wrong_usage = 2;
inline constexpr int exit_invalid_input = 3;
inline constexpr int exit_cannot_run = 4;
inline constexpr int exit_bug = 70;

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What `shardsim VERB --help` prints around the options.
struct Manual {
  std::string synopsis;               // "run EXPERIMENT [OPTION...]"
  std::string text;                   // what the verb does, in a few lines
  std::vector<std::string> examples;  // that work in a checkout
};

// An option that sets one field of a JSON document.
struct Flag {
  const char* name;
  const char* path;  // of the field
  const char* value;
  const char* help;
};
void add_flags(po::options_description& options, std::span<const Flag> flags);

// Options and operands of a verb as given, in order; operands are called "operand".
struct Given {
  po::parsed_options parsed;
  [[nodiscard]] Words all(const std::string& option) const;
  [[nodiscard]] bool has(const std::string& option) const { return !all(option).empty(); }
};

struct Verb {
  const char* name = nullptr;
  const char* summary = nullptr;  // a line
  Manual manual;
  void (*add_options)(po::options_description& options) = nullptr;
  int (*run)(const Given& given) = nullptr;        // gives an exit code
  Words (*rewrite)(const Words& words) = nullptr;  // before they are parsed, where there is need
  Words actions = {};                              // words that may stand behind it: profiles show
};

// Throws UsageError.
[[nodiscard]] Given parse_words(const Words& words, const po::options_description& options);

// With --help, which every verb has.
[[nodiscard]] po::options_description options_of(const Verb& verb);
[[nodiscard]] std::string help_text(const Verb& verb);
// Reads the words and runs the verb, or prints its help: --help wins over whatever else is wrong
// with the words. Throws UsageError.
[[nodiscard]] int run_verb_with(const Verb& verb, const Words& words);

// The whole of standard output. Throws InputError when it cannot be written.
void print(const std::string& text);

}  // namespace shardsim
