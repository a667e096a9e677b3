// What a step sends: its collectives, counted.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <tuple>

#include "base/index.hpp"
#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "experiments/program.hpp"
#include "tests/base/golden_files.hpp"

namespace shardsim::test {

// By kind, axes ("data", "replica,fsdp"), type and bytes.
using CollectiveCounts =
    std::map<std::tuple<CollectiveKind, std::string, DType, std::int64_t>, int>;

inline CollectiveCounts collectives_of(const Plan& plan) {
  CollectiveCounts counts;
  for (const Task& task : plan.programs.at(0).tasks) {
    if (task.kind != TaskKind::collective) continue;
    const Collective& one = plan.collectives[at(task.work)];
    std::string axes;
    for (const AxisRef& axis : one.axes) {
      axes += (axes.empty() ? "" : ",") + plan.mesh.name_of(axis);
    }
    ++counts[{one.kind, axes, one.dtype, one.payload.count()}];
  }
  return counts;
}

// Of tests/golden/xla_models/programs/ID.mlir.gz, as XLA partitions it.
inline CollectiveCounts collectives_of_program(const std::string& id) {
  const auto path = plain_or_gzip(golden_folder("xla_models") / "programs" / (id + ".mlir.gz"));
  REQUIRE(path);
  ProgramOptions options;
  options.like_xla = true;
  return collectives_of(program_plan(*path, options));
}

// `file`: where the experiment is, which finds its model from there.
inline CollectiveCounts collectives_of_experiment(const Json& document, const std::string& file) {
  return collectives_of(compile_experiment(read_experiments(document, file).at(0)).plan);
}

inline CollectiveCounts collectives_of_experiment(const std::string& file) {
  return collectives_of_experiment(load_json(file), file);
}

}  // namespace shardsim::test
