#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/collectives/collective_model.hpp"
#include "strategies/strategy.hpp"
#include "verbs.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {

const Manual completion_manual = {
    "completion bash|zsh|fish",
    "Prints what a shell needs to complete commands, options and their values. Installed beside "
    "the\n"
    "program; else: source <(shardsim completion bash), in zsh autoload -U compinit; compinit;\n"
    "source <(shardsim completion zsh), in fish shardsim completion fish | source.",
    {"shardsim completion bash", "shardsim completion zsh", "shardsim completion fish"}};

void add_completion_options(po::options_description& /*options*/) {}

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

// Of the values from 0 to `last`.
template <class T>
std::vector<std::string> names_up_to(T last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.emplace_back(name_of(static_cast<T>(i)));
  return names;
}

// Of options that stand for names that the program holds. --format says its own.
std::vector<std::string> known_values(const Verb& verb, const po::option_description& option) {
  const std::string& name = option.long_name();
  if (name == "format") return split_words(option.description());
  if (name == "machine" || name == "extends") return shipped_profiles();
  const bool is_collective = verb.name == std::string_view("collective");
  if (name == "collectives" || (name == "model" && is_collective)) {
    std::vector<std::string> words;
    for (const auto& [word, model] : collective_models::by_word) words.emplace_back(word);
    return words;
  }
  if (name == "model") return shipped_models();
  if (name == "strategy") return strategy_names();
  if (name == "kind") return names_up_to(CollectiveKind::broadcast);
  // Of those whose readers hold the list to themselves.
  const std::map<std::string, std::vector<std::string>> few = {
      {"backend", {"mpi", "nccl"}},
      {"like", {"xla"}},
      {"only", {"collectives", "kernels"}},
      {"rematerialization", {"none", "full", "selective"}},
      {"step", {"train", "forward", "prefill", "decode", "generate", "layer"}},
      {"train-state", {"adam", "adamw", "lion", "momentum", "sgd"}}};
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
    one.values = known_values(verb, *option);
    options.push_back(std::move(one));
  }
  return options;
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
                           fmt::join(verb.actions, " "));
  }
  return fmt::format(R"(# Completion of shardsim in bash.
_shardsim() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local verb=${{COMP_WORDS[1]}} options= actions= values= takes_value=
  COMPREPLY=()
  # --option=value: "=" is a word of its own.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
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
      by_verb += fmt::format("        '*--{}{}[{}]{}' \\\n", option.name,
                             option.value.empty() ? "" : "=", help, value);
      if (option.letter.empty()) continue;
      by_verb += fmt::format("        '*-{}[{}]{}' \\\n", option.letter, help, value);
    }
    if (!verb.actions.empty())
      by_verb += fmt::format("        '1:what:({})' \\\n", fmt::join(verb.actions, " "));
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
    if (!verb.actions.empty()) {
      out += fmt::format("{} -a '{}'\n", behind, fmt::join(verb.actions, " "));
    }
  }
  return out + "complete -c shardsim -n __fish_use_subcommand -a help -d 'of a command'\n";
}

struct Shell {
  const char* name;
  std::string (*script)();
};
constexpr Shell shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

int run_completion(const Given& given) {
  const Words operands = given.all("operand");
  for (const Shell& shell : shells) {
    if (operands != Words{shell.name}) continue;
    print(shell.script());
    return exit_done;
  }
  throw UsageError("expected: completion bash, zsh or fish");
}

}  // namespace

Verb completion_verb() {
  Words names;
  for (const Shell& shell : shells) names.emplace_back(shell.name);
  return {.name = "completion",
          .summary = "of commands, options and values, for bash, zsh or fish",
          .manual = completion_manual,
          .add_options = add_completion_options,
          .run = run_completion,
          .actions = std::move(names)};
}

}  // namespace shardsim
