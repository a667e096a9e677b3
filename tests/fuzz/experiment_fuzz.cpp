// An experiment's resolved form is itself an experiment, and resolves to itself.
#include "tests/fuzz/resolved.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  std::vector<Experiment> experiments;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    experiments = read_experiments(parse_json(text, "input.json"), "input.json");
  } catch (const InputError&) {
    return 0;
  }
  for (const Experiment& read : experiments) require_resolves_to_itself(*read.resolved);
  return 0;
}
