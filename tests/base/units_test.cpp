#include "base/units.hpp"

#include <catch2/catch.hpp>
#include <type_traits>

using namespace shardsim;  // NOLINT(google-build-using-namespace)

TEST_CASE("quantities of different units do not mix") {
  STATIC_REQUIRE(!std::is_convertible_v<Seconds, Flops>);
  STATIC_REQUIRE(!std::is_convertible_v<double, Seconds>);
  STATIC_REQUIRE(!std::is_convertible_v<std::int64_t, Bytes>);
  STATIC_REQUIRE(!std::is_same_v<Bandwidth, FlopRate>);
}

// 1,800 bytes at 450 bytes per second are 4 s; 6 operations at 3 per second are 2 s.
TEST_CASE("a size over a bandwidth and operations over a rate are durations") {
  CHECK(Bytes(1800) / Bandwidth(450) == Seconds(4));
  CHECK(Flops(6) / FlopRate(3) == Seconds(2));
}

TEST_CASE("simulated time is rounded up, to whole picoseconds") {
  CHECK(round_up(Seconds(0)) == SimTime(0));
  CHECK(round_up(Seconds(1e-12)) == SimTime(1));
  CHECK(round_up(Seconds(1.25e-12)) == SimTime(2));
  CHECK(round_up(Seconds(1)) == SimTime(1'000'000'000'000));
  CHECK(to_seconds(SimTime(2'500'000'000'000)) == Seconds(2.5));
}

TEST_CASE("ceil_div is the smallest number of parts that hold all") {
  CHECK(ceil_div(0, 8) == 0);
  CHECK(ceil_div(1, 8) == 1);
  CHECK(ceil_div(8, 8) == 1);
  CHECK(ceil_div(9, 8) == 2);
}

TEST_CASE("quantities add, scale and compare as their counts") {
  Bytes sum(3);
  sum += Bytes(4);
  sum -= Bytes(1);
  CHECK(sum == Bytes(6));
  CHECK(2 * Bytes(3) + Bytes(1) == Bytes(7));
  CHECK(Bytes(7) / 2 == Bytes(3));
  CHECK(Bytes(3) < Bytes(4));
}
