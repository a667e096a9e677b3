// What every verb of the program is made of.
//
// A verb is one file with one function, `int run_command(const Words& words)`, and one row in the
// table of main.cpp. It prints its result to standard output and returns an exit code; what goes
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
void add_flags(boost::program_options::options_description& options, std::span<const Flag> flags);

// Options and operands of a verb as given, in order; operands are called "operand".
struct Given {
  boost::program_options::parsed_options parsed;
  [[nodiscard]] Words all(const std::string& option) const;
  [[nodiscard]] bool has(const std::string& option) const { return !all(option).empty(); }
};

// Reads the words, or prints the verb's help and answers nothing: --help, which is added to the
// options, wins over whatever else is wrong with the words. Throws UsageError.
[[nodiscard]] std::optional<Given> parse_or_help(
    const Words& words, boost::program_options::options_description& options, const Manual& manual);

// The whole of standard output. Throws InputError when it cannot be written.
void print(const std::string& text);

int run_command(const Words& words);
int compare_command(const Words& words);
int plan_command(const Words& words);
int specs_command(const Words& words);
int reshard_command(const Words& words);
int profiles_command(const Words& words);
int collective_command(const Words& words);
int calibrate_command(const Words& words);
int validate_command(const Words& words);
int import_command(const Words& words);
int hlo_command(const Words& words);
int check_command(const Words& words);

}  // namespace shardsim
