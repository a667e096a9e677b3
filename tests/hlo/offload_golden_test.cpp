// What programs that keep activations on the host copy there and back, against what the compiler
// says it takes of the host's memory (tests/golden/xla_offload/README.md): nothing lies there
// twice, so that each byte goes once and comes back once. (In loop.gpu, where two of three layers'
// are there at a time, it takes two thirds of that.)
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "base/gzip.hpp"
#include "hlo/to_plan.hpp"

namespace shardsim::test {

TEST_CASE("offloaded activations go to the host and come back as the compiler has them") {
  constexpr std::int64_t host_temporaries = 786432;  // memory_analysis()
  constexpr std::int64_t layers = 3;
  for (const char* name : {"scan.tpu", "loop.tpu", "scan.gpu", "loop.gpu"}) {
    INFO(name);
    const std::string file =
        fmt::format("{}/tests/golden/xla_offload/{}.hlo.gz", SHARDSIM_SOURCE_DIR, name);
    const Plan plan = plan_from_hlo(HloModule::parse(read_maybe_gzip(file), file), {});
    std::map<TaskKind, std::int64_t> bytes;
    std::map<TaskKind, std::int64_t> count;
    for (const Task& task : plan.programs.at(0).tasks) {
      if (!is_host_copy(task.kind)) continue;
      bytes[task.kind] += plan.kernels[static_cast<std::size_t>(task.work)].bytes.count();
      ++count[task.kind];
    }
    for (const TaskKind kind : {TaskKind::to_host, TaskKind::from_host}) {
      CHECK(bytes[kind] == host_temporaries);
      CHECK(count[kind] == layers);
    }
  }
}

}  // namespace shardsim::test
