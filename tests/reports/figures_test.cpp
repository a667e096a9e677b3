// Expectations are sums and quotients of the fixture's round figures (fixture.hpp).
#include "reports/format/figures.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"
#include "reports/step/csv_report.hpp"

namespace shardsim {
namespace {

using fixture::gib;
using fixture::ms;

TEST_CASE("Figures name what was predicted") {
  const Figures figures = figures_of(fixture::dp());
  CHECK(figures.name == "dp");
  CHECK(figures.model == "toy");
  CHECK(figures.step_kind == "train");
  CHECK(figures.strategy == "dp");
  CHECK(figures.mesh == "data=2");
  CHECK(figures.machine == "toy-machine");
  CHECK(figures.device == "Toy 10 GiB");
  CHECK(figures.extent == "2 devices, 1 node");
}

TEST_CASE("A torus is named by its shape") {
  Prediction prediction = fixture::dp();
  prediction.machine.devices = 64;
  prediction.machine.torus = TorusShape{.sizes = {4, 4, 4}, .wraps = {true, true, true}};
  CHECK(figures_of(prediction).extent == "64 devices, 4x4x4");
}

TEST_CASE("The parts of the step add up") {
  for (const Prediction& prediction : {fixture::dp(), fixture::fsdp()}) {
    const Figures figures = figures_of(prediction);
    CHECK(figures.compute + figures.contention + figures.exposed + figures.idle == figures.step);
  }
}

TEST_CASE("Categories at the peak add up to the peak") {
  for (const Prediction& prediction : {fixture::dp(), fixture::fsdp()}) {
    const Figures figures = figures_of(prediction);
    Bytes sum{0};
    for (BufferCategory category : categories_in_reports) sum += figures.of(category);
    CHECK(sum == figures.peak);
  }
}

TEST_CASE("Every category is reported once") {
  CategoryBytes seen{};
  for (BufferCategory category : categories_in_reports) {
    seen[static_cast<std::size_t>(category)] += Bytes(1);
  }
  for (Bytes times : seen) CHECK(times == Bytes(1));
}

TEST_CASE("Wire bytes and padding are sums over their rows") {
  const Figures figures = figures_of(fixture::fsdp());
  CHECK(figures.wire_bytes_per_device == gib(2) + gib(1));
  CHECK(figures.padding_per_device == Bytes(1024));
}

TEST_CASE("Shares are parts of the step") {
  const Figures figures = figures_of(fixture::fsdp());
  CHECK(figures.share(figures.exposed) == Approx(0.4 / 1.25));
  CHECK(Figures{}.share(ms(0)) == 0);
}

TEST_CASE("What has no meaning has no figure") {
  Prediction prediction = fixture::dp();
  prediction.result.tokens_per_second_per_device = 0;
  prediction.result.mfu = prediction.result.mfu_full_attention = 0;
  const Figures figures = figures_of(prediction);
  CHECK_FALSE(figures.tokens_per_second_per_device);
  CHECK_FALSE(figures.mfu);
  CHECK_FALSE(figures.mfu_full_attention);
}

TEST_CASE("With several classes memory is the fullest's and times the busiest's") {
  Prediction prediction = fixture::dp();
  ProgramResult other = prediction.result.programs[0];
  other.name = "last stage";
  other.peak = gib(13);
  other.compute_time = ms(500);
  other.exposed_time = ms(300);
  prediction.result.programs.push_back(other);
  const Figures figures = figures_of(prediction);
  CHECK(figures.peak == gib(13));
  CHECK(figures.compute == ms(800));
  CHECK(figures.exposed == ms(150));
  REQUIRE(figures.classes.size() == 2);
  CHECK(figures.classes[1].name == "last stage");
}

TEST_CASE("Notes of the plan come before those of the simulation") {
  CHECK(figures_of(fixture::dp()).notes ==
        std::vector<std::string>{"attention counted without its mask",
                                 "links of one node are not shared"});
}

TEST_CASE("Exactly full fits, one byte more does not") {
  Prediction prediction = fixture::fsdp();
  prediction.result.capacity = gib(7);
  CHECK(figures_of(prediction).fits);
  prediction.result.capacity = gib(7) - Bytes(1);
  CHECK_FALSE(figures_of(prediction).fits);
}

TEST_CASE("Plain numbers keep all their digits") {
  CHECK(plain_number(1.25) == "1.25");
  CHECK(plain_number(0.1) == "0.1");
  CHECK(std::stod(plain_number(1.0 / 3)) == 1.0 / 3);
}

}  // namespace
}  // namespace shardsim
