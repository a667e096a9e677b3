// Measured tables (collective_measurement.hpp) from files of whatever form: tables as they are,
// what nccl-tests print (nccl_tests_output.hpp), traces of the PyTorch profiler (kineto_trace.hpp),
// each of them compressed with gzip or not, and folders of traces.
//
// Traces of one folder and world size are one job's, of one rank each; in a folder every file is
// read that ends in .json or .json.gz and is a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim {

struct MeasuredTable {
  std::string file;  // or folder
  Json table;
};

// In the order of the paths. `devices_per_node` says where ranks of traces lie, as they do not.
// Throws InputError for what is none of these.
[[nodiscard]] std::vector<MeasuredTable> load_measured_tables(
    const std::vector<std::string>& paths, const std::optional<std::int64_t>& devices_per_node);

// Devices of a host of that machine; nothing where it is none of hosts.
[[nodiscard]] std::optional<std::int64_t> devices_of_host(const std::string& machine,
                                                          const Place& place);

}  // namespace shardsim
