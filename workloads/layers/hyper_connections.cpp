#include "workloads/layers/hyper_connections.hpp"

namespace shardsim::models {
namespace {

// Of all numbers of a token, in fp32, of one length.
Node made_maps(Sketch& s, const HyperConnections& h, const std::string& name, Node streams,
               const Axis& all) {
  const Axes axes = s.axes_of(streams);
  const Norm norm{NormKind::rms_plain, "input_norm"};
  const Sketch::Linear matrix{.name = name, .in = 2, .bare = true, .fp32 = true};
  const Node wide = s.cast(streams, DType::f32);
  if (h.independent) return s.product_normed(norm, matrix, wide, {axes[2], axes[3]}, {all});
  return s.linear(matrix, s.norm(norm, wide, {axes[2], axes[3]}), {all});
}

// sigmoid(x scale + base).
Node opened(Sketch& s, Node x, Node scale, Node base) {
  return s.apply(PointFunction::sigmoid, s.add(s.multiply(x, scale), base));
}

}  // namespace

Axes stream_axes(const Sketch& s, const HyperConnections& h, std::int64_t hidden) {
  return {s.batch(), s.sequence(), {"streams", h.streams}, {"hidden", hidden, AxisRole::hidden}};
}

HyperMaps read_streams(Sketch& s, const HyperConnections& h, const std::string& module,
                       Node streams) {
  const Axes axes = s.axes_of(streams);
  const Axis one = axes[2], from{"read_streams", h.streams}, to{"written_streams", h.streams};
  const std::int64_t mixing = h.independent ? 0 : h.streams * h.streams;
  const Axis all{"maps", 2 * h.streams + mixing};
  const auto of_token = [&](Axes more) {
    more.insert(more.begin(), {axes[0], axes[1]});
    return more;
  };
  std::vector<Axes> of_maps{{one}, {one}}, of_tokens{of_token({one}), of_token({one})};
  if (mixing > 0) {
    of_maps.push_back({from, to});
    of_tokens.push_back(of_token({from, to}));
  }
  HyperMaps maps;
  Node comb = no_node;
  {
    const Sketch::In in(s, module);
    const std::vector<Node> parts = s.parts(made_maps(s, h, "fn", streams, all), of_tokens);
    const std::vector<Node> base = s.parts(s.parameter("base", {all}), of_maps);
    const Axis kinds{"kinds_of_maps", static_cast<std::int64_t>(of_maps.size())};
    const std::vector<Node> scale =
        s.parts(s.parameter("scale", {kinds}), std::vector<Axes>(of_maps.size()));
    const Node pre = s.scaled(opened(s, parts[0], scale[0], base[0]));
    maps.post = s.scaled(opened(s, parts[1], scale[1], base[1]));
    if (mixing > 0) {
      comb = s.scaled(s.softmax(s.add(s.multiply(parts[2], scale[2]), base[2]), to, /*fp32=*/true));
      comb = s.balanced(comb, from, to, h.balancings);
    }
    maps.read = s.weighted_sum("read", streams, pre, one);
  }
  maps.mixed = streams;
  if (mixing == 0) return maps;
  maps.post = s.cast(maps.post, DType::bf16);
  const Axes read{axes[0], axes[1], from, axes[3]}, written{axes[0], axes[1], to, axes[3]};
  const Node mixed =
      s.product(module + ".mixed", s.view(streams, read), s.cast(comb, DType::bf16), written);
  maps.mixed = s.view(mixed, axes);
  return maps;
}

Node write_streams(Sketch& s, const HyperConnections& h, const HyperMaps& maps, Node given) {
  if (h.independent) given = s.cast(given, DType::f32);
  const Node each = s.expand(given, s.axes_of(maps.mixed));
  const Node sum = s.add(s.multiply(each, maps.post), maps.mixed);
  return h.independent ? s.cast(sum, DType::bf16) : sum;
}

Node leave_streams(Sketch& s, const HyperConnections& h, Node streams) {
  const Axes axes = s.axes_of(streams);
  const Node made = made_maps(s, h, "hc_fn", streams, {"head_maps", h.streams});
  const Node base = s.parameter("hc_base", {axes[2]});
  const Node scale = s.parameter("hc_scale", {{"one", 1}});
  const Node maps = s.view(made, {axes[0], axes[1], axes[2]});
  const Node read = opened(s, maps, s.cast(scale, DType::f32), s.cast(base, DType::f32));
  return s.weighted_sum("read", streams, s.scaled(read), axes[2]);
}

}  // namespace shardsim::models
