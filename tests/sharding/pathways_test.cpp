// What the golden cases leave open: which check comes first when several would refuse, and laws.
// Expectations follow from the numbered list in pathways.hpp.
#include "sharding/pathways.hpp"

#include <catch2/catch.hpp>

#include "sharding/rule_error.hpp"

using namespace shardsim;

namespace {

const Place nowhere;

PathwaysSharding on(std::vector<MeshAxis> axes, const std::string& spec) {
  return {Mesh(std::move(axes)), parse_partition_spec(spec, nowhere)};
}

std::string refusal(const PathwaysSharding& source, const PathwaysSharding& target) {
  try {
    static_cast<void>(find_intermediate_sharding(source, target, nowhere));
  } catch (const RuleError& error) {
    return error.what();
  }
  return "";
}

bool begins(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

}  // namespace

TEST_CASE("pathways: an earlier check hides a later one") {
  const std::string none = "NoIntermediateShardingError: ";
  PathwaysSharding unnamed = on({{"a", 8}}, "a");
  unnamed.is_named = false;
  // 1 before 2: another class and other lengths.
  CHECK(begins(refusal(unnamed, on({{"b", 2}}, "b, None")), none + "only NamedShardings"));
  // 2 before 3: lengths before UNCONSTRAINED; then UNCONSTRAINED before any arithmetic.
  const PathwaysSharding open = on({{"b", 3}}, "UNCONSTRAINED, None");
  CHECK(begins(refusal(on({{"a", 8}}, "a"), open), none + "P(a) and P(UNCONSTRAINED, None)"));
  CHECK(begins(refusal(on({{"a", 8}}, "a, None"), open), "ValueError: "));
  // 4 before 5: 4 shards to 8 are too few and do not divide.
  CHECK(begins(refusal(on({{"a", 4}}, "a"), on({{"b", 8}}, "b")), none + "the target's 8"));
  // 5 before 6: 6 shards to 9 are too few and no multiple.
  CHECK(begins(refusal(on({{"a", 6}}, "a, None"), on({{"b", 3}, {"c", 3}}, "b, c")),
               none + "the source has 6"));
  // 6 before 7: 12 shards are no multiple of 9, and gcd(6, 3) is 3.
  CHECK(begins(refusal(on({{"a", 6}, {"d", 2}}, "a, d"), on({{"b", 3}, {"c", 3}}, "b, c")),
               none + "the target's 9 shards do not divide the source's 12"));
  // 7 before 8: a tuple is no candidate, but gcd(8, 4) is asked first.
  CHECK(begins(refusal(on({{"a", 2}, {"b", 4}}, "(a, b)"), on({{"c", 4}}, "c")),
               "NoIntermediateShardingNeededError: "));
}

TEST_CASE("pathways: empty specs") {
  // Both empty: one shard each, not more than the target's.
  CHECK(begins(refusal(on({{"a", 4}}, ""), on({{"b", 2}}, "")),
               "NoIntermediateShardingError: the source has 1 shards"));
}

TEST_CASE("pathways: a mesh that cannot be") {
  // 7 shards to 5: gcd 1, but 5 does not divide 7 (check 9): 7 / 5 = 1 replica.
  CHECK(begins(refusal(on({{"a", 7}, {"b", 10}}, "a, b"), on({{"c", 5}}, "c, None")),
               "ValueError: 70 devices do not make a mesh of 1x10x5x1"));
  CHECK(begins(refusal(on({{"a", 4}, {"a_intermediate_split", 2}}, "a"), on({{"b", 1}}, "b")),
               "ValueError: the intermediate mesh has two axes"));
  CHECK(begins(refusal(on({{"a", 4}}, "x"), on({{"b", 1}}, "b")), "ValueError: "));
  CHECK(begins(refusal(on({{"a", 4}}, "a, a"), on({{"b", 1}}, "b")), "DuplicateSpecError: "));
}

TEST_CASE("pathways: replica 0 is the first block of devices, a replica axis being most major") {
  const auto found =
      find_intermediate_sharding(on({{"dp", 2}, {"ep", 4}, {"tp", 3}}, "ep, None, tp"),
                                 on({{"x", 2}}, "None, x, None"), nowhere);
  CHECK(first_replica(found) == std::vector<std::int64_t>{0, 1});
  CHECK(found.mesh.devices() == 24);
}

TEST_CASE("pathways: sections") {
  // Python: 4 % -2 == 0, and range(-2, 5, -2) is empty; 4 % 0 raises.
  CHECK(section_ends(4, -2, nowhere).empty());
  CHECK_THROWS_WITH(section_ends(4, 0, nowhere), Catch::StartsWith("ZeroDivisionError: "));
  CHECK(section_ends(4, std::vector<std::int64_t>{}, nowhere) == std::vector<std::int64_t>{4});
  CHECK(section_ends(5, {2, 3}, nowhere) == std::vector<std::int64_t>{2, 3, 5});
  CHECK_THROWS_WITH(section_ends(5, {3, 3}, nowhere), Catch::StartsWith("ValueError: "));
}
