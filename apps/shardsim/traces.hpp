// Exports for other people's tools: the simulated step for viewers of traces, a file each; the plan
// as Chakra execution traces, a file per rank. docs/export.md.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"
#include "experiments/experiment.hpp"
#include "output.hpp"
#include "reports/traces/chakra.hpp"

namespace shardsim {

// "perfetto", "chrome": of a prediction that simulation_for_traces has made.
[[nodiscard]] std::vector<std::string> trace_formats();
[[nodiscard]] bool is_trace(const std::string& format);
[[nodiscard]] bool wants_trace(const std::vector<Output>& outputs);
// What a trace shows beside the times of tasks: memory and links over time.
[[nodiscard]] SimulationOptions simulation_for_traces();
[[nodiscard]] std::string render_trace(const Prediction& prediction, const std::string& format);

// --ranks, of which ranks a Chakra trace is written.
void add_ranks_option(boost::program_options::options_description& options);
// Takes the Chakra traces out of `outputs`: their paths. Throws UsageError for standard output,
// a path that does not end in .et, and --ranks without any.
[[nodiscard]] std::vector<std::string> take_chakra(const Given& given,
                                                   std::vector<Output>& outputs);
// What --ranks says; without it all up to most_ranks_unasked, else the first of every device class,
// which is said on standard error. Throws UsageError.
inline constexpr std::int64_t most_ranks_unasked = 256;
[[nodiscard]] std::vector<std::int64_t> chosen_ranks(const Given& given,
                                                     const ChakraTraces& traces);
// "step.et": step.0.et, step.1.et, ... and step.comm_groups.json, each written whole.
void write_chakra(const std::vector<std::string>& paths, const ChakraTraces& traces,
                  const std::vector<std::int64_t>& ranks);

}  // namespace shardsim
