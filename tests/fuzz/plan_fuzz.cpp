// Plans from strangers: whatever is accepted has passed verify() and keeps everything on paper.
#include "plan/plan_io.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardsim::fuzz_reader(data, size, [](const shardsim::Json& document) {
    const shardsim::Plan plan =
        shardsim::plan_from_json(shardsim::JsonReader(document, {"input.json", ""}));
    shardsim::verify(plan);
    (void)shardsim::plan_to_text(plan);
    (void)shardsim::plan_to_dot(plan);
    return shardsim::plan_to_json(plan);
  });
  return 0;
}
