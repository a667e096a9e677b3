// The tables of `specs`, printed as text, Markdown or HTML.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/tables.hpp"
#include "strategies/coverage.hpp"
#include "strategies/spec_table.hpp"

namespace shardsim {

// One row per parameter.
[[nodiscard]] Table parameter_table(const SpecTable& table);
[[nodiscard]] Table rule_table(const SpecTable& table, const Coverage& coverage);
// What needs a look: unmatched, large replicated, indivisible. Those that have rows.
[[nodiscard]] std::vector<Table> gap_tables(const SpecTable& table, const Coverage& coverage);
[[nodiscard]] Table communication_table(const SpecSummary& summary, const Mesh& mesh);
// What analyze_sharding_strategy answers, and beside it what it promises.
[[nodiscard]] Table analysis_table(const SpecTable& table, const SpecAnalysis& analysis);
// (label, value): parameters, memory on each device, balance, ...
[[nodiscard]] std::vector<std::pair<std::string, std::string>> specs_summary(
    const SpecTable& table, const SpecSummary& summary);
// "llama-3.1-8b on data=2, fsdp=4 (8 devices)".
[[nodiscard]] std::string specs_title(const SpecTable& table);

}  // namespace shardsim
