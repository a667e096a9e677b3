#include "base/for_each_index.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

using namespace shardsim;

TEST_CASE("Every index is there once") {
  constexpr std::size_t more_than_threads = 1000;
  std::vector<int> calls(more_than_threads);
  for_each_index(calls.size(), [&](std::size_t i) { ++calls[i]; });
  CHECK(calls == std::vector<int>(more_than_threads, 1));
  for_each_index(0, [](std::size_t) { FAIL("there is none"); });
}

TEST_CASE("What the smallest index throws is thrown, when all are done") {
  std::vector<int> calls(50);
  const auto some_throw = [&](std::size_t i) {
    ++calls[i];
    if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
  };
  CHECK_THROWS_WITH(for_each_index(calls.size(), some_throw), "7");
  CHECK(calls == std::vector<int>(50, 1));
}
