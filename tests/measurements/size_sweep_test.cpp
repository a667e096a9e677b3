#include "measurements/size_sweep.hpp"
#include "tests/base/mistake.hpp"

#include <catch2/catch.hpp>

namespace shardsim::size_sweep_test {
namespace {

using Catch::Equals;

std::vector<std::int64_t> sizes(const std::string& text) {
  std::vector<std::int64_t> counts;
  for (const Bytes size : parse_sizes(text, {"test", ""})) counts.push_back(size.count());
  return counts;
}

std::string mistake(const std::string& text) {
  return testing::mistake_of([&] { return parse_sizes(text, {"test", ""}); });
}

TEST_CASE("one size, or several in the order given") {
  CHECK(sizes("64MiB") == std::vector<std::int64_t>{64 * MiB});
  CHECK(sizes("64MiB,1 KiB,8B") == std::vector<std::int64_t>{64 * MiB, KiB, 8});
  // nccl-tests: -b 8 -e 128M; K, M, G and T are powers of 1024 there.
  CHECK(sizes("64M,1G,8K,1T") == std::vector<std::int64_t>{64 * MiB, GiB, 8 * KiB, 1024 * GiB});
  CHECK(sizes("1MB") == std::vector<std::int64_t>{1'000'000});
  CHECK(sizes("1KiB:4KiB:x2,1MiB") == std::vector<std::int64_t>{KiB, 2 * KiB, 4 * KiB, MiB});
}

TEST_CASE("a range multiplies or adds, and keeps within its end") {
  const auto doubled = sizes("1KiB:8GiB:x2");  // 2^10 to 2^33
  REQUIRE(doubled.size() == 24);
  CHECK(doubled.front() == KiB);
  CHECK(doubled.back() == 8 * GiB);
  CHECK(sizes("1MiB:16MiB:+5MiB") == std::vector<std::int64_t>{MiB, 6 * MiB, 11 * MiB, 16 * MiB});
  CHECK(sizes("1MiB:15MiB:+5MiB") == std::vector<std::int64_t>{MiB, 6 * MiB, 11 * MiB});
  CHECK(sizes("3B:100B:x10") == std::vector<std::int64_t>{3, 30});
  CHECK(sizes("1KiB:1KiB:x2") == std::vector<std::int64_t>{KiB});
  CHECK(sizes("1KiB:2KiB:+1TiB") == std::vector<std::int64_t>{KiB});
}

TEST_CASE("the largest size can be had, and no sum or product goes beyond it") {
  CHECK(sizes("1048576 TiB") == std::vector<std::int64_t>{largest_size});  // 2^20 * 2^40
  CHECK(sizes("1B:1048576TiB:x2").size() == 61);
  CHECK(sizes("524289TiB:1048576TiB:x1152921504606846976").size() == 1);
  CHECK(sizes("1048575TiB:1048576TiB:+1048576TiB").size() == 1);
}

TEST_CASE("what is no sweep of sizes says what is wrong") {
  CHECK_THAT(mistake("64"), Equals("test: \"64\" has no unit, expected for example \"80 GB\""));
  CHECK_THAT(mistake("0B"), Equals("test: \"0B\" is less than a byte"));
  CHECK_THAT(mistake("-1KiB"), Equals("test: \"-1KiB\" is not a possible size"));
  CHECK_THAT(mistake("1MiB,"), Equals("test: \"\" is not a size, expected for example \"80 GB\""));
  CHECK_THAT(mistake("1KIB"), Equals("test: unknown unit \"KIB\" of a size, did you mean \"KB\"?"));
  CHECK_THAT(mistake("1048577TiB"), Equals("test: \"1048577TiB\" is more than 2^60 bytes"));
  CHECK_THAT(mistake("8GiB:1KiB:x2"), Equals("test: \"8GiB:1KiB:x2\" begins beyond its end"));
  CHECK_THAT(mistake("1KiB:8GiB"),
             Equals("test: \"1KiB:8GiB\" is no range of sizes, expected START:END:xFACTOR or "
                    "START:END:+STEP, for example \"1KiB:8GiB:x2\""));
  CHECK_THAT(mistake("1KiB:8GiB:2"),
             Equals("test: \"2\" is no step from size to size, expected for example \"x2\" or "
                    "\"+1MiB\""));
  CHECK_THAT(mistake("1KiB:8GiB:x1.5"),
             Equals("test: \"x1.5\" is no step from size to size, expected for example \"x2\" or "
                    "\"+1MiB\""));
  CHECK_THAT(mistake("1KiB:8GiB:x1"), Equals("test: \"x1\" never reaches the end; at least x2"));
  CHECK_THAT(mistake("1KiB:8GiB:x-2"), Equals("test: \"x-2\" never reaches the end; at least x2"));
  CHECK_THAT(mistake("1KiB:8GiB:x99999999999999999999"),
             Equals("test: \"x99999999999999999999\" is more than 2^60 times"));
  CHECK_THAT(mistake("1KiB:8GiB:+0B"), Equals("test: \"0B\" is less than a byte"));
  CHECK_THAT(mistake("1B:1GiB:+1B"), Equals("test: \"1B:1GiB:+1B\" has more than 10,000 sizes"));
}

}  // namespace
}  // namespace shardsim::size_sweep_test
