// The program: finds the verb, runs it, turns what went wrong into a message and an exit code.

#include <fmt/format.h>

#include <iostream>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "command.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/strategy_keys.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

std::string help() {
  std::string out =
      "Usage: shardsim COMMAND [OPTION...]\n\n"
      "How will this sharding of this model run on that machine?\n\nCommands:\n";
  for (const Verb& verb : all_verbs()) {
    out += fmt::format("  {:<12}{}\n", verb.name, verb.summary);
  }
  out +=
      "\nOptions:\n"
      "  --help    this text; after a command, its options and examples: shardsim help COMMAND,\n"
      "            too; shardsim help strategy lists the keys of a strategy\n"
      "  --version the version and what it was built with\n"
      "\nExamples:\n"
      "  shardsim compare examples/llama-3.1-8b-8xh100.json -o report.html -o report.csv\n"
      "  shardsim run examples/qwen3-1.7b-fsdp4.json\n"
      "  shardsim run --model llama-3.1-8b --batch 64 --sequence 8192 --machine dgx-h100 \\\n"
      "               --mesh data=2,fsdp=4 --strategy fsdp\n"
      "\nExit codes: 0 done, 1 the verdict asked for is no, 2 wrong usage, 3 invalid input,\n"
      "4 cannot run here, 70 a bug.\n";
  return out;
}

std::string version() {
  return fmt::format("shardsim {}\n  compiler {}\n  CUDA     {}\n  NCCL     {}\n  MPI      {}\n",
                     program_version, build_compiler, build_cuda, build_nccl, build_mpi);
}

// Of the program, of a verb, or of what experiments hold.
int help_command(const Words& topics) {
  if (topics.size() > 1) throw UsageError("expected: help [COMMAND | strategy]");
  if (topics.empty()) {
    print(help());
  } else if (topics[0] == "strategy") {
    print(strategy_keys_text());
  } else {
    print(help_text(find_verb(topics[0])));
  }
  return exit_done;
}

int dispatch(const Words& words) {
  if (words.empty()) throw UsageError("no command; shardsim --help lists them");
  const Words rest(words.begin() + 1, words.end());
  if (words[0] == "help") return help_command(rest);
  if (words[0] == "--help" || words[0] == "-h") return help_command({});
  if (words[0] == "--version") {
    print(version());
    return exit_done;
  }
  return run_verb_with(find_verb(words[0]), rest);
}

int fail(int code, const std::string& message) {
  std::cerr << message << "\n";
  return code;
}

// No word of Python's but as what it is: the exception that the rule system itself raises.
std::string quoted(const RuleError& error) {
  std::string text = error.what();
  const std::string type = error.type() + ": ";
  if (const std::size_t at = text.find(type); at != std::string::npos) text.erase(at, type.size());
  return fmt::format("{} ({} in the original)", text, error.type());
}

int guarded_main(const Words& words) {
  try {
    return dispatch(words);
  } catch (const UsageError& error) {
    return fail(exit_wrong_usage, fmt::format("error: {}", error.what()));
  } catch (const RuleError& error) {
    return fail(exit_invalid_input, fmt::format("error: {}", quoted(error)));
  } catch (const InputError& error) {
    return fail(exit_invalid_input, fmt::format("error: {}", error.what()));
  } catch (const CannotRunError& error) {
    return fail(exit_cannot_run, fmt::format("error: {}", error.what()));
  } catch (const std::exception& error) {
    return fail(exit_bug, fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace
}  // namespace shardsim

int main(int argc, char** argv) {
  return shardsim::guarded_main(argc > 1 ? shardsim::Words(argv + 1, argv + argc)
                                         : shardsim::Words());
}
