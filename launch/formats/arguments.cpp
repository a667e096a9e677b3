#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json.hpp"
#include "launch/formats/formats.hpp"
#include "launch/formats/shell_script.hpp"

namespace shardsim {
namespace {

bool is_key(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") && word[2] != '-';
}

// Words of a command, also those inside of quotes, as a script's last expansion takes them apart;
// quotes that were inside of others fall off.
ShellCommand apart(const ShellCommand& command) {
  ShellCommand words;
  for (const ShellWord& word : command) {
    for (std::size_t at = 0; at < word.text.size();) {
      const std::size_t begin = word.text.find_first_not_of(" \t\n", at);
      if (begin == std::string::npos) break;
      at = std::min(word.text.find_first_of(" \t\n", begin), word.text.size());
      std::string text = word.text.substr(begin, at - begin);
      const bool quoted = text.size() > 1 && (text.front() == '\'' || text.front() == '"') &&
                          text.back() == text.front();
      if (quoted) text = text.substr(1, text.size() - 2);
      if (text != "\\") words.push_back({text, word.line});
    }
  }
  return words;
}

// Behind the last program of Python that has arguments; the size of the command: there is none.
std::size_t arguments_of(const ShellCommand& words) {
  std::size_t found = words.size();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text.ends_with(".py") && is_key(words[i + 1].text)) found = i + 1;
  }
  return found;
}

std::string with_dashes(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

std::vector<Entry> entries_of(const ShellCommand& words, const std::string& file) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < words.size();) {
    const ShellWord& word = words[i];
    const std::string line = fmt::format("line {}", word.line);
    if (!is_key(word.text)) {
      throw InputError({file, line}, fmt::format("\"{}\" is the value of no argument", word.text));
    }
    const std::size_t equals = word.text.find('=');
    const std::string key = with_dashes(word.text.substr(2, equals - 2));
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(word.text.substr(equals + 1));
    for (++i; i < words.size() && !is_key(words[i].text); ++i) values.push_back(words[i].text);
    Json value = values;
    if (values.empty()) value = true;
    if (values.size() == 1) value = values[0];
    entries.push_back(
        {key, "--" + key, OwnedJson(std::move(value)), {file, fmt::format("{}: --{}", line, key)}});
  }
  // The last of several holds, as argparse has it.
  std::vector<Entry> last;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool again =
        std::any_of(entries.begin() + static_cast<std::ptrdiff_t>(i) + 1, entries.end(),
                    [&](const Entry& e) { return e.key == entries[i].key; });
    if (!again) last.push_back(std::move(entries[i]));
  }
  return last;
}

std::optional<std::int64_t> integer_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

// As torchrun (--nproc_per_node, --nnodes) and deepspeed (--num_gpus, --num_nodes) are told.
std::optional<std::int64_t> devices_of(const ShellCommand& words, std::size_t end,
                                       const ShellScript& script) {
  std::optional<std::int64_t> in_node, nodes;
  for (std::size_t i = 0; i < end; ++i) {
    const std::size_t equals = words[i].text.find('=');
    const std::string key = with_dashes(words[i].text.substr(0, equals));
    const std::string value = equals != std::string::npos ? words[i].text.substr(equals + 1)
                              : i + 1 < end               ? words[i + 1].text
                                                          : "";
    if (key == "--nproc-per-node" || key == "--num-gpus") in_node = integer_of(value);
    if (key == "--nnodes" || key == "--num-nodes") nodes = integer_of(value);
  }
  if (in_node && *in_node <= largest_number / nodes.value_or(1)) {
    return *in_node * nodes.value_or(1);
  }
  const auto world = script.variables.find("WORLD_SIZE");
  if (world == script.variables.end() || world->second.size() != 1) return std::nullopt;
  return integer_of(world->second[0].text);
}

std::string quoted(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./:,=+%@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  return "'" + text + "'";
}

}  // namespace

KeyFile read_arguments(const std::string& text, const std::string& file,
                       const GivenVariables& given) {
  KeyFile read;
  if (is_argument_yaml(text)) {
    read.entries = read_argument_yaml(text, file, given);
    return read;
  }
  const ShellScript script = read_shell_script(text, file, given);
  bool found = false;
  ShellCommand all;
  for (const ShellCommand& command : script.commands) {
    const ShellCommand words = apart(command);
    all.insert(all.end(), words.begin(), words.end());
    const std::size_t begin = arguments_of(words);
    if (begin >= words.size()) continue;
    found = true;
    const ShellWord& program = words[begin - 1];
    read.program = program.text.substr(program.text.rfind('/') + 1);
    read.program_place = {file, fmt::format("line {}", program.line)};
    read.entries =
        entries_of({words.begin() + static_cast<std::ptrdiff_t>(begin), words.end()}, file);
    read.devices = devices_of(words, begin, script);
  }
  if (found) return read;
  if (all.empty() || !is_key(all.front().text)) {
    throw InputError({file, ""},
                     "has no launch of a .py with arguments, and does not begin with an argument, "
                     "--num-layers 32");
  }
  read.entries = entries_of(all, file);
  return read;
}

Json value_of_word(const std::string& text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;
}

std::string print_arguments(const std::vector<WrittenKey>& keys, const FileHead& head) {
  std::string text;
  for (const std::string& line : head.lines) text += "# " + line + "\n";
  text += head.launch;
  for (const auto& [key, value] : keys) {
    text += " \\\n  --" + key;
    if (value->is_boolean()) continue;  // a flag: there or not
    for (const Json& one : value->is_array() ? *value : Json::array({*value})) {
      text += " " + quoted(one.is_string() ? one.get<std::string>() : one.dump());
    }
  }
  return text + "\n";
}

}  // namespace shardsim
