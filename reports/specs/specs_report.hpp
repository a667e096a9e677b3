// How every parameter lies on the mesh, which rule said so, and what the rules miss: as text, JSON
// ("shardsim/specs/1"), CSV, Markdown or one HTML page with a picture of every tensor.
//
// Text, Markdown and HTML print layers that are alike as one row; JSON and CSV hold every parameter
// of a tree. In those of a compiled step "{}" in a name stands for the layer everywhere.
#pragma once

#include <string>

#include "base/pattern.hpp"
#include "reports/format/report.hpp"
#include "strategies/rules/submesh_index.hpp"
#include "strategies/specs/spec_table.hpp"

namespace shardsim {

struct SpecsOptions {
  bool analyze = false;  // eformer's analyze_sharding_strategy, in all formats but CSV: what it
                         // answers, and what its docstring promises
  std::size_t width = default_text_width;  // of text, in columns
};

// `experiment` is the experiment as resolved.
[[nodiscard]] std::string report_specs(const SpecTable& table, const Json& experiment,
                                       Format format, const SpecsOptions& options = {});
// Text pictures of the parameters whose names the pattern is found in; layers that are alike once.
[[nodiscard]] std::string specs_pictures(const SpecTable& table, const Pattern& names);
// eformer's get_submesh_device_index along these axes for every device, 16 in a row; of more than
// 256 devices the first. Throws RuleError (NameError) for an axis that the mesh lacks.
[[nodiscard]] std::string submesh_picture(const SpecTable& table, const AxisNames& axes,
                                          const Place& place);

}  // namespace shardsim
