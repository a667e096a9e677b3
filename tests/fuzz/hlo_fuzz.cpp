// HLO text from strangers: whatever is accepted becomes a plan that keeps its promises.
#include "base/error.hpp"
#include "hlo/to_plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    std::string text(reinterpret_cast<const char*>(data), size);
    const auto module = shardsim::HloModule::parse(std::move(text), "input.hlo");
    shardsim::verify(shardsim::plan_from_hlo(module, {}));
  } catch (const shardsim::InputError&) {
  }
  return 0;
}
