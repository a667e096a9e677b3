// A launch script, TOML, YAML or JSON from strangers, as each framework's file: what is accepted is
// an experiment.
#include "launch/launch.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const LaunchFramework& framework : launch_frameworks()) {
    LaunchOptions options{.devices = 8};
    if (framework.name == "deepspeed") {
      options.model = OwnedJson(Json("gpt2"));
      options.mesh = "dp=8";
      options.sequence = 16;
    }
    try {
      (void)imported_to_json(import_launch(framework.name, text, "input", options));
    } catch (const InputError&) {
      continue;
    }
  }
  return 0;
}
