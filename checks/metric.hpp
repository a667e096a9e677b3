// What `check` compares of an experiment: named numbers, of which less is better.
//
//   step_time_s, exposed_communication_s           seconds
//   fits                                           1 or 0, and 1 is better
//   peak_bytes, by_category.activations, ...       bytes of the device that needs most
//   wire_bytes                                     what a device sends in a step
//   wire_bytes.all-gather, calls.all-gather        of all collectives of a kind
//   wire_bytes.all-gather over fsdp, calls. ...    of those over these axes
//   parameter_bytes                                of a tree, on the device that holds most
//   replicated_parameters                          tensors that every device holds whole
//   newly_replicated_parameters, newly_unmatched_rules   against the baseline
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

enum class MetricUnit : std::uint8_t { seconds, bytes, count, flag };

[[nodiscard]] MetricUnit unit_of(std::string_view metric);
// "863.05 ms", "27.0 GiB", "66", "fits".
[[nodiscard]] std::string format_metric(std::string_view metric, double value);
// The change with its sign, and as a part of what was: "+18.23 ms (+2.1 %)".
[[nodiscard]] std::string format_change(std::string_view metric, double before, double now);
// For people: "calls of all-gather over fsdp", "peak memory".
[[nodiscard]] std::string metric_label(std::string_view metric);

// "calls" of "calls.all-gather over fsdp"; the whole of one without parts.
[[nodiscard]] std::string_view metric_family(std::string_view metric);
// Those that limits can name: families, of which by_category, calls and wire_bytes have parts.
[[nodiscard]] const std::vector<std::string>& metric_families();
[[nodiscard]] bool has_parts(std::string_view family);

// Of traffic, the part of `calls` and `wire_bytes`: "all-gather over fsdp".
[[nodiscard]] std::string traffic_part(std::string_view kind, std::string_view over);
// "all-gather" of "all-gather over fsdp", and of "all-gather".
[[nodiscard]] std::string_view kind_of_part(std::string_view part);
// "fsdp" of "all-gather over fsdp", and of the metric of that; empty of all of a kind.
[[nodiscard]] std::string_view axes_of_part(std::string_view part);
// Whether a part, or the metric of one, is that over some axes, not all of a kind.
[[nodiscard]] bool is_over_axes(std::string_view part);

}  // namespace shardsim
