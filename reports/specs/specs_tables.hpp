// The tables of `specs`, printed as text, Markdown or HTML.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/format/tables.hpp"
#include "strategies/specs/coverage.hpp"
#include "strategies/specs/spec_table.hpp"

namespace shardsim {

// What a spec places where it says so otherwise: shorter than the rank, or over axes of one device.
// Empty where it says it.
[[nodiscard]] std::string meaning(const ParameterSharding& row);
// One row per parameter.
[[nodiscard]] Table parameter_table(const SpecTable& table);
// One row per output of every example.
[[nodiscard]] Table output_table(const SpecTable& table);
[[nodiscard]] Table rule_table(const SpecTable& table, const Coverage& coverage);
// What needs a look: unmatched, large replicated, indivisible. Those that have rows.
[[nodiscard]] std::vector<Table> gap_tables(const SpecTable& table, const Coverage& coverage);
[[nodiscard]] Table communication_table(const SpecSummary& summary, const Mesh& mesh);
// What analyze_sharding_strategy answers, and beside it what it promises.
[[nodiscard]] Table analysis_table(const SpecTable& table, const SpecAnalysis& analysis);
// What eformer's validate_sharding_config finds: the exception that it raises in one row, else one
// for every issue.
[[nodiscard]] Table validation_table(const SpecTable& table);
// (label, value): parameters, memory on each device, balance, ...
[[nodiscard]] std::vector<std::pair<std::string, std::string>> specs_summary(
    const SpecTable& table, const SpecSummary& summary);
// "llama-3.1-8b on data=2, fsdp=4 (8 devices)".
[[nodiscard]] std::string specs_title(const SpecTable& table);

}  // namespace shardsim
