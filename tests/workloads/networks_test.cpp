// Networks over images: places, channels and kept bytes derived by hand beside each; mistakes in
// their files. How they agree with diffusers and transformers is models_golden_test's.
#include "workloads/networks/network.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/walk.hpp"
#include "workloads/networks/convolution.hpp"

using namespace shardsim;
using namespace shardsim::models;

namespace {

std::int64_t kept_bytes(const Eager& e) {
  std::int64_t bytes = 0;
  for (const Saved& saved : e.saved()) bytes += saved.bytes;
  return bytes;
}

ModelSpec read_network(const char* text) {
  const Json json = parse_json(text, "config.json");
  return read_model(JsonReader(json, {"config.json", ""}), "model");
}

std::string error_of(const char* text) {
  try {
    read_network(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const char* const small_unet = R"({"_class_name": "UNet2DConditionModel", "sample_size": 8,
  "block_out_channels": [32, 64], "layers_per_block": 1, "attention_head_dim": 2,
  "cross_attention_dim": 48, "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
  "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]})";

}  // namespace

TEST_CASE("A convolution's places follow from kernel, stride and padding") {
  Eager e({});
  const Value image = e.make({2, 3, 9, 9}, DType::bf16, true);
  const Value out =
      run(e, Convolution{.name = "c", .out = 4, .kernel = 3, .stride = 2, .padding = 0}, image);
  CHECK(out.shape == Shape{2, 4, 4, 4});  // (9 - 3) / 2 + 1
  CHECK(e.forward_flops().at("convolution") == 2 * (2 * 16) * 4 * 3 * 9);
  CHECK(kept_bytes(e) == 2 * 3 * 81 * 2);
}

TEST_CASE("Norms over images keep their input and statistics") {
  Eager e({});
  const Value image = e.make({2, 8, 4, 4}, DType::bf16, true);
  group_norm(e, "g", 4, image);
  CHECK(kept_bytes(e) == 2 * 8 * 16 * 2 + 2 * (2 * 4 * 2));  // of groups, in bf16
  batch_norm(e, "b", e.make({2, 8, 4, 4}, DType::bf16, true));
  CHECK(kept_bytes(e) == 2 * (2 * 8 * 16 * 2) + 2 * (2 * 4 * 2) + 2 * 8 * 4);  // channels, fp32
  CHECK(e.buffers().size() == 3);  // running mean and variance, batches seen
}

TEST_CASE("A U-Net's way up reads what its way down left") {
  const ModelSpec spec = read_network(small_unet);
  const auto& net = std::get<UNet>(*spec.network);
  CHECK(coarsest(net) == 2);
  CHECK(usual_text(*spec.network) == 77);
  const ModelCounts n = count(spec, {.batch = 1, .sequence = 77}, {});
  const auto shape_of = [&](const std::string& name) {
    for (const Parameter& p : n.parameters) {
      if (p.name == name) return p.shape;
    }
    return Shape{};
  };
  // Left behind: conv_in 32, block 32, halved 32, block 64. Up: 64 + 64, 64 + 32; 64 + 32, 32 + 32.
  CHECK(shape_of("up_blocks.0.resnets.0.conv1.weight") == Shape{64, 128, 3, 3});
  CHECK(shape_of("up_blocks.0.resnets.1.conv1.weight") == Shape{64, 96, 3, 3});
  CHECK(shape_of("up_blocks.1.resnets.0.conv1.weight") == Shape{32, 96, 3, 3});
  CHECK(shape_of("up_blocks.1.resnets.1.conv1.weight") == Shape{32, 64, 3, 3});
  // Keys of the text: 48 wide to 2 heads of 16.
  CHECK(shape_of("down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_k.weight") ==
        Shape{32, 48});
  CHECK(n.cache_bytes_per_token == 0);
}

TEST_CASE("An image of another size costs its places") {
  const char* const resnet = R"({"architectures": ["ResNetForImageClassification"],
    "depths": [1], "hidden_sizes": [16], "embedding_size": 8, "num_labels": 10})";
  const ModelSpec spec = read_network(resnet);
  const ModelCounts small = count(spec, {.sequence = 0, .image = 64}, {});
  const ModelCounts large = count(spec, {.sequence = 0, .image = 128}, {});
  CHECK(large.forward.at("convolution") == 4 * small.forward.at("convolution"));
  CHECK(large.total_parameters == small.total_parameters);
}

TEST_CASE("A side that a network cannot halve is an error") {
  CHECK_THROWS_WITH(
      count(read_network(small_unet), {.sequence = 77, .image = 9}, {"unet.json", ""}),
      "unet.json: an image of 9 is no multiple of 2, by which the network makes it "
      "smaller");
}

TEST_CASE("What another network would be is an error at its key") {
  CHECK(error_of(R"({"_class_name": "UNet2DConditionModel", "class_embed_type": "timestep"})") ==
        "config.json: /class_embed_type: is not supported");
  CHECK(error_of(R"({"_class_name": "UNet2DConditionModel", "block_out_channels": [32],
    "down_block_types": ["AttnDownBlock2D"], "up_block_types": ["UpBlock2D"]})") ==
        "config.json: /down_block_types: \"AttnDownBlock2D\" is not supported; supported are "
        "CrossAttnDownBlock2D and DownBlock2D");
  CHECK(error_of(R"({"_class_name": "SD3Transformer2DModel", "num_attention_heads": 24})") ==
        "config.json: caption_projection_dim: is not num_attention_heads * attention_head_dim");
  CHECK(error_of(R"({"_class_name": "AutoencoderKL", "block_out_channels": [48]})") ==
        "config.json: /block_out_channels: 48 does not divide by norm_num_groups 32, which the "
        "file does not say");
}

TEST_CASE("Layers that share a block hold it once, each with an adapter of its own") {
  const ModelSpec spec = read_network(R"({"architectures": ["Zamba2ForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 4, "num_attention_heads": 4, "n_mamba_heads": 4, "vocab_size": 100,
    "layers_block_type": ["hybrid", "mamba", "hybrid", "hybrid"], "num_mem_blocks": 2,
    "adapter_rank": 8, "intermediate_size": 96})");
  const ModelCounts n = count(spec, {.batch = 1, .sequence = 16}, {});
  // Hybrids 0 and 3 (the first and third) share one block, 2 has the other.
  std::int64_t gates = 0;
  std::int64_t pairs = 0;
  for (const Parameter& p : n.parameters) {
    if (p.name.ends_with("feed_forward.gate_up_proj.weight")) ++gates;
    if (p.name.find("gate_up_proj_adapter_list") != std::string::npos) ++pairs;
  }
  CHECK(gates == 2);
  CHECK(pairs == 2 * 3);  // two matrices for each hybrid layer
  const std::vector<std::string> shared = {
      "model.layers.0.shared_transformer.self_attn.q_proj.weight",
      "model.layers.3.shared_transformer.self_attn.q_proj.weight"};
  CHECK(std::find(n.tied.begin(), n.tied.end(), shared) != n.tied.end());
}

TEST_CASE("FLUX's blocks of one stream put attention and MLP through one product") {
  const ModelSpec spec = read_network(R"({"_class_name": "FluxTransformer2DModel", "num_layers": 1,
    "num_single_layers": 1, "num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4,
    "joint_attention_dim": 6, "pooled_projection_dim": 5, "axes_dims_rope": [2, 2, 4]})");
  const auto linear = [](std::int64_t in, std::int64_t out) { return in * out + out; };
  const std::int64_t h = 16, mlp = linear(h, 4 * h) + linear(4 * h, h);
  const std::int64_t ends = linear(4, h) + linear(6, h) + linear(256, h) + linear(5, h) +
                            2 * linear(h, h) + linear(h, 2 * h) + linear(h, 4);
  const std::int64_t joint = 2 * linear(h, 6 * h) + 8 * linear(h, h) + 4 * 8 + 2 * mlp;
  const std::int64_t single =
      linear(h, 3 * h) + 3 * linear(h, h) + 2 * 8 + linear(h, 4 * h) + linear(h + 4 * h, h);
  const ModelCounts n = count(spec, {.batch = 1, .sequence = 7, .image = 8}, {});
  CHECK(n.total_parameters == ends + joint + single);
  CHECK(n.forward.at("_scaled_dot_product_flash_attention") == 2 * 4 * 2 * (16 + 7) * (16 + 7) * 8);
  CHECK(error_of(R"({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 64})") ==
        "config.json: axes_dims_rope: does not add up to attention_head_dim");
}
