// HLO text and assignments of buffers from strangers: whatever is accepted becomes a plan that
// keeps its promises, and a program does not differ from itself.
#include <cstdlib>

#include "base/error.hpp"
#include "hlo/buffer_assignment.hpp"
#include "hlo/diff.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    std::string text(reinterpret_cast<const char*>(data), size);
    if (text.starts_with("BufferAssignment:")) {
      static_cast<void>(shardsim::parse_buffer_assignment(text, "input.txt").peak());
      return 0;
    }
    const auto module = shardsim::HloModule::parse(std::move(text), "input.hlo");
    const auto summary = shardsim::summarize_hlo(module, {});
    const auto diff = shardsim::diff_hlo(summary, summary);
    if (!diff.collectives.empty() || !diff.work.empty() || !diff.opcodes.empty()) std::abort();
  } catch (const shardsim::InputError&) {
  }
  return 0;
}
