// The program: finds the verb, runs it, turns what went wrong into a message and an exit code.

#include <fmt/format.h>

#include <array>
#include <functional>
#include <iostream>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "command.hpp"

namespace shardsim {
namespace {

struct Command {
  const char* name;
  const char* help;
  int (*function)(const Words&);
};

constexpr std::array commands{
    Command{"run", "simulate one experiment: time, memory, communication", run_command},
    Command{"compare", "several experiments side by side; the best and why", compare_command},
    Command{"plan", "what every device does in one step", plan_command},
    Command{"specs", "the sharding of every parameter", specs_command},
    Command{"reshard", "from one mesh and sharding to another: steps, time, memory",
            reshard_command},
    Command{"profiles", "hardware profiles: list, show, check", profiles_command},
    Command{"collective", "one collective on one machine: time by size, like nccl-tests",
            collective_command},
    Command{"calibrate",
            "measured tables of collectives in, what machines take beyond the model out",
            calibrate_command},
    Command{"validate", "a step on real devices: predicted beside measured", validate_command},
    Command{"import", "a model of others as a parameter tree, a compiled program as a plan",
            import_command},
    Command{"hlo", "what two compiled programs do differently", hlo_command},
    Command{"check", "what became worse since a baseline was recorded, and why: for CI",
            check_command},
};

std::string help() {
  std::string out =
      "Usage: shardsim COMMAND [OPTION...]\n\n"
      "How will this sharding of this model run on that machine?\n\nCommands:\n";
  for (const Command& command : commands) {
    out += fmt::format("  {:<12}{}\n", command.name, command.help);
  }
  out +=
      "\nOptions:\n"
      "  --help    this text; after a command, its options and examples\n"
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

int dispatch(const Words& words) {
  if (words.empty()) throw UsageError("no command; shardsim --help lists them");
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print(help());
    return exit_done;
  }
  if (words[0] == "--version") {
    print(version());
    return exit_done;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (words[0] == command.name) return command.function({words.begin() + 1, words.end()});
    names.emplace_back(command.name);
  }
  const std::string suggestion = closest(words[0], names);
  throw UsageError(fmt::format("unknown command \"{}\"{}", words[0],
                               suggestion.empty()
                                   ? std::string("; shardsim --help lists them")
                                   : fmt::format(", did you mean \"{}\"?", suggestion)));
}

int fail(int code, const std::string& message) {
  std::cerr << message << "\n";
  return code;
}

int guarded_main(const Words& words) {
  try {
    return dispatch(words);
  } catch (const UsageError& error) {
    return fail(exit_wrong_usage, fmt::format("error: {}", error.what()));
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
