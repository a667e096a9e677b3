// A spec survives its text and its JSON.
#include "sharding/partition_spec.hpp"

#include "base/json.hpp"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace shardsim::partition_spec_test {
namespace {

const Place place{"test", ""};

SpecEntry arbitrary_entry() {
  SpecEntry entry;
  entry.unconstrained = *rc::gen::inRange(0, 4) == 0;
  if (entry.unconstrained) return entry;
  entry.axes = *rc::gen::resize(
      3, rc::gen::container<std::vector<std::string>>(
             rc::gen::element<std::string>("data", "fsdp", "model", "x:(2)4", "tp_1")));
  return entry;
}

PartitionSpec arbitrary_spec() {
  PartitionSpec spec(*rc::gen::inRange<std::size_t>(0, 5));
  for (SpecEntry& entry : spec) entry = arbitrary_entry();
  return spec;
}

TEST_CASE("Parsing what is printed gives the spec back") {
  CHECK(rc::check([] {
    const PartitionSpec spec = arbitrary_spec();
    RC_ASSERT(parse_partition_spec(to_string(spec), place) == spec);
  }));
}

TEST_CASE("Reading the JSON of a spec gives the spec back") {
  CHECK(rc::check([] {
    const PartitionSpec spec = arbitrary_spec();
    const Json json = to_json(spec);
    RC_ASSERT(read_partition_spec({json, place}) == spec);
  }));
}

}  // namespace
}  // namespace shardsim::partition_spec_test
