// Arguments as a map of YAML: the files of Megatron-LM's functional tests and of the recipes that
// are launched with the same scripts (tests/functional_tests/test_cases/*/model_config.yaml).
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "launch/formats/formats.hpp"
#include "launch/formats/shell_words.hpp"

namespace shardsim {
namespace {

constexpr std::string_view arguments_section = "MODEL_ARGS.--";
constexpr std::string_view variables_section = "ENV_VARS.";

// $NAME and ${NAME:-otherwise} as a shell has them; what is not set stays as it is written.
std::string expanded(const std::string& text, const ShellScript& script) {
  if (text.find('$') == std::string::npos) return text;
  const ShellToken token{
      .kind = ShellToken::Kind::word, .text = "\"" + text + "\"", .line = 1, .elements = {}};
  const std::vector<ShellWord> words = expand(token, script, /*keeps_unset=*/true);
  return words.empty() ? "" : words.front().text;
}

// "[attn mlp]", as the launcher takes brackets off.
Json words_in(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return text;
  Json words = Json::array();
  for (std::size_t at = 1; at + 1 < text.size();) {
    const std::size_t begin = text.find_first_not_of(" ,'\"", at);
    if (begin >= text.size() - 1) break;
    at = std::min(text.find_first_of(" ,'\"]", begin), text.size() - 1);
    words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

}  // namespace

bool is_argument_yaml(const std::string& text) {
  return text.starts_with("MODEL_ARGS:") || text.find("\nMODEL_ARGS:") != std::string::npos;
}

std::vector<Entry> read_argument_yaml(const std::string& text, const std::string& file,
                                      const GivenVariables& given) {
  const KeyFile read = read_yaml(text, file);
  ShellScript script;
  for (const Entry& entry : read.entries) {
    if (!entry.key.starts_with(variables_section)) continue;
    const std::string value =
        entry.value->is_string() ? entry.value->get<std::string>() : entry.value->dump();
    script.variables[entry.key.substr(variables_section.size())] = {{value, 1}};
  }
  for (const auto& [name, value] : given) script.variables[name] = {{value, 1}};
  std::vector<Entry> entries;
  for (const Entry& entry : read.entries) {
    if (!entry.key.starts_with(arguments_section)) continue;
    Json value = *entry.value;
    if (value.is_string()) value = expanded(value.get<std::string>(), script);
    if (value == "true" || value == "false") value = value == "true";
    if (value.is_null() || value == false) continue;  // a flag that is not given
    if (value.is_string()) value = words_in(value.get<std::string>());
    std::string key = entry.key.substr(arguments_section.size());
    std::replace(key.begin(), key.end(), '_', '-');
    const std::string line = entry.place.pointer.substr(0, entry.place.pointer.find(':'));
    entries.push_back(
        {key, "--" + key, OwnedJson(std::move(value)), {file, fmt::format("{}: --{}", line, key)}});
  }
  return entries;
}

bool has_variable(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool braced = at > 1 && text[at - 1] == '{' && text[at - 2] == '$';
    const bool begins = braced || (at > 0 && text[at - 1] == '$');
    const char after = at + name.size() < text.size() ? text[at + name.size()] : ' ';
    const bool ends = std::isalnum(static_cast<unsigned char>(after)) == 0 && after != '_';
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace shardsim
