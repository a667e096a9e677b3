// Small modules around a few instructions.
#pragma once

#include <fmt/format.h>

#include <string>

#include "hlo/to_plan.hpp"

namespace shardsim::test {

inline const std::string add_f32 =
    "%add (x: f32[], y: f32[]) -> f32[] {\n"
    "  %x = f32[] parameter(0)\n"
    "  %y = f32[] parameter(1)\n"
    "  ROOT %sum = f32[] add(%x, %y)\n"
    "}\n";

// `before`: computations; `lines`: of the entry. On `partitions` devices.
inline HloModule module_of(const std::string& lines, int partitions = 8,
                           const std::string& before = "", const std::string& header = "") {
  return HloModule::parse(fmt::format("HloModule m, is_scheduled=true, num_partitions={}{}\n\n{}{}"
                                      "\nENTRY %main () -> f32[] {{\n{}}}\n",
                                      partitions, header, add_f32, before, lines),
                          "m.hlo");
}

inline HloId find(const HloModule& module, std::string_view name) {
  for (HloId id = 0; id < static_cast<HloId>(module.instructions().size()); ++id) {
    if (module.instruction(id).name == name) return id;
  }
  return -1;
}

}  // namespace shardsim::test
