#include "validate/exchange/thread_exchange.hpp"

#include <catch2/catch.hpp>
#include <mutex>

#include "base/error.hpp"

namespace shardsim {

TEST_CASE("threads gather what each gives, round after round") {
  constexpr std::int64_t ranks = 5;
  constexpr int rounds = 200;
  std::vector<int> wrong(ranks, 0);
  run_in_threads(ranks, [&](Exchange& exchange) {
    for (int round = 0; round < rounds; ++round) {
      const auto word = [&](std::int64_t rank) {
        return rank == 2 ? "" : std::to_string(rank * 1000 + round);
      };
      const auto all = exchange.all_gather(word(exchange.rank()));
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        if (all.size() != ranks || all[index] != word(rank)) {
          ++wrong[static_cast<std::size_t>(exchange.rank())];
        }
      }
    }
  });
  CHECK(wrong == std::vector<int>(ranks, 0));
}

TEST_CASE("who waits for a thread that has failed is told") {
  std::mutex mutex;
  std::vector<std::string> errors;
  const auto work = [&](Exchange& exchange) {
    if (exchange.rank() == 1) throw InputError({"a.json", ""}, "wrong");
    try {
      (void)exchange.all_gather("here");
    } catch (const CannotRunError& error) {
      const std::lock_guard lock(mutex);
      errors.emplace_back(error.what());
      CHECK_THROWS_AS(exchange.check(), CannotRunError);
    }
  };
  CHECK_THROWS_WITH(run_in_threads(3, work), "a.json: wrong");
  CHECK(errors == std::vector<std::string>{"rank 1 has failed", "rank 1 has failed"});
}

}  // namespace shardsim
