// SegFormer (arXiv:2105.15203): stages of overlapping patches; attention whose keys and values are
// places put together by a convolution; MLPs with a 3 x 3 convolution of each channel between their
// products. Its decoder projects each stage's places, makes them as large as the first's and puts
// them together.
#include <fmt/format.h>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {

Ref overlapping_block(Draft& d, const OverlappingStages& n, const OverlappingStage& stage,
                      const OverlappingBlock& block, double rate, Ref x) {
  Ref read = d.norm(row_norm(block.norms[0]), x);
  Ref reduced = read;
  if (stage.reduction > 1) {
    const Draft::In of(d, block.reduction[0]);
    reduced = d.norm(row_norm("layer_norm"),
                     d.rows(d.convolve(patches(block.reduction[1], stage.width, stage.reduction),
                                       d.picture(read))));
  }
  Attend attention = block.attention;
  attention.heads = stage.heads;
  attention.dropout = n.attention_dropout;
  const Ref seen = d.attend(attention, read, reduced, reduced);
  x = d.sum(d.drop_path(rate, d.drop(n.dropout, seen)), x);
  read = d.norm(row_norm(block.norms[1]), x);
  const Draft::In of(d, "mlp");
  Ref inner = d.linear({.name = block.products[0], .out = stage.ffn, .inner = true}, read);
  Convolve each = square("dwconv.dwconv", stage.ffn, 3);
  each.each = true;
  inner = d.activate(n.activation, d.rows(d.convolve(each, d.picture(inner))), block.activation);
  if (block.drops_between) inner = d.drop(n.dropout, inner);
  inner = d.linear({.name = block.products[1], .out = stage.width}, inner);
  return d.sum(d.drop_path(rate, d.drop(n.dropout, inner)), x);
}

namespace {

const OverlappingBlock block_of_segformer = {
    .norms = {"layernorm_before", "layernorm_after"},
    .reduction = {"attention.sequence_reduction", "sequence_reduction"},
    .attention = {.name = "attention", .fp32_softmax = true},
    .products = {"fc1", "fc2"},
    .activation = "activation_fn"};

// What each stage leaves, a picture.
std::vector<Ref> segformer_stages(const Config& c, Draft& d, const OverlappingStages& n,
                                  const std::string& prefix) {
  std::vector<Ref> left;
  Ref x = d.image(c.size("num_channels", 3));
  std::int64_t block = 0;
  for (std::size_t s = 0; s < n.stages.size(); ++s) {
    const OverlappingStage& stage = n.stages[s];
    d.layer(prefix + "stages", static_cast<std::int64_t>(s), "stage");
    x = d.convolve(square("patch_embeddings.proj", stage.width, stage.patch, stage.stride), x);
    x = d.norm(row_norm("patch_embeddings.layer_norm"), d.rows(x));
    for (std::int64_t i = 0; i < stage.depth; ++i) {
      const Draft::In of(d, "blocks." + std::to_string(i));
      x = overlapping_block(d, n, stage, block_of_segformer,
                            rising_rate(n.drop_path, block++, n.blocks), x);
    }
    x = d.copied_picture(d.norm(row_norm("layer_norm"), x));
    left.push_back(x);
    const std::string keys =
        stage.reduction == 1 ? "" : fmt::format(", one key for {0} x {0} places", stage.reduction);
    d.note(fmt::format("stage {}: {} blocks of {} heads, width {}{}", s, stage.depth, stage.heads,
                       stage.width, keys));
  }
  d.outside("head");
  return left;
}

ModelSpec segformer_spec(const Config& c, Draft& d, std::int64_t side) {
  c.pass_over({"decoder_hidden_size", "classifier_dropout_prob", "semantic_loss_ignore_index",
               "downsampling_rates"});
  if (!c.flag("reshape_last_stage", true)) c.fail("reshape_last_stage", "only true is supported");
  ModelSpec spec;
  constexpr std::int64_t coarsest = 32;
  spec.network = d.finish({.side = c.size("image_size", side), .coarsest = coarsest});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec segformer_model(const Config& c) {
  Draft d;
  d.sum_loss(segformer_stages(c, d, read_overlapping_stages(c, {4, 4, 4, 4}, 0.1), "").back());
  return segformer_spec(c, d, 224);
}

ModelSpec segformer_classifier(const Config& c) {
  Draft d;
  const Ref last =
      segformer_stages(c, d, read_overlapping_stages(c, {4, 4, 4, 4}, 0.1), "segformer.").back();
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, d.mean(last)));
  return segformer_spec(c, d, 224);
}

ModelSpec segformer_segmentation(const Config& c) {
  Draft d;
  const std::vector<Ref> stages =
      segformer_stages(c, d, read_overlapping_stages(c, {4, 4, 4, 4}, 0.1), "segformer.");
  const std::int64_t width = c.size("decoder_hidden_size", 256);
  const Draft::In of(d, "decode_head");
  std::vector<Ref> all;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Ref projected =
        d.linear({.name = "linear_projections." + std::to_string(s) + ".proj", .out = width},
                 d.rows(stages[s]));
    all.insert(all.begin(), d.resize_as(d.picture(projected), stages.front()));
  }
  Convolve fuse = patches("linear_fuse", width, 1);
  fuse.bias = false;
  Ref x = d.activate("relu", d.batch_norm("batch_norm", d.convolve(fuse, d.beside(all))));
  x = d.drop(c.rate("classifier_dropout_prob", 0.1), x);
  const Ref logits = d.convolve(patches("classifier", labels_of(c), 1), x);
  d.classes(d.resize({.to_image = true}, logits));
  return segformer_spec(c, d, 512);
}

}  // namespace

std::vector<Family> segformer_families() {
  return {{"SegformerModel", "segformer", segformer_model},
          {"SegformerForImageClassification", "segformer", segformer_classifier},
          {"SegformerForSemanticSegmentation", "segformer", segformer_segmentation}};
}

}  // namespace shardsim::models
