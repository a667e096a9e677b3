// What is told of repeated steps, by hand.
#include "validate/step/execute.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "fake_backend.hpp"

namespace shardsim {
namespace {

TaskSpan span(double start, double end) { return {Seconds(start), Seconds(end)}; }

// A kernel and an all-reduce over the second axis of a mesh of 2 x 2.
Plan kernel_and_all_reduce() {
  Plan plan;
  plan.mesh = Mesh({{"data", 2}, {"model", 2}});
  plan.names = {"work", "sum"};
  plan.kernels.push_back({"einsum", KernelClass::matmul, DType::bf16, Flops(8), Bytes(8)});
  Collective sum;
  sum.axes = {plan.mesh.whole(1)};
  sum.payload = Bytes(1024);
  plan.collectives.push_back(sum);
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  Task work;
  (void)program.add_task(work, {});
  Task reduce;
  reduce.kind = TaskKind::collective;
  reduce.name = 1;
  (void)program.add_task(reduce, {0});
  plan.programs.push_back(program);
  verify(plan);
  return plan;
}

// Ranks 0 and 1 are a group, 2 and 3 another. Kernels take 1, 4, 2 and 2 ms; rank 0 waits 3 ms for
// rank 1 in the all-reduce, which takes 2 ms; the other group's takes 3, of which rank 2 is there
// for one.
const std::vector<std::vector<TaskSpan>> spans{{span(0, 1e-3), span(1e-3, 6e-3)},
                                               {span(0, 4e-3), span(4e-3, 6e-3)},
                                               {span(0, 2e-3), span(2e-3, 3e-3)},
                                               {span(0, 2e-3), span(2e-3, 5e-3)}};

}  // namespace

TEST_CASE(
    "a collective takes from its last member to come to its last to leave, a kernel the median") {
  const auto times = task_times(kernel_and_all_reduce(), spans, true);
  REQUIRE(times.size() == 1);
  CHECK(times[0][0].count() == Approx(2e-3));
  CHECK(times[0][1].count() == Approx(3e-3));
}

// Rank 1 is in the first group's for 2 ms, rank 2 in the second's for 1, rank 3 for 3. Rank 0 is
// busy for longest, 6 ms.
TEST_CASE("without a common clock who waits least in a collective tells its time") {
  const auto times = task_times(kernel_and_all_reduce(), spans, false);
  CHECK(times[0][0].count() == Approx(2e-3));
  CHECK(times[0][1].count() == Approx(2e-3));
  auto shifted = spans;
  for (TaskSpan& moved : shifted[2]) moved = {moved.start + Seconds(7), moved.end + Seconds(7)};
  const auto of_shifted = task_times(kernel_and_all_reduce(), shifted, false);
  CHECK(of_shifted[0][0].count() == Approx(2e-3));
  CHECK(of_shifted[0][1].count() == Approx(2e-3));
  testing::FakeBackend backend(shifted);
  backend.on_one_clock = false;
  CHECK(execute(kernel_and_all_reduce(), backend, {}).step.median.count() == Approx(6e-3));
}

TEST_CASE("a step that always takes the same is known after the least repeats") {
  testing::FakeBackend backend(spans);
  Repeats repeats;
  repeats.warm_ups = 2;
  repeats.least = 7;
  const MeasuredStep measured = execute(kernel_and_all_reduce(), backend, repeats);
  CHECK(backend.steps == 9);
  CHECK(measured.repeats == 7);
  CHECK(measured.settled);
  CHECK(measured.precision == 0);
  CHECK(measured.step.median.count() == Approx(6e-3));
  CHECK(measured.tasks[0][1].median.count() == Approx(3e-3));
}

TEST_CASE("no step is begun after the time for them, once there are enough for a median") {
  testing::FakeBackend backend(spans);
  Repeats repeats;
  repeats.warm_ups = 0;
  repeats.least = 10;
  repeats.longest = Seconds(0);
  const MeasuredStep measured = execute(kernel_and_all_reduce(), backend, repeats);
  CHECK(measured.repeats == least_repeats);
  CHECK_FALSE(measured.settled);
}

// Ranks of the interval: tables of the binomial distribution, e.g. Conover's A3. n = 8: P(B <= 0) =
// 0.4 %, P(B <= 1) = 3.5 %: the extremes, 1 and 8. n = 9: P(B <= 1) = 2.0 %: 2 and 8. n = 20:
// P(B <= 5) = 2.1 %, P(B <= 6) = 5.8 %: 6 and 15. n = 5000, far beyond where 2^-n is a number:
// about 2500 -+ 1.96 / 2 * sqrt(5000), that is 69.3.
TEST_CASE("the interval of a median is that of order statistics") {
  const auto half_width_of = [](int count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 1.0);
    const double median = (count + 1) / 2.0;
    return precision_of_median(values) * median;
  };
  CHECK(half_width_of(6) == Approx((6 - 1) / 2.0));
  CHECK(half_width_of(8) == Approx((8 - 1) / 2.0));
  CHECK(half_width_of(9) == Approx((8 - 2) / 2.0));
  CHECK(half_width_of(20) == Approx((15 - 6) / 2.0));
  CHECK(half_width_of(5000) == Approx(69.3).margin(1));
}

TEST_CASE("an error that several processes have is said once, each other one too") {
  const auto says = [](std::int64_t rank, const std::string& error) {
    testing::FakeExchange exchange(rank, 4);
    exchange.next = {"a", "", "a", "b"};
    return disagreement(exchange, error);
  };
  CHECK(says(0, "a") == "a");
  CHECK(says(1, "") == "");
  CHECK(says(2, "a") == "");
  CHECK(says(3, "b") == "b");
  testing::FakeExchange all_well(0, 2);
  CHECK_FALSE(disagreement(all_well, "").has_value());
}

}  // namespace shardsim
