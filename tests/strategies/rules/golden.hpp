// Golden cases of rule systems: each file of a folder holds
//
//   {"cases": [{"name": ..., "function": "infer_sharding", "input": {...},
//               "expected": {...}, or "error": {"type": "KeyError", ...}, "source": ...}]}
//
// A function answers what "expected" holds, or throws a RuleError whose type is that of "error".
// Every key of "expected" must be there and equal; numbers that are no integers to a relative
// tolerance. A case may hold more than one truth: "corrected" beside "expected" is answered by
// "<function>/corrected".
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "plan/mesh.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim::test {

inline constexpr double default_tolerance = 1e-6;

using GoldenFunction = std::function<Json(const JsonReader& input)>;

class GoldenFunctions {
 public:
  // `prose`: keys of "expected" that are words for people and are not compared.
  void add(const std::string& name, GoldenFunction function,
           const std::set<std::string>& prose = {}, double tolerance = default_tolerance);
  // A function that is given the whole case, its name and source included.
  void add_for_case(const std::string& name, GoldenFunction function);
  // Why the case fails; empty when it passes.
  [[nodiscard]] std::string failure(const JsonReader& test_case) const;

 private:
  struct Row {
    GoldenFunction function;
    std::set<std::string> prose;
    double tolerance = default_tolerance;
    bool whole_case = false;
  };
  [[nodiscard]] std::string compare(const JsonReader& test_case, const std::string& function,
                                    const std::string& expected_key) const;
  std::map<std::string, Row> rows_;
};

// Runs every file of the golden folder `name` and prints "FILE: N passed, M failed". Answers the
// names of the failed cases.
[[nodiscard]] std::vector<std::string> run_golden_folder(const std::string& name,
                                                         const GoldenFunctions& functions);
// The folder, with SHARDSIM_GOLDEN_DIR in place of the repository's where it is set; its *.json in
// order of their names; empty, and said so, when it is not there.
[[nodiscard]] std::vector<std::string> golden_files(const std::string& name);

// [["data", 8], ["model", 2]] or {"data": 8, "model": 2}.
[[nodiscard]] Mesh read_golden_mesh(const JsonReader& json);
// {"a/b": {"shape": [...], "dtype": ...}}
[[nodiscard]] ParameterTree read_golden_tree(const JsonReader& params);
// {"a/b": spec} for the leaves in order.
[[nodiscard]] Json specs_to_json(const ParameterTree& tree, const std::vector<Json>& specs);

// One row per file pair of strategies/rules.
void add_big_vision(GoldenFunctions& functions);
void add_eformer(GoldenFunctions& functions);
void add_praxis(GoldenFunctions& functions);
void add_pathways(GoldenFunctions& functions);
void add_logical_axes(GoldenFunctions& functions);
void add_named_sharding(GoldenFunctions& functions);
void add_fsdp_tutorial(GoldenFunctions& functions);
void add_collective_costs(GoldenFunctions& functions);

}  // namespace shardsim::test
