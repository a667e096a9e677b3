#include "workloads/layers/mixers.hpp"

#include "workloads/layers/count_sketch.hpp"

namespace shardsim::models {

Node draw(Sketch& s, const Mixer& mixer, Node x) {
  return std::visit([&](const auto& what) { return draw(s, what, x); }, mixer.what);
}

Value run(Eager& e, const Mixer& mixer, const Value& x, Context& context) {
  CountSketch sketch(e, context, x);
  return Eager::view(sketch.value(draw(sketch, mixer, sketch.entered())), x.shape);
}

std::int64_t sequence_step(const Mixer& mixer) {
  if (const auto* windows = std::get_if<WindowedAttention>(&mixer.what)) return windows->window;
  const auto* blocks = std::get_if<BlockAttention>(&mixer.what);
  return blocks != nullptr && blocks->blocks ? blocks->block : 1;
}

namespace {

template <class... Kinds>
bool is_one_of(const Mixer& mixer) {
  return (std::holds_alternative<Kinds>(mixer.what) || ...);
}

}  // namespace

bool generates(const Mixer& mixer) {
  return is_one_of<DifferentialAttention, LightningAttention, CompressedAttention, RwkvTimeMix,
                   RwkvChannelMix, StreamNorm, MatrixMemory, IndexedAttention>(mixer);
}

std::string to_text(const Mixer& mixer) {
  return std::visit([](const auto& what) { return to_text(what); }, mixer.what);
}

}  // namespace shardsim::models
