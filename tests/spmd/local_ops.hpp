// What partition() makes of a program written in place, as lines that tests can compare.
#pragma once

#include <string>
#include <vector>

#include "base/index.hpp"
#include "spmd/partition.hpp"
#include "stablehlo/module.hpp"
#include "stablehlo/op_view.hpp"
#include "stablehlo/verify_dims.hpp"

namespace shardsim::test {

// One function over a mesh; `arguments`, `ops` and `result` in StableHLO's syntax, with a sharding
// for every value. The last op's result %r is returned.
inline stablehlo::Module program(const std::string& mesh, const std::string& arguments,
                                 const std::string& ops, const std::string& result) {
  return stablehlo::parse_module(
      "sdy.mesh @mesh = <[" + mesh + "]>\nfunc.func @main(" + arguments + ") -> (" + result +
          ") {\n" + ops + "\n  return %r : " + result.substr(0, result.find(" {")) + "\n}\n",
      "test.mlir");
}

// The attribute: dims "{}, {\"x\"}".
inline std::string sharding(const std::string& dims) {
  return "#sdy.sharding<@mesh, [" + dims + "]>";
}

inline std::string text_of_groups(const stablehlo::Attribute& groups) {
  std::string text;
  for (const stablehlo::Attribute& group : groups.items) {
    text += "{";
    for (const stablehlo::Attribute& device : group.items) {
      text += (text.back() == '{' ? "" : " ") + std::to_string(device.integer);
    }
    text += "}";
  }
  return text;
}

inline void add_lines(const stablehlo::Function& function, stablehlo::RegionId region,
                      std::vector<std::string>& lines) {
  for (const stablehlo::OpId id : function.regions[at(region)].ops) {
    const stablehlo::Op& op = function.op(id);
    for (const stablehlo::RegionId inner : op.regions) add_lines(function, inner, lines);
    const std::string name = op.name.substr(op.name.find('.') + 1);
    const stablehlo::Attribute* groups = stablehlo::find(op.attributes, "replica_groups");
    if (groups == nullptr) groups = stablehlo::find(op.attributes, "source_target_pairs");
    if (groups == nullptr && name != "dot_general" && name != "convolution") continue;
    std::string line = name + " ";
    for (const std::int64_t size : function.type_of(op.results.front()).dims) {
      line += (line.back() == ' ' ? "" : "x") + std::to_string(size);
    }
    if (groups != nullptr) line += " " + text_of_groups(*groups);
    lines.push_back(line);
  }
}

// Results are as large as operands and attributes make them. Throws InputError.
inline void verify_ops(const stablehlo::Module& local) {
  for (const stablehlo::Function& function : local.functions) {
    for (const stablehlo::Region& region : function.regions) {
      for (const stablehlo::OpId id : region.ops) {
        stablehlo::verify_dims(stablehlo::OpView(local, function, function.op(id)));
      }
    }
  }
}

// "all_gather 64x32 {0 1}{2 3}", "dot_general 8x32", ... in order: collectives, dots and
// convolutions with their local results. Throws InputError where one does not fit its operands.
inline std::vector<std::string> local_ops(const stablehlo::Module& whole, bool like_xla = true) {
  const stablehlo::Module local = spmd::partition(whole, {like_xla});
  verify_ops(local);
  std::vector<std::string> lines;
  add_lines(local.functions.front(), 0, lines);
  return lines;
}

}  // namespace shardsim::test
