// Rotary positions of queries and keys.
#include <algorithm>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {
namespace {

// cos and sin of the current kind's layers.
const GraphContext::RotaryTable& rotary_table(GraphContext& c, const Rotary& rotary, LabelId dims) {
  const auto known = std::find_if(c.rotary.begin(), c.rotary.end(),
                                  [&](const auto& table) { return table.dims == dims; });
  if (known != c.rotary.end()) return *known;
  const DType dtype = rotary.fp32 ? DType::f32 : c.g.compute_dtype();
  const Dims angles{{c.sequence}, {dims}};
  c.rotary.push_back(
      {dims, c.g.constant("rope.cos", dtype, angles), c.g.constant("rope.sin", dtype, angles)});
  return c.rotary.back();
}

}  // namespace

void turn(GraphContext& c, const Rotary& rotary, const std::string& at, LabelId head_dim,
          TensorId& q, TensorId& k) {
  const std::int64_t size = c.g.label_size(head_dim);
  if (rotary.dims == size) {
    const GraphContext::RotaryTable table = rotary_table(c, rotary, head_dim);
    q = c.g.rope(at + ".q_rope", q, table.cos, table.sin, head_dim);
    if (k != no_tensor) k = c.g.rope(at + ".k_rope", k, table.cos, table.sin, head_dim);
    return;
  }
  // A part of each head: what is turned and the rest are put together again.
  const LabelId turned = c.label("rotary_dim", rotary.dims);
  const LabelId rest = c.label("still_dim", size - rotary.dims);
  const GraphContext::RotaryTable table = rotary_table(c, rotary, turned);
  const auto turn_part = [&](const std::string& name, TensorId x) {
    Dims whole = c.g.dims_of(x);
    const auto part = [&](LabelId label) {
      Dims dims = whole;
      dims.back() = {label};
      return dims;
    };
    const std::vector<TensorId> parts = c.g.slices(
        name + ".parts", x, {{name + ".turned", part(turned)}, {name + ".still", part(rest)}},
        {head_dim, turned, rest});
    const TensorId y = c.g.rope(name + "_rope", parts[0], table.cos, table.sin, turned);
    return c.g.concatenate(name, {y, parts[1]}, whole, {head_dim, turned, rest});
  };
  q = turn_part(at + ".q", q);
  if (k != no_tensor) k = turn_part(at + ".k", k);
}

}  // namespace shardsim::models
