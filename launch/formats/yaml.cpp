#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>

#include "base/json.hpp"
#include "launch/formats/formats.hpp"

namespace shardsim {
namespace {

constexpr int deepest_yaml = 100;
constexpr int most_nodes = 1'000'000;  // aliases of aliases grow without end

// A scalar as YAML 1.1 reads it, which Python's yaml follows: 10_000 is a number.
Json scalar_of(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  for (const std::string_view word : {"true", "True", "TRUE", "yes", "Yes", "on", "On"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"false", "False", "FALSE", "no", "No", "off", "Off"}) {
    if (text == word) return false;
  }
  if (text.empty() || text == "~" || text == "null" || text == "Null") return Json();
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  const char* begin = digits.data() + (digits.starts_with('+') ? 1 : 0);
  const char* end = digits.data() + digits.size();
  std::int64_t integer = 0;
  if (const auto [last, error] = std::from_chars(begin, end, integer);
      error == std::errc() && last == end) {
    return integer;
  }
  double number = 0;
  const bool numeric = digits.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (const auto [last, error] = std::from_chars(begin, end, number);
      numeric && error == std::errc() && last == end) {
    return number;
  }
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void add_map(const YAML::Node& map, const std::string& prefix, int depth,
               std::vector<Entry>& entries) {
    for (const auto& pair : map) {
      const auto key = pair.first.as<std::string>();
      if (key == "<<" && pair.second.IsMap()) {  // of another map what this one does not say
        check(pair.second, depth);
        YAML::Node merged;
        for (const auto& other : pair.second) {
          if (!map[other.first.as<std::string>()]) merged[other.first] = other.second;
        }
        add_map(merged, prefix, depth + 1, entries);
        continue;
      }
      const std::string name = prefix + key;
      if (pair.second.IsMap() && pair.second.size() > 0) {
        check(pair.second, depth);
        add_map(pair.second, name + ".", depth + 1, entries);
        continue;
      }
      entries.push_back({name,
                         name,
                         OwnedJson(json_of(pair.second, depth)),
                         {file_, fmt::format("{}: {}", line_of(pair.first), name)}});
    }
  }

  static std::string line_of(const YAML::Node& node) {
    return fmt::format("line {}", node.Mark().line + 1);
  }

 private:
  void check(const YAML::Node& node, int depth) {
    if (depth > deepest_yaml || ++nodes_ > most_nodes) {
      throw InputError({file_, line_of(node)}, "is nested too deeply");
    }
  }

  Json json_of(const YAML::Node& node, int depth) {
    check(node, depth);
    if (node.IsScalar()) return scalar_of(node);
    if (node.IsNull()) return Json();
    Json json = node.IsSequence() ? Json::array() : Json::object();
    for (const auto& one : node) {
      if (node.IsSequence()) {
        json.push_back(json_of(one, depth + 1));
      } else {
        json[one.first.as<std::string>()] = json_of(one.second, depth + 1);
      }
    }
    return json;
  }

  const std::string& file_;
  int nodes_ = 0;
};

}  // namespace

KeyFile read_yaml(const std::string& text, const std::string& file) {
  try {
    const YAML::Node root = YAML::Load(text);
    KeyFile read;
    if (root.IsNull()) return read;
    if (!root.IsMap()) throw InputError({file, ""}, "expected keys with values, key: value");
    Reader(file).add_map(root, "", 0, read.entries);
    return read;
  } catch (const YAML::Exception& error) {
    throw InputError({file, fmt::format("line {}", error.mark.line + 1)},
                     fmt::format("this is no YAML: {}", error.msg));
  }
}

// Values as JSON, which YAML has as a part.
std::string print_yaml(const std::vector<WrittenKey>& keys, const FileHead& head) {
  std::string text;
  for (const std::string& line : head.lines) text += "# " + line + "\n";
  for (const auto& [key, value] : keys) text += fmt::format("{}: {}\n", key, value->dump());
  return text;
}

}  // namespace shardsim
