// Sentences are written here from the fixture's figures and the wording in verdict.hpp.
#include "reports/verdict.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace shardsim {
namespace {

using fixture::gib;
using fixture::ms;

TEST_CASE("The memory verdict says what is missing and what made the peak") {
  CHECK(memory_verdict(figures_of(fixture::fsdp())) == "fits: 7.0 GiB of 10.0 GiB");
  CHECK(memory_verdict(figures_of(fixture::dp())) ==
        "does not fit: needs 12.0 GiB, 2.0 GiB more than the 10.0 GiB of one Toy 10 GiB: "
        "6.0 GiB optimizer, 3.0 GiB activations, 2.0 GiB parameters, 1.0 GiB gradients");
}

TEST_CASE("A shorter step that does not fit is not chosen, but mentioned") {
  const Choice choice = choose(std::vector{fixture::dp(), fixture::fsdp()});
  CHECK(choice.best == 1);
  // Exposed: 0.4 s of 1.25 s.
  CHECK(choice.why ==
        "fsdp: the only one of 2 that fits: 1.250 s; it exposes 32.0 % of the step as "
        "communication; dp would take 1.000 s but does not fit");
}

TEST_CASE("The best is compared with the second") {
  Figures slow = figures_of(fixture::fsdp());
  slow.name = "slow";
  slow.step = SimTime(1'562'500'000'000);  // 1.25 / 1.5625 = 0.8; 0.4 / 1.5625 = 0.256
  const Choice choice = choose(std::vector{slow, figures_of(fixture::fsdp())});
  CHECK(choice.best == 1);
  CHECK(choice.why ==
        "fsdp: shortest step among the 2 that fit: 1.250 s, 20.0 % shorter than slow (1.562 s); "
        "it exposes 32.0 % of the step as communication, slow 25.6 %");
}

TEST_CASE("Equal steps go to the smaller peak, then to the first listed") {
  const Figures first = figures_of(fixture::fsdp());
  Figures second = first;
  second.name = "second";
  CHECK(choose(std::vector{first, second}).best == 0);
  second.peak = gib(6);
  CHECK(choose(std::vector{first, second}).best == 1);
}

TEST_CASE("Where nothing fits, the nearest is named") {
  Figures nearer = figures_of(fixture::dp());
  nearer.name = "nearer";
  nearer.peak = gib(11);
  const Choice choice = choose(std::vector{figures_of(fixture::dp()), nearer});
  CHECK(choice.best == -1);
  CHECK(choice.why ==
        "nothing fits: nearest is nearer, which needs 11.0 GiB, 1.0 GiB more than the 10.0 GiB of "
        "one Toy 10 GiB");
}

TEST_CASE("Nothing and one are no comparison") {
  CHECK(choose(std::vector<Figures>{}).best == -1);
  const Choice one = choose(std::vector{fixture::fsdp()});
  CHECK(one.best == 0);
  CHECK(one.why.find("fsdp: the only configuration, and it fits") == 0);
}

TEST_CASE("Different work per step is pointed out") {
  Figures other = figures_of(fixture::fsdp());
  other.tokens_per_step = 4000;
  const Choice choice = choose(std::vector{figures_of(fixture::fsdp()), other});
  CHECK(choice.why.find("different numbers of tokens") != std::string::npos);
}

}  // namespace
}  // namespace shardsim
