// Networks over images whose places and channels change from stage to stage: ResNet, ConvNeXt,
// Swin.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

ModelSpec classifier(const Config& c, Network network, std::string head) {
  ModelSpec spec;
  spec.network = std::move(network);
  spec.head = {.kind = HeadKind::classification,
               .name = std::move(head),
               .vocab = labels_of(c),
               .bias = true};
  return spec;
}

ModelSpec resnet(const Config& c) {
  ResNet net;
  net.channels = c.size("num_channels", 3);
  net.side = c.size("image_size", 224);
  net.stem = c.size("embedding_size", 64);
  const std::string layer = c.text("layer_type", "bottleneck");
  if (layer != "bottleneck" && layer != "basic") {
    c.fail("layer_type", "is neither \"bottleneck\" nor \"basic\"");
  }
  net.bottleneck = layer == "bottleneck";
  net.stride_first = c.flag("downsample_in_bottleneck", false);
  net.activation = c.activation("hidden_act", "relu");
  const auto widths = c.sizes("hidden_sizes", {256, 512, 1024, 2048});
  const auto depths = c.sizes("depths", {3, 4, 6, 3});
  if (widths.size() != depths.size()) c.fail("depths", "has not one entry for each hidden size");
  const bool halved = c.flag("downsample_in_first_stage", false);
  for (std::size_t s = 0; s < widths.size(); ++s) {
    net.stages.push_back(
        {.width = widths[s], .layers = depths[s], .stride = s > 0 || halved ? 2 : 1});
  }
  return classifier(c, net, "classifier.1");
}

ModelSpec convnext_like(const Config& c, ConvNext net) {
  net.channels = c.size("num_channels", 3);
  net.side = c.size("image_size", 224);
  net.patch = c.size("patch_size", 4);
  net.activation = c.activation("hidden_act", "gelu");
  net.drop_path = c.rate("drop_path_rate", 0);
  const auto widths = c.sizes("hidden_sizes", {96, 192, 384, 768});
  const auto depths = c.sizes("depths", {3, 3, 9, 3});
  if (widths.size() != depths.size()) c.fail("depths", "has not one entry for each hidden size");
  c.pass_over({"num_stages"});  // as many as there are depths
  for (std::size_t s = 0; s < widths.size(); ++s) {
    net.stages.push_back({.width = widths[s], .layers = depths[s]});
  }
  return classifier(c, net, "classifier");
}

ModelSpec convnext(const Config& c) {
  ConvNext net;
  net.scaled = c.number("layer_scale_init_value", 1e-6) > 0;
  return convnext_like(c, net);
}

ModelSpec convnextv2(const Config& c) {
  ConvNext net;
  net.prefix = "convnextv2.";
  net.scaled = false;
  net.responds = true;
  return convnext_like(c, net);
}

ModelSpec swin(const Config& c) {
  Swin net;
  net.channels = c.size("num_channels", 3);
  net.side = c.size("image_size", 224);
  net.patch = c.size("patch_size", 4);
  // Made of depths and embed_dim; norms are there in any case.
  c.pass_over({"num_layers", "num_hidden_layers", "hidden_size", "path_norm"});
  net.width = c.size("embed_dim", 96);
  net.window = c.size("window_size", 7);
  net.mlp_ratio = c.ratio("mlp_ratio", 4);
  net.activation = c.activation("hidden_act", "gelu");
  net.qkv_bias = c.flag("qkv_bias", true);
  net.positions = c.flag("use_absolute_embeddings", false);
  net.drop_path = c.rate("drop_path_rate", 0.1);
  net.dropout = c.rate("hidden_dropout_prob", 0);
  net.attention_dropout = c.rate("attention_probs_dropout_prob", 0);
  const auto depths = c.sizes("depths", {2, 2, 6, 2});
  const auto heads = c.sizes("num_heads|num_attention_heads", {3, 6, 12, 24});
  if (heads.size() != depths.size()) c.fail("num_heads", "has not one entry for each stage");
  for (std::size_t s = 0; s < depths.size(); ++s) {
    static_cast<void>(c.divided("embed_dim", net.width << s, "num_heads", heads[s]));
    net.stages.push_back({.blocks = depths[s], .heads = heads[s]});
  }
  return classifier(c, net, "classifier");
}

}  // namespace

std::vector<Family> convolutional_families() {
  return {{"ResNetForImageClassification", "resnet", resnet},
          {"ConvNextForImageClassification", "convnext", convnext},
          {"ConvNextV2ForImageClassification", "convnextv2", convnextv2},
          {"SwinForImageClassification", "swin", swin}};
}

}  // namespace shardsim::models
