// A check as people and machines read it.
#pragma once

#include <string>
#include <vector>

#include "checks/check.hpp"

namespace shardsim {

[[nodiscard]] std::string check_text(const CheckReport& report);
// "shardsim/check/1": {"violations": [{"experiment", "metric", "baseline", "now", "limit", "cause",
// "causes", "file"}...], "improvements": [...], "checked": n, "new": [name...], "gone": [name...]}.
// "baseline" is null for a budget of what no baseline holds.
[[nodiscard]] std::string check_json(const CheckReport& report);
// For the comment of a pull request: a table, the causes folded; under 60,000 bytes, whatever the
// report has.
[[nodiscard]] std::string check_markdown(const CheckReport& report);
// A test case to an experiment.
[[nodiscard]] std::string check_junit(const CheckReport& report);
// GitLab's code quality report: a list of issues.
[[nodiscard]] std::string check_gitlab(const CheckReport& report);
// GitHub's workflow commands, "::error file=...", a line each; warnings with warn_only.
[[nodiscard]] std::string check_annotations(const CheckReport& report);
// One page with charts of before and now.
[[nodiscard]] std::string check_html(const CheckReport& report);

// By the names that --format has: those above but for annotations.
[[nodiscard]] const std::vector<std::string>& check_formats();
[[nodiscard]] std::string report_check(const CheckReport& report, const std::string& format);

}  // namespace shardsim
