// Overrides from the command line, one PATH=VALUE a line, laid over an experiment: it is read or
// refused, and what is read resolves to itself.
#include "tests/fuzz/resolved.hpp"

namespace {

constexpr std::string_view experiment = R"({
  "workload": {"model": "gpt2", "batch": 8, "sequence": 128},
  "mesh": {"data": 2, "fsdp": 4},
  "strategy": "fsdp",
  "machine": "dgx-h100",
  "variants": [{"name": "a"}, {"name": "b", "workload": {"batch": 16}}]
})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json document = parse_json(experiment, "input.json");
  std::vector<Experiment> experiments;
  try {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      at = end + 1;
      const std::size_t equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      apply_override(document, std::string(line.substr(0, equals)),
                     std::string(line.substr(equals + 1)));
    }
    experiments = read_experiments(document, "input.json");
  } catch (const InputError&) {
    return 0;
  }
  for (const Experiment& read : experiments) require_resolves_to_itself(*read.resolved);
  return 0;
}
