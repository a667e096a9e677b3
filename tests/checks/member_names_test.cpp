#include "checks/member_names.hpp"

#include <catch2/catch.hpp>

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
  };
  for (const Names& names : cases) {
    CAPTURE(names.members);
    CHECK(fold_members(names.members) == names.folded);
    CHECK(read_back(names.folded) == names.members);
  }
}

TEST_CASE("lines that stand for too much, or for the same twice") {
  CHECK(testing::mistake_of([] {
          return read_back({{"w{0-999999999}", "a"}});
        }) == "b.json: /w{0-999999999}: stands for more than 1,000,000 names");
  CHECK(testing::mistake_of([] {
          return read_back({{"w{0-999}{0-999}{0-1}", "a"}});
        }) == "b.json: /w{0-999}{0-999}{0-1}: stands for more than 1,000,000 names");
  CHECK(testing::mistake_of([] {
          return read_back({{"w{0-2}", "a"}, {"w1", "b"}});
        }) == "b.json: /w{0-2}: is for a name that another line has, too");
}

}  // namespace
}  // namespace shardsim
