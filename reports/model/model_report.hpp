// What a model is made of, of workloads/models/walk.hpp, as text, JSON, CSV, Markdown or one HTML
// file. JSON is "shardsim/model/1"; parameters and layers that differ in their number alone are one
// row.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "reports/format/report.hpp"
#include "workloads/models/walk.hpp"

namespace shardsim {

struct ModelReport {
  models::ModelSpec spec;
  models::Point point;
  models::ModelCounts counts;
};

// `width`: of text, in characters.
[[nodiscard]] std::string report_model(const ModelReport& model, Format format,
                                       std::size_t width = default_text_width);

// `model list`: the families that are known and the models that are shipped.
struct KnownFamily {
  std::string model_type;
  std::string architecture;
};
[[nodiscard]] std::string report_families(const std::vector<KnownFamily>& families,
                                          const std::vector<std::string>& shipped, bool json,
                                          std::size_t width = default_text_width);

}  // namespace shardsim
