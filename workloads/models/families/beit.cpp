// BEiT (arXiv:2106.08254) and the images' half of data2vec (arXiv:2202.03555): a ViT whose scores
// have a learned bias of distances, in every layer its own table or one for all.
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/upernet_head.hpp"
#include "workloads/models/families/vision.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

// BEiT's modules have had ViT's names since transformers 5; data2vec's kept the older ones.
struct BeitNames {
  std::string model, layers, attention, q, k, v, o, up, down, table;
};

BeitNames beit_names(const std::string& model) {
  return {model,    "layers", "attention", "q_proj",  "k_proj",
          "v_proj", "o_proj", "mlp.fc1",   "mlp.fc2", "relative_position_bias"};
}

BeitNames data2vec_names(const std::string& model) {
  return {model,           "encoder.layer",
          "attention",     "attention.query",
          "attention.key", "attention.value",
          "output.dense",  "intermediate.dense",
          "output.dense",  "attention.attention.relative_position_bias"};
}

struct BeitRows {
  Ref all = 0;
  std::vector<Ref> behind;  // the embeddings and each layer's states
  VisionSizes n;
};

DistanceBias beit_bias(const VisionSizes& n, std::int64_t side, const std::string& module) {
  const std::int64_t span = 2 * side - 1;
  return {.name = module + ".relative_position_bias_table",
          .distances = span * span + 3,  // with the class token's: to, from, itself
          .heads = n.heads,
          .places = side * side + 1,
          .stretched = true,
          .shared = "distances"};
}

// Patches behind the class token.
Ref beit_embedded(const Config& c, Draft& d, const std::string& model, const VisionSizes& n,
                  std::int64_t patch) {
  Ref x =
      d.rows(d.convolve(patches(model + "embeddings.patch_embeddings.projection", n.hidden, patch),
                        d.image(c.size("num_channels", 3))));
  x = d.before(model + "embeddings.cls_token", x);
  if (c.flag("use_mask_token", false)) {
    d.stored(model + "embeddings.mask_token", {1, 1, n.hidden});
  }
  if (c.flag("use_absolute_position_embeddings", false)) {
    x = d.table(model + "embeddings.position_embeddings", x);
  }
  return d.drop(n.dropout, x);
}

// The states that the last layer leaves, normed unless their mean is read.
BeitRows beit_rows(const Config& c, Draft& d, const BeitNames& names) {
  BeitRows rows;
  rows.n = read_vision(c, "gelu");
  const VisionSizes& n = rows.n;
  const std::int64_t image = c.size("image_size", 224);
  const std::int64_t patch = c.size("patch_size", 16);
  const std::int64_t side = c.divided("image_size", image, "patch_size", patch);
  const std::string& model = names.model;
  Ref x = beit_embedded(c, d, model, n, patch);
  std::optional<Ref> bias;
  if (c.flag("use_shared_relative_position_bias", false)) {
    const bool old = names.layers != "layers";
    bias = d.distance_bias(beit_bias(
        n, side, model + (old ? "encoder.relative_position_bias" : "shared_position_bias")));
  }
  const bool own_bias = c.flag("use_relative_position_bias", false);
  if (own_bias && bias) c.fail("use_relative_position_bias", "with a shared one is not supported");
  const bool scaled = c.number("layer_scale_init_value", 0.1) > 0;
  rows.behind.push_back(x);
  const double last_rate = c.rate("drop_path_rate", 0.1);
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(model + names.layers, i, "encoder");
    const double rate = rising_rate(last_rate, i, n.layers);
    const auto onto = [&](Ref before, Ref out, const char* scale) {
      out = d.drop(n.dropout, out);
      if (scaled) out = d.factor(scale, out);
      return d.sum(d.drop_path(rate, out), before);
    };
    if (own_bias) bias = d.distance_bias(beit_bias(n, side, names.table));
    const Ref read = d.norm(row_norm("layernorm_before"), x);
    const Ref seen = d.attend({.name = names.attention,
                               .heads = n.heads,
                               .q = names.q,
                               .k = names.k,
                               .v = names.v,
                               .o = names.o,
                               .k_bias = false,
                               .dropout = n.attention_dropout,
                               .fp32_softmax = true,
                               .copies_bias = names.layers != "layers" && !own_bias},
                              read, read, read, bias);
    x = onto(x, seen, "lambda_1");
    x = onto(x,
             d.mlp(names.up, names.down, n.width, n.hidden, n.activation,
                   d.norm(row_norm("layernorm_after"), x)),
             "lambda_2");
    rows.behind.push_back(x);
  }
  d.outside("head");
  rows.all = x;
  return rows;
}

ModelSpec beit_spec(const Config& c, Draft& d) {
  // Of other classes of the family.
  c.pass_over({"vocab_size", "pool_scales", "use_auxiliary_head", "auxiliary_loss_weight",
               "auxiliary_channels", "auxiliary_num_convs", "auxiliary_concat_input",
               "semantic_loss_ignore_index", "out_indices", "out_features", "_out_indices",
               "_out_features", "add_fpn", "reshape_hidden_states", "stage_names"});
  ModelSpec spec;
  const std::int64_t patch = c.size("patch_size", 16);
  spec.network =
      d.finish({.side = c.size("image_size", 224), .coarsest = patch, .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

// The mean of the patches, normed, or the class token.
Ref beit_pooled(const Config& c, Draft& d, const BeitNames& names, Ref rows) {
  if (!c.flag("use_mean_pooling", true)) return d.part({.single = true}, rows);
  return d.norm(row_norm(names.model + "pooler.layernorm"), d.mean(d.part({.first = 1}, rows)));
}

Ref beit_states(const Config& c, Draft& d, const BeitNames& names) {
  const BeitRows rows = beit_rows(c, d, names);
  if (c.flag("use_mean_pooling", true)) return rows.all;
  return d.norm(row_norm(names.model + "layernorm"), rows.all);
}

ModelSpec beit_model(const Config& c, const BeitNames& names) {
  Draft d;
  const Ref states = beit_states(c, d, names);
  // Data2vec's model has a pooler where a classifier reads it alone.
  if (names.layers == "layers") static_cast<void>(beit_pooled(c, d, names, states));
  d.sum_loss(states);
  return beit_spec(c, d);
}

ModelSpec beit_classifier(const Config& c, const BeitNames& names) {
  Draft d;
  const Ref pooled = beit_pooled(c, d, names, beit_states(c, d, names));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, pooled));
  return beit_spec(c, d);
}

// The visual token of each patch; that of the masked ones is the training's own loss.
ModelSpec beit_masked(const Config& c) {
  Draft d;
  const BeitRows rows = beit_rows(c, d, beit_names("beit."));
  Ref x = rows.all;
  if (!c.flag("use_mean_pooling", true)) x = d.norm(row_norm("beit.layernorm"), x);
  x = d.part({.first = 1}, d.norm(row_norm("layernorm"), x));
  d.sum_loss(d.linear({.name = "lm_head", .out = c.size("vocab_size", 8192)}, x));
  return beit_spec(c, d);
}

// Of the heads of BEiT's segmentation.
const UpernetNames head_names{.convolution = "convolution",
                              .norm = "normalization",
                              .before_scale = "psp_modules.blocks.",
                              .behind_scale = ".conv",
                              .bottleneck = "psp_bottleneck"};

// Four pictures of the rows of four layers: four and two times as large, as large, half as large.
std::vector<Ref> beit_pyramid(Draft& d, const std::vector<Ref>& states, std::int64_t hidden) {
  std::vector<Ref> maps;
  for (const Ref state : states) maps.push_back(d.picture(d.part({.first = 1}, state)));
  const auto twice = [&](const std::string& name, Ref x) {
    Convolve larger = patches(name, hidden, 2);
    larger.transposed = true;
    return d.convolve(larger, x);
  };
  Ref first = d.batch_norm("fpn.fpn1.normalization", twice("fpn.fpn1.conv_transpose1", maps[0]));
  first = d.activate("gelu", first, "fpn.fpn1.activation");
  return {twice("fpn.fpn1.conv_transpose2", first), twice("fpn.fpn2", maps[1]), maps[2],
          d.pool({}, maps[3])};
}

ModelSpec beit_segmentation(const Config& c) {
  Draft d;
  const BeitRows rows = beit_rows(c, d, beit_names("beit."));
  auto picked = c.integers("out_indices|_out_indices");
  constexpr std::size_t levels = 4;
  if (picked.size() != levels) c.fail("out_indices", "has to name four layers");
  std::vector<Ref> states;
  for (const std::int64_t i : picked) {
    if (i < 1 || i > rows.n.layers + 1) c.fail("out_indices", "names a layer that is not there");
    states.push_back(rows.behind[static_cast<std::size_t>(i - 1)]);
  }
  if (!c.flag("use_mean_pooling", true)) {
    static_cast<void>(d.norm(row_norm("beit.layernorm"), rows.all));
  }
  const std::vector<Ref> maps = beit_pyramid(d, states, rows.n.hidden);
  const Ref logits = upernet_head(c, d, head_names, maps, rows.n.hidden);
  d.classes(d.resize({.to_image = true}, logits));
  if (c.flag("use_auxiliary_head", true)) {
    constexpr std::size_t third = 2;
    const Ref other = upernet_auxiliary_head(c, d, head_names, maps[third], rows.n.hidden);
    d.classes(d.resize({.to_image = true}, other));
  }
  return beit_spec(c, d);
}

}  // namespace

std::vector<Family> beit_families() {
  const auto of = [](auto read, const BeitNames& names) {
    return [read, names](const Config& c) { return read(c, names); };
  };
  return {{"BeitModel", "beit", of(beit_model, beit_names(""))},
          {"BeitForImageClassification", "beit", of(beit_classifier, beit_names("beit."))},
          {"BeitForSemanticSegmentation", "beit", beit_segmentation},
          {"BeitForMaskedImageModeling", "beit", beit_masked},
          {"Data2VecVisionModel", "data2vec-vision", of(beit_model, data2vec_names(""))},
          {"Data2VecVisionForImageClassification", "data2vec-vision",
           of(beit_classifier, data2vec_names("data2vec_vision."))}};
}

}  // namespace shardsim::models
