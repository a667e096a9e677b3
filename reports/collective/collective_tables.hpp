// What the formats of a collective's report share: its rows as figures, its table, its sentences.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/collective_experiment.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {

struct CollectiveFigures {
  Bytes bytes{0};
  Seconds time{0};
  Seconds launch{0};  // launch + latency + transfer = time
  Seconds latency{0};
  Seconds transfer{0};
  Bandwidth algorithm_bandwidth{0};
  Bandwidth bus_bandwidth{0};
  std::string algorithm;
  std::string protocol;
  double factor = 1;  // that calibration stretched the model by, in all three terms
  std::optional<Seconds> nccl_estimate;
  std::optional<tpu::Choice> tpu;
  std::string tpu_choice;  // in words; empty where `tpu` is
  std::optional<Seconds> measured;
  std::optional<Bandwidth> measured_bus_bandwidth;
  std::optional<double> relative_error;
};

// By size as in the prediction.
[[nodiscard]] std::vector<CollectiveFigures> figures_of(const CollectivePrediction& prediction);

// The columns of nccl-tests, in its units, and the breakdown; where something was measured that and
// the error, where NCCL's or the TPU compiler's choice is known that and its estimate.
[[nodiscard]] Table collective_table(const CollectivePrediction& prediction);
// The names in CSV of the table's columns: "bytes", "time_s", ...
[[nodiscard]] std::vector<std::string_view> collective_columns(
    const CollectivePrediction& prediction);

// "all-reduce over 16 devices on dgx-h100"
[[nodiscard]] std::string title_of(const CollectivePrediction& prediction);
// "2 nodes with 8 each, H100 SXM5 80 GB", "4x4, TPU v5e"
[[nodiscard]] std::string subject_of(const CollectivePrediction& prediction);
// "h100_dgx_1n8g_allreduce (NVIDIA/...)"; empty where nothing was measured.
[[nodiscard]] std::string measured_what(const CollectivePrediction& prediction);
// "absolute error over 24 sizes: median 12.1 %, 90th percentile 30.5 %"; empty as above.
[[nodiscard]] std::string error_sentence(const CollectivePrediction& prediction);

}  // namespace shardsim
