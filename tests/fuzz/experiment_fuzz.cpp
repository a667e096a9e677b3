// An experiment's resolved form is itself an experiment, and resolves to itself.
#include "experiments/experiment.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardsim::fuzz_reader(data, size, [](const shardsim::Json& document) {
    return *shardsim::read_experiments(document, "input.json").front().resolved;
  });
  return 0;
}
