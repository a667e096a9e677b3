#include "workloads/models/families/upernet_head.hpp"

namespace shardsim::models {
namespace {

Ref module(Draft& d, const UpernetNames& names, const std::string& name, std::int64_t out,
           std::int64_t kernel, Ref x) {
  const Draft::In of(d, name);
  x = d.convolve(square(names.convolution, out, kernel, 1, /*bias=*/false), x);
  return d.activate("relu", d.batch_norm(names.norm, x), "activation");
}

// A picture beside means of it over squares, of as many a side as each scale says.
Ref scales_beside(const Config& c, Draft& d, const UpernetNames& names, std::int64_t width, Ref x) {
  std::vector<Ref> parts{x};
  const std::vector<std::int64_t> scales = c.sizes("pool_scales", {1, 2, 3, 6});
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const Ref pooled = d.pool({.largest = false, .to = scales[i]}, x);
    const std::string name = names.before_scale + std::to_string(i) + names.behind_scale;
    parts.push_back(d.resize_as(module(d, names, name, width, 1, pooled), x));
  }
  return module(d, names, names.bottleneck, width, 3, d.beside(parts));
}

}  // namespace

Ref upernet_head(const Config& c, Draft& d, const UpernetNames& names,
                 const std::vector<Ref>& pictures, std::int64_t width) {
  const Draft::In of(d, "decode_head");
  const std::size_t last = pictures.size() - 1;
  std::vector<Ref> sides;
  for (std::size_t s = 0; s < last; ++s) {
    sides.push_back(module(d, names, "lateral_convs." + std::to_string(s), width, 1, pictures[s]));
  }
  sides.push_back(scales_beside(c, d, names, width, pictures[last]));
  for (std::size_t s = last; s > 0; --s) {
    sides[s - 1] = d.sum(sides[s - 1], d.resize_as(sides[s], sides[s - 1]));
  }
  std::vector<Ref> out;
  for (std::size_t s = 0; s < last; ++s) {
    out.push_back(module(d, names, "fpn_convs." + std::to_string(s), width, 3, sides[s]));
  }
  out.push_back(sides[last]);
  for (std::size_t s = last; s > 0; --s) out[s] = d.resize_as(out[s], out[0]);
  const Ref joined = last > 0 ? d.beside(out) : out[0];
  return d.convolve(patches("classifier", labels_of(c), 1),
                    module(d, names, "fpn_bottleneck", width, 3, joined));
}

Ref upernet_auxiliary_head(const Config& c, Draft& d, const UpernetNames& names, Ref picture,
                           std::int64_t channels) {
  const Draft::In of(d, "auxiliary_head");
  const std::int64_t width = c.size("auxiliary_channels", 256);
  const std::int64_t convolutions = c.count("auxiliary_num_convs", 1);
  if (convolutions == 0 && width != channels) {
    c.fail("auxiliary_num_convs",
           "0 leaves the encoder's channels, which auxiliary_channels are not");
  }
  Ref x = picture;
  for (std::int64_t i = 0; i < convolutions; ++i) {
    x = module(d, names, "convs." + std::to_string(i), width, 3, x);
  }
  if (c.flag("auxiliary_concat_input", false)) {
    x = module(d, names, "conv_cat", width, 3, d.beside({picture, x}));
  }
  return d.convolve(patches("classifier", labels_of(c), 1), x);
}

}  // namespace shardsim::models
