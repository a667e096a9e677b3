// Sentences and names that all formats of a check share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checks/check.hpp"

namespace shardsim {

// "2 of 4 experiments are over their limits: 5 violations; 1 improvement".
[[nodiscard]] std::string summary_line(const CheckReport& report);
// "step time: 863.05 ms -> 901.22 ms, +38.17 ms (+4.4 %), limit +2 %".
[[nodiscard]] std::string finding_line(const CheckFinding& finding);
// Causes of all violations, each once.
[[nodiscard]] std::vector<std::string> causes_of(const CheckedExperiment& checked);
// "-" where there is none.
[[nodiscard]] std::string baseline_cell(const CheckFinding& finding);
[[nodiscard]] std::string change_cell(const CheckFinding& finding);
// What records what is now: "shardsim check base.json --update=fsdp"; empty where nothing changed.
[[nodiscard]] std::string update_command(const CheckReport& report);
// Those over their limits, or improved, or new.
[[nodiscard]] std::vector<std::string> names_of(const CheckReport& report,
                                                bool (*chosen)(const CheckedExperiment&));
// At most `longest` bytes, not cut inside a character; "..." tells that there was more.
[[nodiscard]] std::string shortened_text(std::string_view text, std::size_t longest);
// What is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string as_utf8(const std::string& text);

}  // namespace shardsim
