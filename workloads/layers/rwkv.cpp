#include "workloads/layers/rwkv.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

// A token and the one before it, by a number of each channel.
Node mixed(Sketch& s, const char* name, Node x, Node before) {
  const Node share = s.parameter(name, {{"one", 1}, {"first", 1}, s.axes_of(x).back()});
  return s.add(s.multiply(x, share), s.multiply(before, s.scaled(share)));
}

}  // namespace

Node draw(Sketch& s, const RwkvTimeMix& m, Node x) {
  const Sketch::In in(s, "attention");
  s.note("WKV is priced as a scan of one state for each channel, in one kernel");
  const Axis hidden = s.axes_of(x).back(), width{"wkv_width", m.width, AxisRole::width};
  const Node decay = s.parameter("time_decay", {width});
  const Node first = s.parameter("time_first", {width});
  const Node before = s.before("shift", x);
  const auto project = [&](const char* module, const char* mix) {
    return s.linear({module}, mixed(s, mix, x, before), {width});
  };
  const Node k = project("key", "time_mix_key");
  const Node v = project("value", "time_mix_value");
  const Node r = s.apply(PointFunction::sigmoid, project("receptance", "time_mix_receptance"));
  s.keeps_numbers(DType::f32, {width});  // of the decays
  const Node wkv = s.recur({.name = "wkv",
                            .operands = {k, v, decay, first},
                            .result = {s.batch(), s.sequence(), width},
                            .state = {s.batch(), width, {"wkv_state", 3}},
                            .operations = static_cast<double>(wkv_operations) / 3,
                            .dtype = DType::f32});
  return s.linear({"output"}, s.multiply(r, wkv), {hidden});
}

Node draw(Sketch& s, const RwkvChannelMix& m, Node x) {
  const Sketch::In in(s, "feed_forward");
  const Axis hidden = s.axes_of(x).back();
  const Node before = s.before("shift", x);
  const Node key = s.linear({"key"}, mixed(s, "time_mix_key", x, before), {width_axis(m.width)});
  const Node value = s.linear({"value"}, s.activate("relu2", key), {hidden});
  const Node gate = s.linear({"receptance"}, mixed(s, "time_mix_receptance", x, before), {hidden});
  return s.multiply(s.apply(PointFunction::sigmoid, gate), value);
}

Node draw(Sketch& s, const StreamNorm& n, Node x) {
  return s.norm(n.norm, x, {s.axes_of(x).back()});
}

std::string to_text(const RwkvTimeMix& m) { return fmt::format("WKV of {} channels", m.width); }
std::string to_text(const RwkvChannelMix& m) {
  return fmt::format("gated MLP of {} over two tokens", m.width);
}
std::string to_text(const StreamNorm& n) {
  return fmt::format("{} of the stream", name_of(n.norm.kind));
}

}  // namespace shardsim::models
