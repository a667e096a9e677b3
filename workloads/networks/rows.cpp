#include "workloads/networks/rows.hpp"

#include <algorithm>

namespace shardsim::models {

Convolve patches(std::string name, std::int64_t out, std::int64_t side) {
  return {.name = std::move(name), .out = out, .kernel = {side, side}, .stride = {side, side}};
}

Convolve square(std::string name, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                bool bias) {
  return {.name = std::move(name),
          .out = out,
          .kernel = {kernel, kernel},
          .stride = {stride, stride},
          .padding = {kernel / 2, kernel / 2},
          .bias = bias};
}

std::int64_t rounded_width(double width, std::int64_t multiple, std::int64_t least) {
  const auto up = static_cast<std::int64_t>(width + static_cast<double>(multiple) / 2);
  std::int64_t rounded = std::max(least, up / multiple * multiple);
  constexpr double most_lost = 0.9;
  if (static_cast<double>(rounded) < most_lost * width) rounded += multiple;
  return rounded;
}

Ref row_layer(Draft& d, const RowLayer& n, Ref x) {
  const auto onto = [&](Ref out, const std::string& scale) {
    out = d.drop(n.dropout, out);
    if (!scale.empty()) out = d.factor(scale, out);
    return d.sum(d.drop_path(n.drop_path, out), x);
  };
  Ref read = n.norms_behind ? x : d.norm(row_norm(n.first_norm), x);
  x = onto(n.attend ? n.attend(d, read) : d.attend(n.attention, read, read, read), n.first_scale);
  if (n.norms_behind) x = d.norm(row_norm(n.first_norm), x);
  read = n.norms_behind ? x : d.norm(row_norm(n.second_norm), x);
  Ref inner = d.linear({.name = n.up, .out = n.width, .inner = true}, read);
  inner = d.drop(n.inner_dropout, d.activate(n.activation, inner));
  x = onto(d.linear({.name = n.down, .out = n.hidden}, inner), n.second_scale);
  return n.norms_behind ? d.norm(row_norm(n.second_norm), x) : x;
}

}  // namespace shardsim::models
