// A user's own hardware profile.
#include "hardware_profiles/profile_io.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardsim::fuzz_reader(data, size, [](const shardsim::Json& document) {
    return shardsim::profile_to_json(shardsim::read_profile(document, "input.json"));
  });
  return 0;
}
