// A schedule as CSV: what is accepted, written and read again is the same, and what verify passes
// runs with its messages. The same bytes as a layout of layers.
#include "strategies/layout/layout_string.hpp"
#include "strategies/schedule/dry_run.hpp"
#include "strategies/schedule/messages.hpp"
#include "strategies/schedule/schedule_text.hpp"
#include "strategies/schedule/verify.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

void try_layout(std::string_view text) {
  try {
    (void)shardsim::expand_layout(text, {"layout", ""});
  } catch (const shardsim::InputError&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_layout(text);
  try {
    const PipelineSchedule schedule = read_schedule_csv(text, "schedule.csv");
    if (read_schedule_csv(schedule_csv(schedule), "schedule.csv") != schedule) std::abort();
    verify(schedule, {"schedule.csv", ""});
    const auto calls = with_messages(computations(schedule), schedule.shape, Receives::with_sends);
    if (dry_run(schedule.shape, calls, Durations{}).stuck) std::abort();
  } catch (const InputError&) {
    return 0;
  }
  return 0;
}
