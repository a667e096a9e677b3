// Sentences are written here from the fixture's figures and the wording in verdict.hpp.
#include "reports/format/verdict.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace shardsim {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
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

// 1.25 * 1.15 = 1.4375.
TEST_CASE("Steps within the known error of each other are a tie") {
  Figures near = figures_of(fixture::fsdp());
  near.name = "near";
  near.step = ms(1400);
  Figures far = near;
  far.name = "far";
  far.step = ms(1440);
  const Choice choice = choose(std::vector{far, near, figures_of(fixture::fsdp())});
  CHECK(choice.best == 2);
  CHECK(choice.ties == std::vector<int>{1});
  // Exposed: 0.4 s of 1.25 and of 1.4 s.
  CHECK(choice.why ==
        "fsdp (1.250 s), near (1.400 s) tie among the 3 that fit: predictions less than 15 % apart "
        "are no difference; fsdp exposes 32.0 % of the step as communication, near 28.6 %");
  CHECK(choose(std::vector{far, figures_of(fixture::fsdp())}).ties.empty());
}

// 1.25 s for 2000 tokens are 625 us for one, 2 s for 4000 are 500 us: the longer step is better.
TEST_CASE("Steps of different work are compared by token") {
  const Figures small = figures_of(fixture::fsdp());
  Figures large = small;
  large.name = "large";
  large.tokens_per_step = 4000;
  large.step = ms(2000);
  Choice choice = choose(std::vector{small, large});
  CHECK(choice.best == 1);
  CHECK(choice.ties.empty());
  // Exposed: 0.4 s of 2 and of 1.25 s.
  CHECK(choice.why ==
        "large: shortest time per token among the 2 that fit: 500.000 us per token, 20.0 % shorter "
        "than fsdp (625.000 us per token); large exposes 20.0 % of the step as communication, fsdp "
        "32.0 %; their steps have different numbers of tokens: what counts is time per token");
  // 2.22 s are 555 us, of which 625 are 1.126 times: within 15 %.
  large.step = ms(2220);
  choice = choose(std::vector{small, large});
  CHECK(choice.best == 1);
  CHECK(choice.ties == std::vector<int>{0});
  // Images take the place of tokens; where one has neither, steps are all there is.
  Figures image = small;
  image.tokens_per_step = 0;
  image.images_per_step = 8;
  Figures images = image;
  images.images_per_step = 16;
  choice = choose(std::vector{image, images});
  CHECK(choice.best == 1);
  CHECK_THAT(choice.why, Contains("what counts is time per image"));
  choice = choose(std::vector{image, small});
  CHECK(choice.best == 0);
  CHECK_THAT(choice.why, Contains("their steps do different work"));
}

TEST_CASE("What the known error is not known for is said") {
  const Figures one = figures_of(fixture::fsdp());
  const auto why = [&](const auto& change) {
    Figures other = one;
    other.name = "other";
    other.step = ms(2000);
    change(other);
    return choose(std::vector{one, other}).why;
  };
  CHECK_THAT(why([](Figures&) {}), !Contains("not known"));
  CHECK_THAT(
      why([](Figures& f) { f.machine = "dgx-h100"; }),
      EndsWith("; how far predictions that differ in machine err from each other is not known "
               "(of one model, sequence and machine: 15 %)"));
  CHECK_THAT(why([](Figures& f) {
               f.model = "large";
               f.workload = {{"sequence", "8,192"}};
             }),
             Contains("that differ in model, sequence err"));
  CHECK_THAT(why([](Figures& f) { f.step_kind = "program"; }),
             EndsWith("; how far predictions of compiled programs err is not known"));
  CHECK_THAT(why([](Figures& f) { f.step_kind = "forward"; }),
             EndsWith("; how far predictions of forward steps err is not known; note that a "
                      "forward step does a part of a training step's work"));
  // Nor does it matter, of what does not fit.
  CHECK_THAT(why([](Figures& f) {
               f.machine = "dgx-h100";
               f.fits = false;
             }),
             !Contains("not known"));
}

TEST_CASE("The known error is said once, or for each with another") {
  Figures other = figures_of(fixture::fsdp());
  const Figures one = figures_of(fixture::dp());
  REQUIRE(one.known_error);
  CHECK_THAT(known_error_text({one, other}), StartsWith("measured steps took 1.31 times"));
  other.known_error->of = "7 steps";
  CHECK_THAT(known_error_text({one, other}),
             StartsWith("dp: measured steps took 1.31 times") && Contains("; fsdp: measured"));
  other.known_error.reset();  // as of compiled programs
  CHECK(known_error_text({other}).empty());
  CHECK_THAT(known_error_text({one, other}), StartsWith("measured steps took"));
}

// Steps a third apart are no tie where such pairs are 15 % off from each other, and are one where
// they are 40 % off.
TEST_CASE("A tie follows from how differently such steps are off") {
  Figures shorter = figures_of(fixture::fsdp());
  Figures longer = shorter;
  longer.name = "longer";
  longer.step = SimTime(shorter.step.count() * 4 / 3);
  CHECK(choose({shorter, longer}).ties.empty());
  shorter.known_error->between_two = 1.4;
  CHECK(choose({shorter, longer}).ties == std::vector<int>{1});
}

TEST_CASE("What the host's memory does not hold does not fit") {
  Prediction prediction = fixture::fsdp();
  prediction.result.on_a_host = gib(96);
  CHECK(figures_of(prediction).fits);
  prediction.result.host_capacity = gib(96);
  CHECK(figures_of(prediction).fits);
  prediction.result.host_capacity = gib(64);
  CHECK_FALSE(figures_of(prediction).fits);
  CHECK(memory_verdict(figures_of(prediction)) ==
        "does not fit: the memory of a host needs 96.0 GiB, 32.0 GiB more than its 64.0 GiB");
}

// 7 of 10 GiB; beside it 1 + 0.03 * 7 to 2 + 0.12 * 7 = 2.84 GiB; at 7.2 GiB 2.86 GiB.
TEST_CASE("What fits with less to spare than is not counted fits narrowly") {
  Prediction prediction = fixture::fsdp();
  CHECK_FALSE(figures_of(prediction).fits_narrowly());
  prediction.result.programs[0].peak = Bytes(gib(36).count() / 5);
  // A CPU holds nothing beside.
  CHECK(figures_of(prediction).not_counted.high == Bytes(0));
  CHECK_FALSE(figures_of(prediction).fits_narrowly());
  ClusterProfile of_nvidia;
  of_nvidia.nccl = NcclProfile();
  prediction.machine.profile.network = of_nvidia;
  const Figures narrow = figures_of(prediction);
  CHECK(narrow.fits);
  CHECK(narrow.fits_narrowly());
  CHECK(memory_verdict(narrow) ==
        "fits narrowly: 7.2 GiB of 10.0 GiB; 1.2 GiB to 2.9 GiB more are not counted: the CUDA "
        "context, NCCL's buffers and what the allocator reserves beside buffers");
  // Where the allocator is known: 13 % of 8.6 GiB, 1.1, are left of 10 GiB; 1.2 of 9.1 are not.
  ProgramResult& counted = prediction.result.programs[0];
  counted.allocated = counted.peak;
  counted.reserved = gib(8);
  counted.outside = Bytes(gib(3).count() / 5);
  CHECK_FALSE(figures_of(prediction).fits_narrowly());
  CHECK(memory_verdict(figures_of(prediction)) ==
        "fits: 8.6 GiB of 10.0 GiB (7.2 GiB allocated, 8.0 GiB reserved)");
  counted.reserved = Bytes(gib(17).count() / 2);
  CHECK(memory_verdict(figures_of(prediction)) ==
        "fits narrowly: 9.1 GiB of 10.0 GiB (7.2 GiB allocated, 8.5 GiB reserved); 0 B to 1.2 GiB "
        "more are not counted: as far as predictions of reserved memory are off in the median");
  counted.reserved = gib(10);
  CHECK_FALSE(figures_of(prediction).fits);
  CHECK(memory_verdict(figures_of(prediction))
            .starts_with("does not fit: needs 10.6 GiB (7.2 GiB allocated, 10.0 GiB reserved), "
                         "614.4 MiB more than"));
  counted.allocated = counted.reserved = counted.outside = Bytes(0);
  // Of a GPU of whom is not known.
  prediction.machine.profile.network = ClusterProfile();
  prediction.machine.profile.device.sms = Sourced<std::int64_t>{304, {}};
  CHECK(figures_of(prediction).not_counted.what ==
        "the driver's context, buffers of collectives and what the allocator reserves beside "
        "buffers");
  CHECK(figures_of(prediction).fits_narrowly());
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

}  // namespace
}  // namespace shardsim
