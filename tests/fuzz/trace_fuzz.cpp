// A trace of the PyTorch profiler: its collectives become measured tables or it is refused.
#include "measurements/collective_measurement.hpp"
#include "measurements/trace_tables.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const shardsim::RankTrace trace = shardsim::read_trace(text, "input.json");
    for (const auto& table : shardsim::tables_of_traces({trace}, "input", "input", 8)) {
      static_cast<void>(shardsim::read_measurement(table, "input.json", {}));
    }
  } catch (const shardsim::InputError&) {
    return 0;
  }
  return 0;
}
