// A measured table of a collective, and the sizes of a sweep: they are read or refused.
#include "measurements/collective_measurement.hpp"
#include "measurements/size_sweep.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

template <class Read>
void read_or_refuse(Read read) {
  try {
    static_cast<void>(read());
  } catch (const shardsim::InputError&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    return shardsim::read_measurement(shardsim::parse_json(text, "input.json"), "input.json", {});
  });
  read_or_refuse([&] { return shardsim::parse_sizes(text, {"input", ""}); });
  return 0;
}
