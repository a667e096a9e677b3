// Arrows between rooms point down only, as docs/architecture.md draws them.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/architecture/dependencies.hpp"

using shardsim::Levels;
using shardsim::read_levels;
using shardsim::types_defined_twice;
using shardsim::violations;

namespace {
const std::filesystem::path repository = SHARDSIM_SOURCE_DIR;
const std::filesystem::path here = repository / "tests" / "architecture";
}  // namespace

TEST_CASE("rooms see only rooms of lower levels") {
  CHECK(violations(repository, read_levels(here / "levels.txt")) == std::vector<std::string>{});
}

TEST_CASE("no two files define a type of one name") {
  CHECK(types_defined_twice(repository, read_levels(here / "levels.txt")) ==
        std::vector<std::string>{});
  // The fixture's second type is hidden in a namespace of its own, its third only declared again.
  CHECK(types_defined_twice(here / "fixture", read_levels(here / "levels.txt")) ==
        std::vector<std::string>{"shardsim::Twice: plan/twice.hpp sim/twice.cpp"});
}

TEST_CASE("every room of the build has a level, and a folder") {
  const Levels levels = read_levels(here / "levels.txt");
  for (const auto& entry : std::filesystem::directory_iterator(repository)) {
    if (!std::filesystem::exists(entry.path() / "CMakeLists.txt")) continue;
    const std::string room = entry.path().filename();
    if (room == "tests" || room == "bench") continue;  // they see everything, nothing sees them
    INFO(room);
    CHECK(levels.contains(room));
  }
  for (const auto& [room, level] : levels) {
    INFO(room);
    CHECK(std::filesystem::is_directory(repository / room));
  }
}

// The fixture breaks every rule once; what keeps them (base from plan, plan from sim, its own
// headers, a system header in quotes of a comment) is not reported.
TEST_CASE("each kind of violation is found in the fixture, and nothing else") {
  const Levels levels = read_levels(here / "levels.txt");
  CHECK(violations(here / "fixture", levels) ==
        std::vector<std::string>{
            "plan/CMakeLists.txt: plan (level 1) sees strategies (level 3)",
            "plan/plan.cpp:3: plan (level 1) sees sim (level 3)",
            "plan/plan.cpp:4: plan (level 1) sees workloads (level 1)",
            "plan/plan.cpp:5: \"elsewhere/thing.hpp\" belongs to no room",
            "plan/plan.cpp:6: \"local.hpp\" does not say its room",
            "sim/CMakeLists.txt: sim (level 3) sees reports (level 6)",
        });
}
