// The remedies of a program's collectives: each is written into the text of the shipped example,
// and what it names is gone.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "experiments/program.hpp"

namespace shardsim::remedies_test {
namespace {

using Catch::Contains;

const std::string program = SHARDSIM_SOURCE_DIR "/examples/programs/mlp-fsdp-tp.mlir";

const Collective* find(const Plan& plan, CollectiveKind kind, const std::string& words) {
  for (const Collective& collective : plan.collectives) {
    if (collective.kind == kind && collective.reason.find(words) != std::string::npos)
      return &collective;
  }
  return nullptr;
}

// The plan of the example with one piece of its text replaced.
Plan with(const std::string& before, const std::string& after) {
  std::string text = read_file(program);
  const std::size_t place = text.find(before);
  REQUIRE(place != std::string::npos);
  text.replace(place, before.size(), after);
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "remedy.mlir";
  write_file(path.string(), text);
  return program_plan(path.string(), {});
}

}  // namespace

// %arg3 [{x}, {y}, {}] meets %arg1 [{x}, {y}]: 16x128x1024 bf16 are 4 MiB, half of them 2 MiB.
TEST_CASE("An argument annotated as its remedy says is not gathered") {
  const std::string words = "dot_general, line 4, needs argument 3 [{x}, {y}, {}] whole over y";
  const Plan plan = program_plan(program, {});
  const Collective* gather = find(plan, CollectiveKind::all_gather, words);
  REQUIRE(gather != nullptr);
  CHECK_THAT(gather->reason, Contains("which splits argument 1 [{x}, {y}] as well"));
  CHECK(gather->remedy ==
        "annotate argument 3 as [{x}, {}, {}]: a device holds 2.0 MiB of it instead of 512.0 KiB");
  const Plan changed = with(R"([{"x"}, {"y"}, {}])", R"([{"x"}, {}, {}])");
  CHECK(find(changed, CollectiveKind::all_gather, "needs argument 3") == nullptr);
}

// %arg0 [{y}, {x}] of 4096x1024 bf16, 8 MiB.
TEST_CASE("A parameter annotated as its remedy says is not gathered") {
  const Plan plan = program_plan(program, {});
  const Collective* gather = find(plan, CollectiveKind::all_gather, "needs argument 0 [{y}, {x}]");
  REQUIRE(gather != nullptr);
  CHECK_THAT(gather->remedy, Contains("annotate argument 0 as [{y}, {}]: a device holds 2.0 MiB"));
  const Plan changed = with(R"([{"y"}, {"x"}])", R"([{"y"}, {}])");
  CHECK(find(changed, CollectiveKind::all_gather, "needs argument 0") == nullptr);
}

TEST_CASE("An all-reduce whose result is constrained as its remedy says is a reduce-scatter") {
  const std::string words = "dot_general, line 8, makes parts of its result";
  const Plan plan = program_plan(program, {});
  const Collective* sum = find(plan, CollectiveKind::all_reduce, words);
  REQUIRE(sum != nullptr);
  // 2 MiB over 4 devices: 2 x 3/4 against 3/4.
  CHECK_THAT(sum->remedy, Contains("constrain the result of line 8 to [{x}, {y}, {}]: a "
                                   "reduce-scatter, which sends 1.5 MiB instead of 3.0 MiB"));
  const Plan changed =
      with("%3, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] :",
           "%3, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] "
           "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\"}, {}]>]>} :");
  CHECK(find(changed, CollectiveKind::all_reduce, words) == nullptr);
  CHECK(find(changed, CollectiveKind::reduce_scatter, words) != nullptr);
}

TEST_CASE("A remedy that was tried says what a device then sends") {
  Plan plan = program_plan(program, {});
  try_remedies(program, plan);
  const Collective* gather = find(plan, CollectiveKind::all_gather, "needs argument 3");
  REQUIRE(gather != nullptr);
  // The gather of 2 MiB over 4 devices sent 1.5 MiB of 10.5 MiB.
  CHECK_THAT(gather->remedy, Contains("; tried: a device then sends 9.0 MiB per step instead of "
                                      "10.5 MiB"));
}

TEST_CASE("Compiled HLO has no remedies to try") {
  const std::string compiled = SHARDSIM_SOURCE_DIR "/examples/programs/fsdp-matmul.hlo";
  const Plan plan = program_plan(compiled, {});
  Plan tried = plan;
  try_remedies(compiled, tried);
  CHECK(tried == plan);
}

}  // namespace shardsim::remedies_test
