#include "checks/member_names.hpp"

#include <catch2/catch.hpp>

#include <random>

#include "base/json.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim {
namespace {

ValuesByName read_back(const ValuesByName& folded) {
  const Json document = folded;
  return read_members(JsonReader(document, {"b.json", ""}));
}

struct Names {
  ValuesByName members;
  ValuesByName folded;
};

TEST_CASE("names that differ in numbers are one line, which is read back to them") {
  const Names cases[] = {
      {{{"w", "P(x)"}}, {{"w", "P(x)"}}},
      {{{"l/0/w", "a"}, {"l/1/w", "a"}, {"l/2/w", "a"}, {"l/10/w", "a"}, {"l/11/w", "a"}},
       {{"l/{0-2,10-11}/w", "a"}}},
      // One that leaves the others, and what remains has a hole.
      {{{"l/0/w", "a"}, {"l/1/w", "b"}, {"l/2/w", "a"}}, {{"l/{0,2}/w", "a"}, {"l/1/w", "b"}}},
      // Two numbers: a product, and what is none.
      {{{"l0/e0", "a"}, {"l0/e1", "a"}, {"l1/e0", "a"}, {"l1/e1", "a"}}, {{"l{0-1}/e{0-1}", "a"}}},
      {{{"l0/e0", "a"}, {"l0/e1", "a"}, {"l1/e0", "a"}}, {{"l0/e{0-1}", "a"}, {"l1/e0", "a"}}},
      // Not as numbers are printed, or too long for one.
      {{{"l/00", "a"}, {"l/01", "a"}}, {{"l/00", "a"}, {"l/01", "a"}}},
      {{{"1234567890", "a"}, {"1234567891", "a"}}, {{"1234567890", "a"}, {"1234567891", "a"}}},
      // Braces of a layer that is stored once.
      {{{"h.{}.w", "a"}, {"{x}", "a"}, {"{", "a"}}, {{"h.{}.w", "a"}, {"{x}", "a"}, {"{", "a"}}},
      // Braces that would be read as numbers, or as the sign for such a brace.
      {{{"a{0-7}b", "a"}}, {{"a{{}0-7}b", "a"}}},
      {{{"w{5}", "a"}, {"w{6}", "a"}}, {{"w{{}{5-6}}", "a"}}},
      {{{"{{}0-7}", "a"}}, {{"{{}{}0-7}", "a"}}},
      // Eight numbers of a name are folded.
      {{{"0.0.0.0.0.0.0.1.1", "a"}, {"0.0.0.0.0.0.0.2.1", "a"}}, {{"0.0.0.0.0.0.0.{1-2}.1", "a"}}},
      {{{"0.0.0.0.0.0.0.0.1", "a"}, {"0.0.0.0.0.0.0.0.2", "a"}},
       {{"0.0.0.0.0.0.0.0.1", "a"}, {"0.0.0.0.0.0.0.0.2", "a"}}},
  };
  for (const Names& names : cases) {
    CAPTURE(names.members);
    CHECK(fold_members(names.members) == names.folded);
    CHECK(read_back(names.folded) == names.members);
  }
}

TEST_CASE("whatever names are made of is read back") {
  const std::vector<std::string> parts = {"{", "}", "{}", "0", "1", "2", "07", "-", ",", "a"};
  std::mt19937 random(1);
  const auto below = [&](std::size_t count) { return random() % count; };
  for (int round = 0; round < 2000; ++round) {
    ValuesByName members;
    const std::size_t names = 1 + below(6);
    for (std::size_t i = 0; i < names; ++i) {
      std::string name;
      const std::size_t length = below(8);
      for (std::size_t k = 0; k < length; ++k) name += parts[below(parts.size())];
      members[name] = below(3) == 0 ? "b" : "a";
    }
    const ValuesByName folded = fold_members(members);
    CAPTURE(members, folded);
    REQUIRE(read_back(folded) == members);
  }
}

TEST_CASE("lines that stand for too much, or for the same twice") {
  CHECK(testing::mistake_of([] {
          return read_back({{"w{0-999999999}", "a"}});
        }) == "b.json: /w{0-999999999}: stands for more than 1,000,000 names");
  CHECK(testing::mistake_of([] {
          return read_back({{"w{0-999}{0-999}{0-1}", "a"}});
        }) == "b.json: /w{0-999}{0-999}{0-1}: stands for more than 1,000,000 names");
  // 2^14 names of a kilobyte, each more than half of it; and as much in two lines.
  std::string name(800, 'w');
  for (int i = 0; i < 14; ++i) name += "_______________________{0,2}";
  CHECK(testing::mistake_of([&] {
          return read_back({{name, "a"}});
        }) == "b.json: /" + name + ": stands for names of more than 16 MiB");
  const std::string half = name.substr(0, name.size() - 28);
  CHECK_NOTHROW(read_back({{half + "x", "a"}}));
  CHECK(testing::mistake_of([&] {
          return read_back({{half + "x", "a"}, {half + "y", "a"}});
        }) == "b.json: /" + half + "y: names of more than 16 MiB in all");
  CHECK(testing::mistake_of([] {
          return read_back({{"w{0-2}", "a"}, {"w1", "b"}});
        }) == "b.json: /w{0-2}: is for a name that another line has, too");
}

}  // namespace
}  // namespace shardsim
