// Surfaces of shipped profiles are what the tables of tests/measurements/kernels make.
#include <catch2/catch.hpp>

#include "published_kernels.hpp"
#include "validate/fit/fit_profile.hpp"

namespace shardsim {
namespace {

template <class Number>
void check_number(const std::optional<Sourced<Number>>& shipped,
                  const std::optional<Sourced<Number>>& fitted) {
  REQUIRE(shipped.has_value() == fitted.has_value());
  if (!shipped) return;
  CHECK(shipped->value == fitted->value);
  CHECK(shipped->source.reference == fitted->source.reference);
}

void check_surfaces(const EfficiencySurfaces& shipped, const EfficiencySurfaces& fitted,
                    const std::string& source) {
  for (const auto& [dtype, surface] : fitted) {
    if (surface.efficiency.source.reference != source) continue;  // another table's
    CAPTURE(name_of(dtype));
    REQUIRE(shipped.contains(dtype));
    const EfficiencySurface& mine = shipped.at(dtype);
    // Three digits.
    CHECK(mine.efficiency.value == Approx(surface.efficiency.value).margin(5e-4));
    CHECK(mine.efficiency.source.reference == source);
    check_number(mine.depth, surface.depth);
    check_number(mine.side, surface.side);
    check_number(mine.overhead, surface.overhead);
  }
}

}  // namespace

TEST_CASE("shipped surfaces are fitted to the published tables") {
  const auto all = test::published_kernels();
  CHECK_FALSE(all.empty());
  for (const auto& [name, sweep] : all) {
    CAPTURE(name);
    CHECK_FALSE(sweep.source.empty());
    const DeviceProfile fitted = fit_profile(sweep, "fitted").profile.device;
    const DeviceProfile shipped = load_profile(sweep.profile, {}).device;
    check_surfaces(shipped.matmul_surfaces, fitted.matmul_surfaces, sweep.source);
    check_surfaces(shipped.attention_surfaces, fitted.attention_surfaces, sweep.source);
    check_surfaces(shipped.attention_backward_surfaces, fitted.attention_backward_surfaces,
                   sweep.source);
  }
}

}  // namespace shardsim
