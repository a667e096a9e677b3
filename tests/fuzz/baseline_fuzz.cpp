// A baseline from a repository, or its limits: what is accepted, written and read again is
// the same.
#include "checks/baseline.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  Baseline baseline;
  try {
    baseline = read_baseline({reinterpret_cast<const char*>(data), size}, "baseline.json");
  } catch (const InputError&) {
    return 0;
  }
  const std::string text = baseline_text(baseline);
  const Baseline again = read_baseline(text, "baseline.json");
  require_same(parse_json(text, "baseline.json"),
               parse_json(baseline_text(again), "baseline.json"));
  if (again.experiments != baseline.experiments) {
    std::cerr << "written and read again, the experiments differ:\n" << text;
    std::abort();
  }
  return 0;
}
