// Predicted beside measured: sums and errors, by hand.
#include "experiments/step_validation.hpp"

#include <catch2/catch.hpp>

namespace shardsim::step_validation_test {
namespace {

ValidatedTask gather(std::int64_t bytes, double predicted, double measured) {
  ValidatedTask task;
  task.task_kind = TaskKind::collective;
  task.kind = "all-gather";
  task.axes = {"fsdp"};
  task.group_size = 4;
  task.payload = Bytes(bytes);
  task.time = {Seconds(predicted), Seconds(measured)};
  return task;
}

ValidatedTask matmul(std::int64_t bytes, double predicted, double measured) {
  ValidatedTask task;
  task.kind = "matmul";
  task.payload = Bytes(bytes);
  task.time = {Seconds(predicted), Seconds(measured)};
  return task;
}

// Bytes, predicted and measured seconds. Errors: -50 %, +100 %, 0, +10 %; one was not measured.
const std::vector<ValidatedTask> tasks{gather(1024, 1, 2), matmul(100, 4, 2), gather(1024, 3, 3),
                                       gather(64, 1.1, 1), matmul(50, 7, 0)};

}  // namespace

TEST_CASE("collectives of one size and kernels of one class are a row") {
  const auto rows = rows_of(tasks);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].payload == Bytes(1024));
  CHECK(rows[0].count == 2);
  CHECK(rows[0].time.predicted.count() == Approx(4));
  CHECK(rows[0].time.measured.count() == Approx(5));
  CHECK(rows[1].payload == Bytes(64));
  CHECK(rows[2].kind == "matmul");
  CHECK(rows[2].payload == Bytes(150));
  CHECK(rows[2].count == 2);
  CHECK(rows[2].time.predicted.count() == Approx(11));
}

TEST_CASE("sums and errors of communication and computation") {
  CHECK(total_of(tasks, StepPart::communication).predicted.count() == Approx(5.1));
  CHECK(total_of(tasks, StepPart::communication).measured.count() == Approx(6));
  CHECK(total_of(tasks, StepPart::compute).measured.count() == Approx(2));
  CHECK(total_of(tasks, StepPart::everything).measured.count() == Approx(8));

  const auto communication = errors_of(tasks, StepPart::communication);
  REQUIRE(communication.has_value());
  CHECK(communication->rows == 3);
  CHECK(communication->median == Approx(0.1));
  const auto everything = errors_of(tasks, StepPart::everything);
  REQUIRE(everything.has_value());
  CHECK(everything->rows == 4);  // 0, 10, 50 and 100 %
  CHECK(everything->median == Approx(0.3));
  CHECK(everything->percentile_90 == Approx(0.5 + 0.7 * 0.5));
  CHECK_FALSE(errors_of({}, StepPart::everything).has_value());
}

TEST_CASE("what was not measured has no error") {
  CHECK_FALSE(Compared{Seconds(1), Seconds(0)}.relative_error().has_value());
  CHECK(Compared{Seconds(3), Seconds(2)}.relative_error() == Approx(0.5));
}

}  // namespace shardsim::step_validation_test
