#include "hlo/trip_count.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace shardsim {
namespace {

struct Loop {
  std::string first = "0";
  std::string step = "1";
  std::string bound = "32";
  std::string direction = "LT";
  std::string config{};
};

std::optional<std::int64_t> count(const Loop& loop) {
  const std::string state = "(s32[], f32[8]{0})";
  // The condition's comparison and the body's step lie in fusions, as GPU compilers print them.
  const std::string before = fmt::format(
      "%fused_compare (a: s32[]) -> pred[] {{\n"
      "  %a = s32[] parameter(0)\n  %bound = s32[] constant({})\n"
      "  ROOT %lt = pred[] compare(%a, %bound), direction={}\n}}\n"
      "%condition (s: {}) -> pred[] {{\n  %s = {} parameter(0)\n"
      "  %i = s32[] get-tuple-element(%s), index=0\n"
      "  ROOT %test = pred[] fusion(%i), kind=kLoop, calls=%fused_compare\n}}\n"
      "%fused_step (b: s32[]) -> s32[] {{\n  %b = s32[] parameter(0)\n"
      "  %one = s32[] constant({})\n  ROOT %next = s32[] add(%b, %one)\n}}\n"
      "%body (u: {}) -> {} {{\n  %u = {} parameter(0)\n"
      "  %j = s32[] get-tuple-element(%u), index=0\n"
      "  %x = f32[8]{{0}} get-tuple-element(%u), index=1\n"
      "  %k = s32[] fusion(%j), kind=kLoop, calls=%fused_step\n"
      "  ROOT %out = {} tuple(%k, %x)\n}}\n",
      loop.bound, loop.direction, state, state, loop.step, state, state, state, state);
  const std::string lines = fmt::format(
      "  %zero = s32[] constant({})\n  %start = s32[] copy(%zero)\n"
      "  %data = f32[8]{{0}} parameter(0)\n  %init = {} tuple(%start, %data)\n"
      "  ROOT %loop = {} while(%init), condition=%condition, body=%body{}\n",
      loop.first, state, state, loop.config);
  const HloModule module = test::module_of(lines, 1, before);
  return trip_count(module, test::find(module, "loop"));
}

}  // namespace

TEST_CASE("a recorded trip count is taken, quoted or not") {
  CHECK(count({.config = ", backend_config={\"known_trip_count\":{\"n\":\"10\"}}"}) == 10);
  CHECK(count({.config =
                   ", backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"7\\\"}}\""}) == 7);
}

TEST_CASE("a loop that counts says how often it runs") {
  CHECK(count({}) == 32);
  CHECK(count({.step = "2", .bound = "31"}) == 16);  // 0, 2, .., 30
  CHECK(count({.first = "3", .bound = "8", .direction = "LE"}) == 6);
  CHECK(count({.first = "8", .step = "-2", .bound = "0", .direction = "GT"}) == 4);
  CHECK(count({.first = "0", .step = "4", .bound = "12", .direction = "NE"}) == 3);
  CHECK(count({.first = "9", .bound = "8"}) == 0);
}

TEST_CASE("a loop that does not count is unknown") {
  CHECK_FALSE(count({.step = "0"}));
  CHECK_FALSE(count({.step = "5", .bound = "12", .direction = "NE"}));
  CHECK_FALSE(count({.bound = "99999999999999999999"}));
}

}  // namespace shardsim
