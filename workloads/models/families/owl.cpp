// OWL-ViT (arXiv:2205.06230) and OWLv2 (arXiv:2306.09683): CLIP's towers, of whose image each patch
// has a box and is told which of the texts it shows. A step reads one text beside each image.
//
// Names and defaults as in transformers 5.23, modeling_owlvit.py and modeling_owlv2.py.
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

Ref owl_layers(Draft& d, const VisionSizes& n, const std::string& prefix, bool causal, Ref x) {
  const RowLayer layer{.first_norm = "layer_norm1",
                       .second_norm = "layer_norm2",
                       .attention = {.name = "self_attn",
                                     .heads = n.heads,
                                     .o = "out_proj",
                                     .dropout = n.attention_dropout,
                                     .causal = causal},
                       .up = "mlp.fc1",
                       .down = "mlp.fc2",
                       .hidden = n.hidden,
                       .width = n.width,
                       .activation = n.activation};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(prefix + "encoder.layers", i, causal ? "text" : "vision");
    x = row_layer(d, layer, x);
  }
  d.outside(causal ? "text_end" : "vision_end");
  return x;
}

Ref placed(Draft& d, const std::string& name, std::int64_t table, std::int64_t count,
           std::int64_t width, Ref x) {
  return d.sum(
      x,
      d.tokens({.name = name, .table = table, .width = width, .count = count, .by_place = true}));
}

struct OwlImage {
  VisionSizes n;
  std::int64_t side = 0, patch = 0;
  Ref rows = 0;  // normed, the class token's first
};

OwlImage owl_image(const Config& c, Draft& d, const std::string& prefix) {
  OwlImage image{.n = read_vision(c, "quick_gelu"),
                 .side = c.size("image_size", 768),
                 .patch = c.size("patch_size", 32)};
  const std::int64_t places = c.divided("image_size", image.side, "patch_size", image.patch);
  const std::string at = prefix + "embeddings.";
  Convolve cut = patches(at + "patch_embedding", image.n.hidden, image.patch);
  cut.bias = false;
  Ref x = d.rows(d.convolve(cut, d.image(c.size("num_channels", 3))));
  x = d.before_flat(at + "class_embedding", x);
  const std::int64_t rows = places * places + 1;
  x = placed(d, at + "position_embedding", rows, rows, image.n.hidden, x);
  x = d.norm(row_norm(prefix + "pre_layernorm"), x);
  x = owl_layers(d, image.n, prefix, /*causal=*/false, x);
  const std::string norm = prefix + "post_layernorm";
  // The class token's row is normed by itself, too, and projected; nobody reads that.
  const Ref first = d.norm(row_norm(norm), d.part({.single = true}, x));
  image.rows = d.norm(row_norm(norm), x);
  static_cast<void>(first);
  return image;
}

// [batch, width], projected and of length one.
Ref owl_text(const Config& c, Draft& d, const std::string& prefix) {
  VisionSizes n = read_vision(c, "quick_gelu");
  n.hidden = c.size("hidden_size", 512);
  n.heads = c.size("num_attention_heads", 8);
  n.width = c.size("intermediate_size", 2048);
  const std::string at = prefix + "embeddings.";
  Ref x = d.tokens(
      {.name = at + "token_embedding", .table = c.size("vocab_size", 49408), .width = n.hidden});
  x = placed(d, at + "position_embedding", c.size("max_position_embeddings", 16), 0, n.hidden, x);
  x = d.norm(row_norm(prefix + "final_layer_norm"), owl_layers(d, n, prefix, /*causal=*/true, x));
  return d.part({.single = true, .picked = true}, x);
}

// Two products of the image's width, and a third.
Ref owl_boxes(Draft& d, const std::string& name, std::int64_t width, std::int64_t out, Ref x) {
  const Draft::In of(d, name);
  for (const char* layer : {"dense0", "dense1"}) {
    x = d.activate("gelu", d.linear({.name = layer, .out = width}, x), std::string(layer) + ".act");
  }
  return d.linear({.name = "dense2", .out = out}, x);
}

ModelSpec owl_detection(const Config& c, const std::string& root, bool finds_objects) {
  Draft d;
  const Config vision = part(c, "vision_config");
  const Config text = part(c, "text_config");
  const std::int64_t width = c.size("projection_dim", 512);
  const std::int64_t text_width = text.size("hidden_size", 512);
  if (width != text_width) c.fail("projection_dim", "is not the text's hidden_size");
  const Ref query = d.norm({NormKind::rms_fixed, root + "unit_text"},
                           d.linear({.name = root + "text_projection", .out = width, .bias = false},
                                    owl_text(text, d, root + "text_model.")));
  const OwlImage image = owl_image(vision, d, root + "vision_model.");
  d.stored(root + "logit_scale", {});
  static_cast<void>(d.linear({.name = root + "visual_projection", .out = width, .bias = false},
                             d.part({.single = true}, image.rows)));
  // Products of all images with all texts, which nobody reads.
  d.draw({UnreadProducts{width}, ""}, {query});
  const Ref whole = d.part({.single = true}, image.rows);
  const Ref rows =
      d.norm(row_norm("layer_norm"), d.product(d.part({.first = 1}, image.rows), whole));
  d.sum_loss(d.draw({GroundedClasses{}, "class_head"}, {rows, query}));
  constexpr std::int64_t corners = 4;
  d.sum_loss(d.activate("sigmoid", owl_boxes(d, "box_head", image.n.hidden, corners, rows),
                        "box_head.act"));
  if (finds_objects) {
    d.sum_loss(owl_boxes(d, "objectness_head", image.n.hidden, 1, d.detached(rows)));
  }
  d.note("one text beside each image");
  ModelSpec spec;
  spec.network = d.finish({.side = image.side,
                           .coarsest = image.patch,
                           .takes_one_side = true,
                           .text = text.size("max_position_embeddings", 16)});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec owlvit_detection(const Config& c) {
  return owl_detection(c, "owlvit.", /*finds_objects=*/false);
}
ModelSpec owlv2_detection(const Config& c) {
  return owl_detection(c, "owlv2.", /*finds_objects=*/true);
}

// Without what finds objects: CLIP of larger images and shorter texts.
ModelSpec owl(const Config& c) {
  constexpr std::int64_t image = 768, words = 16;
  ModelSpec spec;
  Stack vision = clip_vision(part(c, "vision_config"), "vision_model.", image);
  std::get<PatchEmbedding>(vision.input).norm = layer_norm("vision_model.pre_layernorm");
  spec.stacks.push_back(std::move(vision));
  spec.stacks.push_back(clip_text(part(c, "text_config"), "text_model.", words));
  spec.head = {.kind = HeadKind::contrastive,
               .vocab = c.size("projection_dim", 512),
               .projections = {"visual_projection", "text_projection"}};
  return spec;
}

}  // namespace

std::vector<Family> owl_families() {
  return {{"OwlViTModel", "owlvit", owl},
          {"Owlv2Model", "owlv2", owl},
          {"OwlViTForObjectDetection", "owlvit", owlvit_detection},
          {"Owlv2ForObjectDetection", "owlv2", owlv2_detection}};
}

}  // namespace shardsim::models
