// Which room depends on which, read from the sources: a line `#include "room/..."` in any .cpp or
// .hpp file, and in any CMakeLists.txt the names after ROOMS and the targets shardsim::room. A
// header beside the file that includes it needs no room.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace shardsim {

using Levels = std::map<std::string, int>;

// The table of levels.txt: lines "LEVEL ROOM...", # for comments. Throws std::runtime_error for a
// line that is neither.
[[nodiscard]] Levels read_levels(const std::filesystem::path& file);

// Every dependency under root/ROOM, for all rooms of the table, that does not point to a lower
// level, sorted:
//   "plan/a.cpp:3: plan (level 1) sees sim (level 2)"
//   "plan/a.cpp:4: \"nowhere/b.hpp\" belongs to no room"
//   "plan/a.cpp:5: \"b.hpp\" does not say its room"
[[nodiscard]] std::vector<std::string> violations(const std::filesystem::path& root,
                                                  const Levels& levels);

// Types that two files of the rooms define under one name, sorted. Each compiles, and the linker
// takes the functions of one of them for both:
//   "shardsim::Finding: plan/a.hpp sim/b.hpp"
[[nodiscard]] std::vector<std::string> types_defined_twice(const std::filesystem::path& root,
                                                           const Levels& levels);

}  // namespace shardsim
