// What a sweep measures, on a backend that is not there.
#include "validate/sweep/run_sweep.hpp"

#include <catch2/catch.hpp>

#include "fake_backend.hpp"

namespace shardsim {
namespace {

// Two processes, whose tasks take a second each.
class SweptBackend : public testing::FakeBackend {
 public:
  SweptBackend() : FakeBackend(std::vector<std::vector<TaskSpan>>(2)) {}

  // Products with sides of 32 and 64, 16 and 64 KiB that are moved, and copied.
  [[nodiscard]] WorkRange range() const override {
    return {{DType::f32}, 32, 64, Bytes(64 * KiB), true};
  }
  void prepare(const Plan& plan) override {
    std::vector<TaskSpan> spans;
    for (std::size_t i = 0; i < plan.programs.front().tasks.size(); ++i) {
      const auto start = static_cast<double>(i);
      spans.push_back({Seconds(start), Seconds(start + 1)});
    }
    for (auto& of_rank : spans_) of_rank = spans;
  }
};

struct Counts {
  SweepPart part;
  std::size_t collectives, kernels, copies, memory;
};

}  // namespace

// Six kinds over both processes, of one size; five shapes of products for each side, and two sizes
// moved; the same two to the host and back; what the allocator takes.
TEST_CASE("a sweep measures collectives, kernels, or both") {
  for (const Counts& expected : {Counts{SweepPart::everything, 6, 5 * 2 + 2, 2 * 2, 1},
                                 Counts{SweepPart::collectives, 6, 0, 0, 0},
                                 Counts{SweepPart::kernels, 0, 5 * 2 + 2, 2 * 2, 1}}) {
    CAPTURE(static_cast<int>(expected.part));
    SweptBackend backend;
    SweepOptions options = default_sweep();
    options.part = expected.part;
    options.sizes = {Bytes(KiB)};
    options.repeats.most = least_repeats;
    std::size_t begun = 0;
    const DeviceSweep sweep =
        run_sweep(options, backend, [&](const std::string& /*part*/) { ++begun; });
    CHECK(sweep.collectives.size() == expected.collectives);
    CHECK(sweep.kernels.size() == expected.kernels);
    CHECK(sweep.copies.size() == expected.copies);
    CHECK(sweep.memory.size() == expected.memory);
    CHECK(begun == expected.collectives + expected.kernels + expected.copies);
    CHECK(parts_of(options, backend) == begun);
    for (const SweptKernel& swept : sweep.kernels) CHECK(swept.time.median == Seconds(1));
  }
}

}  // namespace shardsim
