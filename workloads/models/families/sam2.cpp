// SAM 2's encoder of images (arXiv:2408.00714): Hiera, stages of windows that become fewer and
// wider, and pictures of all stages, of which the smaller ones are added to the larger.
//
// Names and defaults as in transformers 5.23, modeling_sam2.py and configuration_sam2.py.
#include <algorithm>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct HieraSizes {
  std::vector<std::int64_t> blocks, widths, heads, windows, global;
  std::int64_t image = 0, stride = 0, pooled_stages = 0;
  double ratio = 0;
  std::string activation;
};

// Two equal numbers of a list, or one.
std::int64_t both_sides(const Config& c, std::string_view key, std::int64_t otherwise) {
  const auto value = c.json().find(key);
  if (!value || !value->is_array()) return c.size(key, otherwise);
  const std::vector<std::int64_t> sides = c.sizes(key, {});
  if (sides.size() != 2 || sides[0] != sides[1]) c.fail(key, "is not of two equal sides");
  return sides[0];
}

HieraSizes read_hiera(const Config& c) {
  HieraSizes n{.blocks = c.sizes("blocks_per_stage", {1, 2, 7, 2}),
               .widths = c.sizes("embed_dim_per_stage", {96, 192, 384, 768}),
               .heads = c.sizes("num_attention_heads_per_stage", {1, 2, 4, 8}),
               .windows = c.sizes("window_size_per_stage", {8, 4, 14, 7}),
               .global = c.integers("global_attention_blocks"),
               .image = both_sides(c, "image_size", 1024),
               .stride = both_sides(c, "query_stride", 2),
               .pooled_stages = c.count("num_query_pool_stages", 3),
               .ratio = c.ratio("mlp_ratio", 4),
               .activation = c.activation("hidden_act", "gelu")};
  if (!c.given("global_attention_blocks")) n.global = {5, 7, 9};
  for (const auto* list : {&n.widths, &n.heads, &n.windows}) {
    if (list->size() != n.blocks.size()) {
      c.fail("blocks_per_stage", "has not one entry for each stage of the other lists");
    }
  }
  for (std::size_t s = 0; s < n.heads.size(); ++s) {
    static_cast<void>(
        c.divided("embed_dim_per_stage", n.widths[s], "num_attention_heads_per_stage", n.heads[s]));
  }
  c.pass_over({"num_attention_heads"});
  return n;
}

Ref hiera_pooled(Draft& d, std::int64_t stride, Ref rows) {
  if (stride == 1) return rows;
  return d.rows(d.pool({.kernel = {stride, stride}, .stride = {stride, stride}}, d.picture(rows)));
}

struct HieraBlock {
  std::int64_t from = 0, width = 0, heads = 0, window = 0, stride = 1;
};

Ref hiera_block(Draft& d, const HieraSizes& n, const HieraBlock& b, Ref x) {
  Ref read = d.norm(row_norm("layer_norm1"), x);
  if (b.from != b.width) {
    x = hiera_pooled(d, b.stride, d.linear({.name = "proj", .out = b.width}, read));
  }
  const PooledAttention attention{.heads = b.heads, .width = b.width, .stride = b.stride};
  if (b.window > 0) {
    read = d.draw({attention, "attn"}, {d.windows(b.window, read)});
    read = d.from_windows(b.window / b.stride, read, x);
  } else {
    read = d.draw({attention, "attn"}, {read});
  }
  x = d.sum(x, read);
  const auto inner = static_cast<std::int64_t>(n.ratio * static_cast<double>(b.width));
  return d.sum(x, d.mlp("mlp.proj_in", "mlp.proj_out", inner, b.width, n.activation,
                        d.norm(row_norm("layer_norm2"), x)));
}

// What each stage leaves, rows.
std::vector<Ref> hiera_stages(const Config& c, Draft& d, const HieraSizes& n,
                              const std::string& prefix) {
  const std::int64_t hidden = c.size("hidden_size", 96);
  if (hidden != n.widths.front()) c.fail("hidden_size", "is not the first stage's width");
  Convolve cut = square(prefix + "patch_embed.projection", hidden,
                        both_sides(c, "patch_kernel_size", 7), both_sides(c, "patch_stride", 4));
  const std::int64_t padding = both_sides(c, "patch_padding", 3);
  cut.padding = {padding, padding};
  Ref x = d.rows(d.convolve(cut, d.image(c.size("num_channels", 3))));
  const auto background = c.sizes("window_positional_embedding_background_size", {7, 7});
  if (background.size() != 2) {
    c.fail("window_positional_embedding_background_size", "is not of rows and columns");
  }
  // One module has both tables and the blocks.
  const std::string module = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1);
  x = d.draw({WindowPositions{background[0], background[1], n.windows.front()}, module}, {x});
  std::vector<Ref> left;
  std::int64_t number = 0;
  for (std::size_t s = 0; s < n.blocks.size(); ++s) {
    for (std::int64_t i = 0; i < n.blocks[s]; ++i, ++number) {
      d.layer(prefix + "blocks", number, "stage" + std::to_string(s));
      const bool begins = s > 0 && i == 0;
      HieraBlock b{.from = n.widths[begins ? s - 1 : s],
                   .width = n.widths[s],
                   .heads = n.heads[s],
                   .window = n.windows[begins ? s - 1 : s]};
      if (begins && static_cast<std::int64_t>(s) <= n.pooled_stages) b.stride = n.stride;
      if (std::find(n.global.begin(), n.global.end(), number) != n.global.end()) b.window = 0;
      if (b.stride > 1 && (b.window == 0 || b.window % b.stride != 0)) {
        c.fail("global_attention_blocks",
               "a stage that pools its queries begins in windows, of a "
               "multiple of query_stride");
      }
      if (b.stride > 1 && b.from == b.width) {
        c.fail("embed_dim_per_stage", "a stage that pools its queries has to change its width");
      }
      x = hiera_block(d, n, b, x);
    }
    left.push_back(x);
    d.note("stage " + std::to_string(s) + ": " + std::to_string(n.blocks[s]) + " blocks of " +
           std::to_string(n.heads[s]) + " heads, width " + std::to_string(n.widths[s]));
  }
  d.outside("neck");
  return left;
}

ModelSpec hiera_spec(Draft& d, const HieraSizes& n) {
  ModelSpec spec;
  spec.network = d.finish({.side = n.image, .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec hiera_model(const Config& c) {
  Draft d;
  const HieraSizes n = read_hiera(c);
  d.sum_loss(hiera_stages(c, d, n, "").back());
  return hiera_spec(d, n);
}

// Of the smallest picture first; those of the levels that the list names have the next smaller one
// added.
std::vector<Ref> sam2_pictures(const Config& c, Draft& d, const std::string& prefix,
                               const std::vector<Ref>& stages, const HieraSizes& n) {
  const std::vector<std::int64_t> widths = c.sizes("backbone_channel_list", {768, 384, 192, 96});
  if (!std::equal(widths.begin(), widths.end(), n.widths.rbegin(), n.widths.rend())) {
    c.fail("backbone_channel_list", "are not the stages' widths, the last one's first");
  }
  std::vector<std::int64_t> added = c.integers("fpn_top_down_levels");
  if (!c.given("fpn_top_down_levels")) added = {2, 3};
  const std::int64_t out = c.size("fpn_hidden_size", 256);
  Convolve side = square("", out, c.size("fpn_kernel_size", 1), c.size("fpn_stride", 1));
  const std::int64_t padding = c.count("fpn_padding", 0);
  side.padding = {padding, padding};
  std::vector<Ref> left;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const std::size_t level = stages.size() - 1 - k;
    side.name = prefix + "neck.convs." + std::to_string(k);
    Ref x = d.convolve(side, d.picture(stages[level]));
    const bool joins =
        std::find(added.begin(), added.end(), static_cast<std::int64_t>(level)) != added.end();
    if (joins && k > 0) {
      x = d.sum(x, d.narrow(d.resize({.times = 2}, d.wide(left.back()))));
    }
    left.push_back(x);
  }
  return left;
}

ModelSpec sam2_vision(const Config& c) {
  Draft d;
  const Config backbone = part(c, "backbone_config");
  const HieraSizes n = read_hiera(backbone);
  const std::vector<Ref> stages = hiera_stages(backbone, d, n, "backbone.");
  const std::vector<Ref> pictures = sam2_pictures(c, d, "", stages, n);
  c.pass_over({"backbone_feature_sizes", "hidden_act"});
  const auto levels = static_cast<std::size_t>(c.size("num_feature_levels", 3));
  if (levels > pictures.size()) c.fail("num_feature_levels", "is more than there are stages");
  d.sum_loss(stages.back());
  for (std::size_t i = pictures.size() - levels; i < pictures.size(); ++i) d.sum_loss(pictures[i]);
  return hiera_spec(d, n);
}

}  // namespace

std::vector<Family> sam2_families() {
  return {{"Sam2VisionModel", "sam2_vision_model", sam2_vision},
          {"Sam2HieraDetModel", "sam2_hiera_det_model", hiera_model}};
}

}  // namespace shardsim::models
