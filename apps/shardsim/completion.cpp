#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <sstream>

#include "hardware_profiles/machine.hpp"
#include "strategies/strategy.hpp"
#include "verbs.hpp"
#include "workloads/build.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "completion bash|zsh|fish",
    "Prints what a shell needs to complete commands, options and their values. Installed beside "
    "the\n"
    "program; else: source <(shardsim completion bash), in zsh autoload -U compinit; compinit;\n"
    "source <(shardsim completion zsh), in fish shardsim completion fish | source.",
    {"shardsim completion bash", "shardsim completion zsh", "shardsim completion fish"}};

void add_options(po::options_description& /*options*/) {}

struct Option {
  std::string name;                 // without dashes
  std::string letter;               // of the short form; may be empty
  std::string help;                 // one line
  std::string value;                // "FILE"; empty: a switch
  std::vector<std::string> values;  // that are known; empty: anything, files among it
};

std::vector<std::string> split_words(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream word(part);
    if (word >> part) words.push_back(part);
  }
  return words;
}

// Of options that stand for names that the program holds. --format says its own.
std::vector<std::string> known_values(const po::option_description& option) {
  const std::string& name = option.long_name();
  if (name == "format") return split_words(option.description());
  if (name == "machine" || name == "extends") return shipped_profiles();
  if (name == "model") return shipped_models();
  if (name == "strategy") return strategy_names();
  const std::map<std::string, std::vector<std::string>> few = {
      {"backend", {"mpi", "nccl"}},
      {"collectives",
       {"simulated", "uncalibrated", "all-links", "tpu-scheduler", "xla-sol", "flows"}},
      {"kind",
       {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute",
        "broadcast"}},
      {"like", {"xla"}},
      {"rematerialization", {"none", "full", "selective"}},
      {"step", {"train"}}};
  const auto found = few.find(name);
  return found == few.end() ? std::vector<std::string>() : found->second;
}

std::vector<Option> options_for(const Verb& verb) {
  std::vector<Option> options;
  const po::options_description described = options_of(verb);
  for (const auto& option : described.options()) {
    Option one;
    one.name = option->long_name();
    if (one.name == "output") one.letter = "o";
    if (one.name == "help") one.letter = "h";
    one.help = option->description();
    for (char& c : one.help) c = c == '\n' ? ' ' : c;
    if (option->semantic()->max_tokens() > 0) one.value = option->semantic()->name();
    one.values = known_values(*option);
    options.push_back(std::move(one));
  }
  return options;
}

// Words that stand behind the verb, such as profiles show.
std::vector<std::string> actions_of(const Verb& verb) {
  const std::map<std::string, std::vector<std::string>> all = {
      {"profiles", {"list", "show", "check", "import"}},
      {"import", {"safetensors", "hf", "hlo", "stablehlo"}},
      {"hlo", {"diff"}},
      {"completion", {"bash", "zsh", "fish"}}};
  const auto found = all.find(verb.name);
  return found == all.end() ? std::vector<std::string>() : found->second;
}

std::string bash() {
  std::string verbs;
  std::string by_verb;
  std::string by_option;
  for (const Verb& verb : all_verbs()) {
    verbs += fmt::format("{} ", verb.name);
    std::string words;
    for (const Option& option : options_for(verb)) {
      words += fmt::format("--{} ", option.name);
      if (option.value.empty()) continue;
      const std::string letter =
          option.letter.empty() ? "" : fmt::format("|{}:-{}", verb.name, option.letter);
      by_option += fmt::format("    {}:--{}{}) values='{}'; takes_value=1 ;;\n", verb.name,
                               option.name, letter, fmt::join(option.values, " "));
    }
    by_verb += fmt::format("    {}) options='{}'; actions='{}' ;;\n", verb.name, words,
                           fmt::join(actions_of(verb), " "));
  }
  return fmt::format(R"(# Completion of shardsim in bash.
_shardsim() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local verb=${{COMP_WORDS[1]}} options= actions= values= takes_value=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{}help --help --version' -- "$current"))
    return
  fi
  case $verb in
{}    help) options=; actions='{}strategy' ;;
  esac
  case $verb:$previous in
{}  esac
  if [[ $takes_value ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current") $(compgen -f -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W "$actions" -- "$current"))
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _shardsim shardsim
)",
                     verbs, by_verb, verbs, by_option);
}

// Within single quotes; `special` characters have a backslash before them.
std::string quoted(const std::string& text, const std::string& special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) out += '\\';
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh() {
  std::string verbs;
  std::string by_verb;
  for (const Verb& verb : all_verbs()) {
    verbs += fmt::format("    '{}:{}'\n", verb.name, quoted(verb.summary, ":"));
    by_verb += fmt::format("    {})\n      _arguments \\\n", verb.name);
    for (const Option& option : options_for(verb)) {
      const std::string values =
          option.values.empty() ? "_files" : fmt::format("({})", fmt::join(option.values, " "));
      const std::string value =
          option.value.empty() ? "" : fmt::format(":{}:{}", quoted(option.value, ":"), values);
      const std::string help = quoted(option.help, "[]:\\");
      by_verb += fmt::format("        '*--{}[{}]{}' \\\n", option.name, help, value);
      if (option.letter.empty()) continue;
      by_verb += fmt::format("        '*-{}[{}]{}' \\\n", option.letter, help, value);
    }
    const std::vector<std::string> actions = actions_of(verb);
    if (!actions.empty())
      by_verb += fmt::format("        '1:what:({})' \\\n", fmt::join(actions, " "));
    by_verb += "        '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef shardsim
# Completion of shardsim in zsh.
_shardsim() {{
  local -a verbs
  verbs=(
{}    'help:of a command, or of strategies'
  )
  if ((CURRENT == 2)); then
    _describe command verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
{}    help) _describe command verbs ;;
  esac
}}
# Loaded by its name, as from fpath, the file is the function; else it is read once.
if [[ $funcstack[1] == _shardsim ]]; then
  _shardsim "$@"
else
  compdef _shardsim shardsim
fi
)",
                     verbs, by_verb);
}

std::string fish() {
  std::string out = "# Completion of shardsim in fish.\n";
  for (const Verb& verb : all_verbs()) {
    out += fmt::format("complete -c shardsim -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                       quoted(verb.summary, ""));
    const std::string behind =
        fmt::format("complete -c shardsim -n '__fish_seen_subcommand_from {}'", verb.name);
    for (const Option& option : options_for(verb)) {
      out += fmt::format(
          "{} -l {}{}{}{} -d '{}'\n", behind, option.name,
          option.letter.empty() ? "" : fmt::format(" -s {}", option.letter),
          option.value.empty() ? "" : " -r",
          option.values.empty() ? "" : fmt::format(" -a '{}'", fmt::join(option.values, " ")),
          quoted(option.help, ""));
    }
    const std::vector<std::string> actions = actions_of(verb);
    if (!actions.empty()) out += fmt::format("{} -a '{}'\n", behind, fmt::join(actions, " "));
  }
  return out + "complete -c shardsim -n __fish_use_subcommand -a help -d 'of a command'\n";
}

int run(const Given& given) {
  const Words shells = given.all("operand");
  const std::string shell = shells.size() == 1 ? shells[0] : "";
  if (shell == "bash") {
    print(bash());
  } else if (shell == "zsh") {
    print(zsh());
  } else if (shell == "fish") {
    print(fish());
  } else {
    throw UsageError("expected: completion bash, zsh or fish");
  }
  return exit_done;
}

}  // namespace

Verb completion_verb() {
  return {"completion", "of commands, options and values, for bash, zsh or fish", manual,
          add_options, run};
}

}  // namespace shardsim
