// Compiling a workload's step with a strategy that is given as text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "strategies/compile/compile.hpp"
#include "workloads/step/backward.hpp"
#include "workloads/step/optimizer.hpp"

namespace shardsim::test {

inline CompiledStep compile_with(const Workload& workload, const std::vector<MeshAxis>& axes,
                                 const char* strategy) {
  const Mesh mesh(axes);
  const Json json = parse_json(fmt::format("\"{}\"", strategy), "strategy");
  return compile(workload, {}, mesh, read_strategy(JsonReader(json, {"strategy", ""}), mesh));
}

}  // namespace shardsim::test
