// How every parameter lies on the mesh, which rule said so, and what the rules miss: as text, JSON
// ("shardsim/specs/1"), CSV, Markdown or one HTML page with a picture of every tensor.
//
// Text, Markdown and HTML print layers that are alike as one row; JSON and CSV hold every parameter
// of a tree. In those of a compiled step "{}" in a name stands for the layer everywhere.
#pragma once

#include <string>

#include "base/pattern.hpp"
#include "reports/report.hpp"
#include "strategies/spec_table.hpp"

namespace shardsim {

// `experiment` is the experiment as resolved.
[[nodiscard]] std::string report_specs(const SpecTable& table, const Json& experiment,
                                       Format format, std::size_t width = default_text_width);
// Text pictures of the parameters whose names the pattern is found in; layers that are alike once.
[[nodiscard]] std::string specs_pictures(const SpecTable& table, const Pattern& names);

}  // namespace shardsim
