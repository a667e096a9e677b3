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
        "fsdp: the only one of 2 that fits: 1.250 s; fsdp exposes 32.0 % of the step as "
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
        "fsdp exposes 32.0 % of the step as communication, slow 25.6 %");
}

TEST_CASE("Equal steps go to the smaller peak, then to the first listed") {
  const Figures first = figures_of(fixture::fsdp());
  Figures second = first;
  second.name = "second";
  CHECK(choose(std::vector{first, second}).best == 0);
  second.peak = gib(6);
  CHECK(choose(std::vector{first, second}).best == 1);
}

// 1.25 * 1.14 = 1.425.
TEST_CASE("Steps within the known error of each other are a tie") {
  Figures near = figures_of(fixture::fsdp());
  near.name = "near";
  near.step = ms(1400);
  Figures far = near;
  far.name = "far";
  far.step = ms(1430);
  const Choice choice = choose(std::vector{far, near, figures_of(fixture::fsdp())});
  CHECK(choice.best == 2);
  CHECK(choice.ties == std::vector<int>{1});
  // Exposed: 0.4 s of 1.25 and of 1.4 s.
  CHECK(choice.why ==
        "fsdp (1.250 s), near (1.400 s) tie among the 3 that fit: predictions less than 14 % apart "
        "are no difference; fsdp exposes 32.0 % of the step as communication, near 28.6 %");
  CHECK(choose(std::vector{far, figures_of(fixture::fsdp())}).ties.empty());
}

// 7 of 10 GiB; beside it 1 + 0.03 * 7 to 2 + 0.12 * 7 = 2.84 GiB; at 7.2 GiB 2.86 GiB.
TEST_CASE("What fits with less to spare than is not counted fits narrowly") {
  Prediction prediction = fixture::fsdp();
  CHECK_FALSE(figures_of(prediction).fits_narrowly());
  prediction.result.programs[0].peak = Bytes(gib(36).count() / 5);
  const Figures narrow = figures_of(prediction);
  CHECK(narrow.fits);
  CHECK(narrow.fits_narrowly());
  CHECK(memory_verdict(narrow) ==
        "fits narrowly: 7.2 GiB of 10.0 GiB; 1.2 GiB to 2.9 GiB more are not counted: the CUDA "
        "context, NCCL's buffers and what the allocator reserves beside buffers");
  // A TPU has no context: up to 5 % of 7.2 GiB.
  prediction.machine.profile.network = TorusProfile();
  CHECK_FALSE(figures_of(prediction).fits_narrowly());
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
