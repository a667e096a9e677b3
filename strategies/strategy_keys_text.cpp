#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "strategies/frameworks/framework.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/strategy_keys.hpp"

namespace shardsim {
namespace {

std::string values_text(const StrategyKey& key) {
  return key.choices.empty() ? std::string(key.values)
                             : fmt::format("{}", fmt::join(key.choices, ", "));
}

// Words in lines of at most so many characters, after an indent.
std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t width = 100;
  const std::string begin(indent, ' ');
  std::string out = begin;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + begin;
      column = indent;
    }
    if (column > indent) out += ' ';
    column += word.size() + (column > indent ? 1 : 0);
    out += word;
    at = end + 1;
  }
  return out + "\n";
}

}  // namespace

std::string strategy_keys_text() {
  constexpr std::size_t column = 18;
  std::string out =
      "A strategy is a name or an object with one:\n\n"
      "  \"strategy\": \"fsdp\"\n"
      "  \"strategy\": {\"name\": \"fsdp\", \"prefetch\": 2}\n\n"
      "on the command line --strategy fsdp, --set strategy.prefetch=2.\n\nStrategies:\n\n";
  for (const Recipe& recipe : recipes()) {
    out += fmt::format("  {:<{}}{}\n", recipe.name, column, recipe.meaning);
  }
  out += "\nFrameworks, with what each does by itself, and keys of their own:\n\n";
  for (const Framework& framework : frameworks()) {
    out += fmt::format("  {}\n{}", framework.name, wrapped(framework.meaning, 6));
    out += wrapped(fmt::format("keys: {}", fmt::join(framework.keys, ", ")), 6);
  }
  out += "\nRule systems of frameworks (docs/rule-systems), with keys of their own:\n\n";
  for (const RuleSystem& system : rule_systems()) {
    out += fmt::format("  {}\n{}", system.name, wrapped(system.summary, 6));
    out += wrapped(
        fmt::format("keys: {}",
                    system.keys.empty() ? "none" : fmt::format("{}", fmt::join(system.keys, ", "))),
        6);
  }
  out += "\nKeys:\n";
  for (const StrategyKey& key : strategy_keys()) {
    out += fmt::format("\n  {}\n{}", key.name, wrapped(key.meaning, 6));
    out += wrapped(fmt::format("values: {}{}", values_text(key),
                               key.of_recipes_alone ? "; not of rule systems" : ""),
                   6);
    out += wrapped(fmt::format("when left out: {}", key.otherwise), 6);
  }
  return out;
}

}  // namespace shardsim
