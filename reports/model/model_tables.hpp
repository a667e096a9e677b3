// The tables of a model's report, made once for all formats.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/format/tables.hpp"
#include "reports/model/model_report.hpp"

namespace shardsim {

// One layer, or several that are alike in everything.
struct LayerRow {
  std::string pattern;  // "0-31"; with its stack's name where there are several
  std::string kind;
  std::int64_t layers = 0;
  models::LayerCounts one;  // figures of one of them
};
[[nodiscard]] std::vector<LayerRow> layer_rows(const ModelReport& model);

// One parameter, or several that differ in the numbers of their names alone.
struct ParameterRow {
  std::string name;               // "{}" for each number
  std::vector<std::string> sets;  // of the numbers
  std::string text;               // "layers.{0-31}.w"
  std::int64_t instances = 0;
  models::Parameter one;
  std::int64_t elements = 0;  // of one
};
[[nodiscard]] std::vector<ParameterRow> parameter_rows(const ModelReport& model);

// FLOPs by what does them: matmul, grouped_matmul, attention, convolution, scan.
struct KindFlops {
  std::string kind;
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};
[[nodiscard]] std::vector<KindFlops> flops_by_kind(const models::ModelCounts& counts);

[[nodiscard]] std::string model_title(const ModelReport& model);
[[nodiscard]] std::vector<std::pair<std::string, std::string>> model_summary(
    const ModelReport& model);
[[nodiscard]] Table layers_table(const ModelReport& model);
[[nodiscard]] Table flops_table(const ModelReport& model);
[[nodiscard]] Table model_parameters_table(const ModelReport& model);

}  // namespace shardsim
