// The plan on paper: JSON that keeps everything, text that a person reads, DOT for Graphviz.
// All three are functions of the plan alone: the same plan gives the same bytes.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// "shardsim/plan/1". Everything in the plan, with names spelled out, plus the flat list
// "collectives": kind, axes, groups, dtype, payload_bytes, group_size, count, parts, reason.
// Groups of more than 1,024 devices in total are given in the iota form of HLO, e.g.
// "[4096,4]<=[16384]" or "[4,2]<=[2,4]T(1,0)"; smaller ones as lists.
[[nodiscard]] Json plan_to_json(const Plan& plan);
// The inverse for everything but the derived list; throws InputError with file and place.
[[nodiscard]] Plan plan_from_json(const JsonReader& document);

// Folded for people: consecutive layers that do the same are printed once with their count.
[[nodiscard]] std::string plan_to_text(const Plan& plan);
[[nodiscard]] std::string plan_to_dot(const Plan& plan);

}  // namespace shardsim
