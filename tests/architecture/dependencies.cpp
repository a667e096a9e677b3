#include "tests/architecture/dependencies.hpp"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

namespace shardsim {
namespace {

namespace fs = std::filesystem;

struct Checker {
  const Levels& levels;
  std::vector<std::string> found;

  void depends(const std::string& from, const std::string& to, const std::string& where) {
    if (from == to) return;
    const int from_level = levels.at(from);
    const int to_level = levels.at(to);
    if (to_level < from_level) return;
    found.push_back(where + ": " + from + " (level " + std::to_string(from_level) + ") sees " + to +
                    " (level " + std::to_string(to_level) + ")");
  }

  void includes(const std::string& room, const fs::path& folder, const std::string& line,
                const std::string& where) {
    static const std::regex include_line(R"re(^\s*#\s*include\s+"([^"]+)".*)re");
    std::smatch match;
    if (!std::regex_match(line, match, include_line)) return;
    const std::string path = match[1];
    const std::size_t slash = path.find('/');
    if (slash == std::string::npos && fs::exists(folder / path)) return;  // beside it
    if (slash == std::string::npos) {
      found.push_back(where + ": \"" + path + "\" does not say its room");
    } else if (!levels.contains(path.substr(0, slash))) {
      found.push_back(where + ": \"" + path + "\" belongs to no room");
    } else {
      depends(room, path.substr(0, slash), where);
    }
  }

  // ROOMS base plan ..., which may go on over several lines, and shardsim::plan.
  void links(const std::string& room, const std::string& text, const std::string& file) {
    static const std::regex word(R"re([^\s()]+)re");
    bool in_rooms = false;
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) {
      std::string name = i->str();
      const bool keyword =
          std::all_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
      if (keyword) {
        in_rooms = name == "ROOMS";
        continue;
      }
      const bool target = name.starts_with("shardsim::");
      if (target) name = name.substr(std::string("shardsim::").size());
      if ((target || in_rooms) && levels.contains(name)) depends(room, name, file);
    }
  }
};

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<fs::path> sources_of(const fs::path& folder) {
  std::vector<fs::path> sources;
  if (!fs::exists(folder)) return sources;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".cpp" || path.extension() == ".hpp") sources.push_back(path);
  }
  return sources;
}

// The types that a file defines where others see them, with their namespaces. What is formatted as
// .clang-format says opens and closes namespaces at the beginning of a line.
std::vector<std::string> types_of(const fs::path& file) {
  static const std::regex opening(R"re(^namespace ?([\w:]*) \{$)re");
  static const std::regex definition(
      R"re(^(?:template <.*> )?(?:struct|class|enum class|union) (\w+)(?: final)?(?: :.*)? \{.*)re");
  std::vector<std::string> types;
  std::vector<std::string> namespaces;
  std::istringstream lines(text_of(file));
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, opening)) {
      namespaces.push_back(match[1]);
    } else if (line.starts_with("}  // namespace") && !namespaces.empty()) {
      namespaces.pop_back();
    } else if (std::regex_match(line, match, definition)) {
      std::string name;
      for (const std::string& space : namespaces) name += space + "::";
      const bool hidden = std::find(namespaces.begin(), namespaces.end(), "") != namespaces.end();
      if (!hidden) types.push_back(name + match[1].str());
    }
  }
  return types;
}

}  // namespace

Levels read_levels(const fs::path& file) {
  std::istringstream lines(text_of(file));
  Levels levels;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    int level = 0;
    if (!(words >> level)) throw std::runtime_error("no level in: " + line);
    for (std::string room; words >> room;) levels.emplace(room, level);
  }
  if (levels.empty()) throw std::runtime_error("no levels in " + file.string());
  return levels;
}

std::vector<std::string> violations(const fs::path& root, const Levels& levels) {
  Checker checker{levels, {}};
  for (const auto& [room, level] : levels) {
    if (!fs::exists(root / room)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / room)) {
      const fs::path& path = entry.path();
      const std::string file = fs::relative(path, root).generic_string();
      if (path.filename() == "CMakeLists.txt") checker.links(room, text_of(path), file);
      if (path.extension() != ".cpp" && path.extension() != ".hpp") continue;
      std::istringstream lines(text_of(path));
      int number = 0;
      for (std::string line; std::getline(lines, line);) {
        checker.includes(room, path.parent_path(), line, file + ":" + std::to_string(++number));
      }
    }
  }
  std::sort(checker.found.begin(), checker.found.end());
  return checker.found;
}

std::vector<std::string> types_defined_twice(const fs::path& root, const Levels& levels) {
  std::map<std::string, std::set<std::string>> files;
  for (const auto& [room, level] : levels) {
    for (const fs::path& path : sources_of(root / room)) {
      for (const std::string& type : types_of(path)) {
        files[type].insert(fs::relative(path, root).generic_string());
      }
    }
  }
  std::vector<std::string> found;
  for (const auto& [type, where] : files) {
    if (where.size() == 1) continue;
    std::string line = type + ":";
    for (const std::string& file : where) line += " " + file;
    found.push_back(line);
  }
  return found;
}

}  // namespace shardsim
