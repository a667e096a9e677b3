// A compilation that is always the same, for counting instructions
// (tests/instruction_count.cmake):
//
//   fixed_work compile    Llama 3.1 405B under fsdp+tp on 2048 x 8 devices, 8 microbatches
//
// What comes out is printed, so that nothing of it can be left away.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "base/json.hpp"
#include "strategies/compile/compile.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {
namespace {

std::size_t compile_large_step() {
  constexpr std::int64_t shards = 2048;
  constexpr std::int64_t split = 8;
  constexpr std::int64_t microbatches = 8;
  constexpr std::int64_t tokens = 8192;  // of a sequence, Llama 3's in pretraining
  const Mesh mesh({{"fsdp", shards}, {"model", split}});
  const Json json = "fsdp+tp";
  const Strategy strategy = read_strategy(JsonReader(json, {"fixed work", ""}), mesh);
  const Step step{.batch = shards * microbatches, .sequence = tokens, .microbatches = microbatches};
  const Workload workload = build_step(load_model_config("llama-3.1-405b", "", {}), step);
  return compile(workload, step, mesh, strategy).plan.programs.front().tasks.size();
}

}  // namespace
}  // namespace shardsim

int main(int argc, char** argv) {
  const std::string work = argc == 2 ? argv[1] : "";
  if (work != "compile") {
    std::cerr << "usage: fixed_work compile\n";
    return 2;
  }
  std::cout << fmt::format("{} tasks\n", shardsim::compile_large_step());
  return 0;
}
