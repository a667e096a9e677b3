// Ranks on this machine's loopback: threads, and processes where one is to die. Their order in time
// is open everywhere; patience is a minute, but for those that wait for who never comes.
#include "validate/exchange/tcp_exchange.hpp"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "tcp_job.hpp"
#include "validate/exchange/tcp_messages.hpp"

namespace shardsim {
namespace {

const Seconds short_patience{3};  // in which every rank comes that does

using Answers = std::vector<std::string>;

std::string greeting_text(const TcpGreeting& greeting) {
  const TcpGreetingBytes bytes = write_greeting(greeting);
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("all give to all, whatever the lengths") {
  for (const std::int64_t size : {1, 2, 5}) {
    const LoopbackPort port;
    const Answers answers = run_job(all_ranks(port, size), long_patience, [&](Exchange& exchange) {
      // Round r: rank k gives r * k times its letter, in round 0 nothing.
      for (int round = 0; round < 4; ++round) {
        const auto given = [&](std::int64_t rank) {
          return std::string(static_cast<std::size_t>(round * rank), static_cast<char>('a' + rank));
        };
        const auto all = exchange.all_gather(given(exchange.rank()));
        if (static_cast<std::int64_t>(all.size()) != exchange.size()) return std::string("count");
        for (std::int64_t rank = 0; rank < exchange.size(); ++rank) {
          if (all[static_cast<std::size_t>(rank)] != given(rank)) return std::string("given");
        }
        exchange.check();
      }
      return std::to_string(exchange.rank()) + " of " + std::to_string(exchange.size());
    });
    for (std::int64_t rank = 0; rank < size; ++rank) {
      CHECK(answers[static_cast<std::size_t>(rank)] ==
            std::to_string(rank) + " of " + std::to_string(size));
    }
  }
}

TEST_CASE("one process needs no network") {
  const auto alone = make_tcp_exchange({.size = 1}, short_patience);
  CHECK(alone->size() == 1);
  CHECK(alone->all_gather("mine") == Answers{"mine"});
  CHECK_NOTHROW(alone->check());
}

TEST_CASE("what is longer than sockets hold arrives") {
  const LoopbackPort port;
  const Answers answers = run_job(all_ranks(port, 3), long_patience, [](Exchange& exchange) {
    const auto mine = std::string(std::size_t{4} << 20, static_cast<char>('0' + exchange.rank()));
    std::string ends;
    for (const std::string& part : exchange.all_gather(mine)) {
      ends += part.front();
      ends += part.back();
      ends += std::to_string(part.size() >> 20);
    }
    return ends;
  });
  CHECK(answers == Answers(3, "004114224"));
}

TEST_CASE("more than 64 MiB are refused before they are sent") {
  const LoopbackPort port;
  const Answers answers = run_job(all_ranks(port, 2), long_patience, [](Exchange& exchange) {
    const std::size_t bytes = exchange.rank() == 1 ? (std::size_t{65} << 20) : 1;
    return exchange.all_gather(std::string(bytes, 'x')).front();
  });
  CHECK(answers == Answers(2, "error: rank 1 of 2 gives 65.0 MiB to all, more than 64.0 MiB"));
}

TEST_CASE("rank 0 may come last") {
  const LoopbackPort port;
  std::atomic<bool> begun = false;
  std::string first;
  std::thread early([&] {
    begun = true;
    first = run_rank(port.launch(1, 2), long_patience,
                     [](Exchange& exchange) { return exchange.all_gather("b").front(); });
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::string last = run_rank(port.launch(0, 2), long_patience, [](Exchange& exchange) {
    return exchange.all_gather("a").back();
  });
  early.join();
  CHECK(first == "a");
  CHECK(last == "b");
}

TEST_CASE("who does not come is named everywhere") {
  const LoopbackPort port;
  const Answers answers = run_job({port.launch(0, 5), port.launch(1, 5), port.launch(3, 5)},
                                  short_patience, [](Exchange&) { return std::string("came"); });
  CHECK(answers ==
        Answers(3, "error: ranks 2 and 4 of 5 did not come within 3 s to " + port.address()));
}

TEST_CASE("a rank that cannot reach rank 0 says where it tried") {
  const LoopbackPort port;
  CHECK(run_rank(port.launch(1, 2), Seconds(0.5), [](Exchange&) { return std::string("came"); }) ==
        "error: rank 1 of 2 could not reach rank 0 at " + port.address() +
            " within 0.5 s: Connection refused; if it is elsewhere: --rendezvous HOST:PORT");
}

TEST_CASE("another program where rank 0 is to be") {
  const LoopbackPort port;
  port.listen();
  std::thread other([&] {
    while (port.answer("HTTP/1.1 400 Bad Request\r\n\r\n")) continue;
  });
  const std::string answer =
      run_rank(port.launch(1, 2), Seconds(0.5), [](Exchange&) { return std::string("came"); });
  port.hang_up();
  other.join();
  CHECK_THAT(answer, Catch::StartsWith("error: rank 1 of 2 could not reach rank 0 at " +
                                       port.address() + " within 0.5 s: "));
}

TEST_CASE("a port that is in use") {
  const LoopbackPort port;
  port.listen();
  CHECK(run_rank(port.launch(0, 2), long_patience, [](Exchange&) { return std::string("came"); }) ==
        "error: rank 0 cannot listen at " + port.address() +
            ": Address already in use; elsewhere: --rendezvous HOST:PORT");
  // On all interfaces as well.
  Launch launch = port.launch(0, 2);
  launch.host = "0.0.0.0";
  CHECK(run_rank(launch, long_patience, [](Exchange&) { return std::string("came"); }) ==
        "error: rank 0 cannot listen at 0.0.0.0:" + std::to_string(port.number()) +
            ": Address already in use; elsewhere: --rendezvous HOST:PORT");
}

TEST_CASE("a port that only root may have") {
  if (::geteuid() == 0) return;
  const LoopbackPort port;
  Launch launch = port.launch(0, 2);
  launch.port = 1;
  CHECK(run_rank(launch, long_patience, [](Exchange&) { return std::string("came"); }) ==
        "error: rank 0 cannot listen at 127.0.0.1:1: Permission denied; elsewhere: --rendezvous "
        "HOST:PORT");
}

// Two dots in a row are in no name (RFC 1035, 2.3.1): no name server is asked.
TEST_CASE("a host that is not known") {
  const LoopbackPort port;
  for (const std::int64_t rank : {0, 1}) {
    Launch launch = port.launch(rank, 2);
    launch.host = "node..1";
    CHECK(run_rank(launch, long_patience, [](Exchange&) { return std::string("came"); }) ==
          "error: rank " + std::to_string(rank) +
              " of 2 does not know the host \"node..1\", where rank 0 is to listen; another: "
              "--rendezvous HOST:PORT");
  }
}

TEST_CASE("on all interfaces loopback is one") {
  const LoopbackPort port;
  std::vector<Launch> launches = all_ranks(port, 2);
  launches[0].host = "0.0.0.0";
  CHECK(run_job(launches, long_patience, [](Exchange& exchange) {
          return exchange.all_gather(exchange.rank() == 0 ? "a" : "b").back();
        }) == Answers(2, "b"));
}

TEST_CASE("strangers are dropped and wait in nobody's way") {
  const LoopbackPort port;
  std::string first;
  std::thread hub([&] {
    first = run_rank(port.launch(0, 2), long_patience,
                     [](Exchange& exchange) { return exchange.all_gather("a").back(); });
  });
  std::string heard;
  std::string last;
  {
    const Stranger silent(port);
    const Stranger halting(port);
    halting.say("shards");
    const Stranger browser(port);
    browser.say("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    { const Stranger brief(port); }
    heard = browser.hear_all();
    last = run_rank(port.launch(1, 2), long_patience,
                    [](Exchange& exchange) { return exchange.all_gather("b").front(); });
  }
  hub.join();
  CHECK(heard.empty());
  CHECK(first == "b");
  CHECK(last == "a");
}

TEST_CASE("a size that is not rank 0's is told at both ends") {
  const LoopbackPort port;
  CHECK(run_job({port.launch(0, 2), port.launch(1, 3)}, long_patience, [](Exchange&) {
          return std::string("came");
        }) == Answers(2, "error: rank 1 at 127.0.0.1 was started as one of 3, rank 0 as one of 2"));
}

TEST_CASE("a rank that comes twice is told at all ends") {
  const LoopbackPort port;
  CHECK(run_job({port.launch(0, 3), port.launch(1, 3), port.launch(1, 3)}, long_patience,
                [](Exchange&) { return std::string("came"); }) ==
        Answers(3, "error: two processes say they are rank 1 of 3: at 127.0.0.1 and at 127.0.0.1"));
}

// What rank 0 of two answers to one that greets it so and then says so.
std::string answer_to(const TcpGreeting& greeting, const std::string& bytes, std::string* heard) {
  const LoopbackPort port;
  std::string answer;
  std::thread hub([&] {
    answer = run_rank(port.launch(0, 2), long_patience,
                      [](Exchange& exchange) { return exchange.all_gather("a").back(); });
  });
  {
    const Stranger other(port);
    other.say(greeting_text(greeting) + bytes);
    *heard = other.hear_all();
  }
  hub.join();
  return answer;
}

TEST_CASE("another version of the program is told so") {
  std::string heard;
  const std::string reason =
      "a process at 127.0.0.1 speaks version 2 of the exchange, rank 0 version 1: all need the "
      "same shardsim";
  CHECK(answer_to({.version = 2, .rank = 1, .size = 2}, "", &heard) == "error: " + reason);
  CHECK(heard == write_message(TcpMessage::failure, reason));
}

TEST_CASE("ranks that there are not") {
  std::string heard;
  CHECK(answer_to({.rank = 2, .size = 2}, "", &heard) ==
        "error: a process at 127.0.0.1 says it is rank 2 of 2");
  CHECK(answer_to({.rank = 0, .size = 2}, "", &heard) ==
        "error: two processes say they are rank 0 of 2: here and at 127.0.0.1");
}

TEST_CASE("a broken process ends all, and no memory is taken for what it claims") {
  const std::string kind(1, static_cast<char>(TcpMessage::part));
  std::string heard;
  CHECK(answer_to({.rank = 1, .size = 2}, kind + std::string(8, '\x7f'), &heard) ==
        "error: rank 1 of 2 at 127.0.0.1 is gone (it says what shardsim does not)");
  CHECK(answer_to({.rank = 1, .size = 2}, write_message(TcpMessage::ready, ""), &heard) ==
        "error: rank 1 of 2 at 127.0.0.1 says what it cannot mean");
}

TEST_CASE("who ends as it should is missed only where it is needed") {
  const LoopbackPort port;
  std::atomic<bool> ended = false;
  std::string error;
  std::thread hub([&] {
    error = run_rank(port.launch(0, 2), long_patience, [&](Exchange& exchange) {
      static_cast<void>(exchange.all_gather("a"));
      while (!ended) std::this_thread::yield();
      exchange.check();
      return failure_of_gather(exchange);
    });
  });
  run_rank(port.launch(1, 2), long_patience,
           [](Exchange& exchange) { return exchange.all_gather("b").front(); });
  ended = true;
  hub.join();
  CHECK(error == "rank 1 of 2 at 127.0.0.1 has ended, and others go on");
}

TEST_CASE("rank 0 ends as it should") {
  const LoopbackPort port;
  std::atomic<bool> ended = false;
  std::string error;
  std::thread spoke([&] {
    error = run_rank(port.launch(1, 2), long_patience, [&](Exchange& exchange) {
      static_cast<void>(exchange.all_gather("b"));
      while (!ended) std::this_thread::yield();
      exchange.check();
      return failure_of_gather(exchange);
    });
  });
  run_rank(port.launch(0, 2), long_patience,
           [](Exchange& exchange) { return exchange.all_gather("a").front(); });
  ended = true;
  spoke.join();
  CHECK(error == "rank 0 of 2 at " + port.address() + " has ended, and others go on");
}

TEST_CASE("who is there and gives nothing is named") {
  const LoopbackPort port;
  const Answers answers = run_job(all_ranks(port, 3), short_patience, [](Exchange& exchange) {
    return exchange.rank() == 2 ? wait_for_failure(exchange) : failure_of_gather(exchange);
  });
  CHECK(answers ==
        Answers(3, "rank 0 waited in vain for 3 s for what rank 2 of 3 had to give to all"));
}

// Rank 2 of 3 is a process; ranks 0 and 1 are threads of this one, and see it die.
Answers see_die(const Rank& see) {
  const LoopbackPort port;
  RankProcess third(port.launch(2, 3), [](Exchange& exchange) {
    static_cast<void>(exchange.all_gather("c"));
    return wait_for_failure(exchange);
  });
  return run_job({port.launch(0, 3), port.launch(1, 3)}, long_patience, [&](Exchange& exchange) {
    static_cast<void>(exchange.all_gather("x"));
    if (exchange.rank() == 1) third.kill();
    return see(exchange);
  });
}

TEST_CASE("a killed process is seen by check() of all others") {
  for (const std::string& seen : see_die(wait_for_failure)) {
    CHECK_THAT(seen, Catch::StartsWith("rank 2 of 3 at 127.0.0.1 is gone ("));
  }
}

TEST_CASE("a killed process is seen by all_gather() of all others") {
  for (const std::string& seen : see_die(failure_of_gather)) {
    CHECK_THAT(seen, Catch::StartsWith("rank 2 of 3 at 127.0.0.1 is gone ("));
  }
}

TEST_CASE("a killed rank 0 is seen by all others") {
  const LoopbackPort port;
  RankProcess hub(port.launch(0, 3), [](Exchange& exchange) {
    static_cast<void>(exchange.all_gather("a"));
    return wait_for_failure(exchange);
  });
  const Answers answers =
      run_job({port.launch(1, 3), port.launch(2, 3)}, long_patience, [&](Exchange& exchange) {
        static_cast<void>(exchange.all_gather("x"));
        if (exchange.rank() == 2) hub.kill();
        return exchange.rank() == 1 ? wait_for_failure(exchange) : failure_of_gather(exchange);
      });
  for (const std::string& seen : answers) {
    CHECK_THAT(seen, Catch::StartsWith("rank 0 of 3 at " + port.address() + " is gone ("));
  }
}

TEST_CASE("a process that ends all is named with its exit code") {
  for (const std::int64_t rank : {0, 1}) {
    const LoopbackPort port;
    RankProcess ending(port.launch(rank, 3), [](Exchange& exchange) {
      static_cast<void>(exchange.all_gather("x"));
      exchange.abort(7);
      return std::string();
    });
    std::vector<Launch> others = all_ranks(port, 3);
    others.erase(others.begin() + rank);
    const Answers answers = run_job(others, long_patience, [](Exchange& exchange) {
      static_cast<void>(exchange.all_gather("x"));
      return wait_for_failure(exchange);
    });
    CHECK(answers == Answers(2, "rank " + std::to_string(rank) +
                                    " of 3 ended all processes with exit code 7"));
    CHECK(ending.wait() == 7);
  }
}

}  // namespace
}  // namespace shardsim
