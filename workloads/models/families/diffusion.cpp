// Models of diffusion over latents, as diffusers' classes build them: "_class_name" of a file says
// which.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

ModelSpec of_network(Network network) {
  ModelSpec spec;
  spec.network = std::move(network);
  spec.head.kind = HeadKind::none;
  return spec;
}

// Options of the classes that make another network of it.
void refuse(const Config& c, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (c.given(key)) c.fail(key, "is not supported");
  }
}

void refuse_true(const Config& c, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (c.flag(key, false)) c.fail(key, "true is not supported");
  }
}

void require(const Config& c, std::string_view key, std::string_view value) {
  if (c.text(key, value) != value) c.fail(key, fmt::format("only \"{}\" is supported", value));
}

// One number for all levels, or a list of one for each.
std::vector<std::int64_t> per_level(const Config& c, std::string_view key, std::int64_t otherwise,
                                    std::size_t levels) {
  const auto value = c.json().find(key);
  if (!value || !value->is_array()) {
    return std::vector<std::int64_t>(levels, c.size(key, otherwise));
  }
  std::vector<std::int64_t> list = c.sizes(key, {});
  if (list.size() != levels) c.fail(key, "has not one entry for each level");
  return list;
}

// Of each level one number for all its transformers, or a list of one for each; a level without any
// may say anything.
std::vector<std::vector<std::int64_t>> depths_of(const Config& c, std::string_view key,
                                                 std::size_t levels) {
  const auto value = c.json().find(key);
  if (!value || !value->is_array()) {
    return std::vector<std::vector<std::int64_t>>(levels, {c.size(key, 1)});
  }
  c.pass_over({key});
  constexpr std::int64_t most = 10000;
  std::vector<std::vector<std::int64_t>> depths;
  for (const JsonReader& entry : value->elements()) {
    depths.emplace_back();
    if (!entry.is_array()) {
      depths.back().push_back(entry.integer(0, most));
      continue;
    }
    for (const JsonReader& one : entry.elements()) depths.back().push_back(one.integer(0, most));
    if (depths.back().empty()) entry.fail("is empty");
  }
  if (depths.size() != levels) c.fail(key, "has not one entry for each level");
  return depths;
}

// One flag for all levels, or a list of one for each.
std::vector<bool> flags_of(const Config& c, std::string_view key, std::size_t levels) {
  const auto value = c.json().find(key);
  if (!value || !value->is_array()) return std::vector<bool>(levels, c.flag(key, false));
  c.pass_over({key});
  std::vector<bool> list;
  for (const JsonReader& entry : value->elements()) list.push_back(entry.boolean());
  if (list.size() != levels) c.fail(key, "has not one entry for each level");
  return list;
}

// All levels read one text.
std::int64_t text_width_of(const Config& c, std::size_t levels) {
  const std::vector<std::int64_t> widths = per_level(c, "cross_attention_dim", 1280, levels);
  for (const std::int64_t width : widths) {
    if (width != widths.front()) c.fail("cross_attention_dim", "only one width is supported");
  }
  return widths.front();
}

std::vector<std::string> block_types(const Config& c, std::string_view key,
                                     std::vector<std::string> otherwise, std::size_t levels) {
  std::vector<std::string> types = c.texts(key);
  if (types.empty()) types = std::move(otherwise);
  if (types.size() != levels) c.fail(key, "has not one entry for each level");
  return types;
}

bool has_transformer(const Config& c, std::string_view key, const std::string& type,
                     std::string_view with, std::string_view without) {
  if (type != with && type != without) {
    c.fail(key,
           fmt::format("\"{}\" is not supported; supported are {} and {}", type, with, without));
  }
  return type == with;
}

// Levels from the largest image to the smallest: what a block on them is.
struct Levels {
  std::vector<std::int64_t> widths, blocks, heads;
  std::vector<std::vector<std::int64_t>> depths;     // on the way down, and in the middle
  std::vector<std::vector<std::int64_t>> up_depths;  // and back
  std::vector<bool> text_only;
  ResidualBlock block;
  ImageTransformer transformer;

  [[nodiscard]] UNetLevel at(std::size_t l, bool attends) const {
    UNetLevel level{.blocks = blocks[l], .block = block};
    level.block.out = widths[l];
    if (attends) {
      level.transformer = transformer;
      level.transformer->blocks = depths[l].front();
      level.transformer->heads = heads[l];
      level.transformer->text_only = text_only[l];
    }
    return level;
  }

  // With as many blocks in each of its transformers as `key` says.
  [[nodiscard]] UNetLevel of_depths(const Config& c, std::string_view key, UNetLevel level,
                                    const std::vector<std::int64_t>& own) const {
    if (!level.transformer) return level;
    level.transformer->blocks = own.front();
    if (own.size() == 1) return level;
    if (static_cast<std::int64_t>(own.size()) < level.blocks) {
      c.fail(key, "has not one entry for each transformer of a level");
    }
    level.depths.assign(own.begin(), own.begin() + level.blocks);
    return level;
  }
};

// The class turns what is said of the way down around, unless the way up has a list of its own.
void read_depths(const Config& c, Levels& n) {
  constexpr auto* down = "transformer_layers_per_block";
  constexpr auto* up = "reverse_transformer_layers_per_block";
  n.depths = depths_of(c, down, n.widths.size());
  if (c.given(up)) {
    n.up_depths = depths_of(c, up, n.widths.size());
    return;
  }
  for (const auto& own : n.depths) {
    if (own.size() > 1) c.fail(down, "differs within a level, and no list of the way up is given");
  }
  n.up_depths.assign(n.depths.rbegin(), n.depths.rend());
}

Levels read_levels(const Config& c, const UNet& net) {
  Levels n;
  n.widths = c.sizes("block_out_channels", {320, 640, 1280, 1280});
  const std::size_t levels = n.widths.size();
  n.blocks = per_level(c, "layers_per_block", 2, levels);
  read_depths(c, n);
  // The class reads how wide a head is as the number of heads, unless that is given.
  const bool named = c.given("num_attention_heads");
  n.heads = per_level(c, named ? "num_attention_heads" : "attention_head_dim", 8, levels);
  n.block = {.groups = net.groups, .activation = net.activation, .dropout = net.dropout};
  n.text_only = flags_of(c, "only_cross_attention", levels);
  n.transformer = {.groups = net.groups};  // the class hands its dropout to residual blocks alone
  n.transformer.linear = c.flag("use_linear_projection", false);
  for (std::size_t l = 0; l < levels; ++l) {
    static_cast<void>(c.divided("block_out_channels", n.widths[l], "norm_num_groups", net.groups));
    static_cast<void>(
        c.divided("block_out_channels", n.widths[l], "attention_head_dim", n.heads[l]));
  }
  return n;
}

void refuse_other_unets(const Config& c) {
  c.pass_over({"center_input_sample", "flip_sin_to_cos", "freq_shift",  // numbers that go in
               "addition_embed_type_num_heads"});                       // of another embedding
  refuse(c, {"class_embed_type", "time_embedding_act_fn", "timestep_post_act",
             "cross_attention_norm", "mid_block_only_cross_attention"});
  refuse_true(c, {"dual_cross_attention", "resnet_skip_time_act", "class_embeddings_concat"});
  static_cast<void>(c.flag("upcast_attention", false));  // which fused attention does not read
  require(c, "resnet_time_scale_shift", "default");
  require(c, "time_embedding_type", "positional");
  require(c, "attention_type", "default");
  for (const char* key : {"conv_in_kernel", "conv_out_kernel"}) {
    if (c.size(key, 3) % 2 == 0) c.fail(key, "only odd sizes are supported");
  }
  require(c, "encoder_hid_dim_type", "text_proj");
  for (const char* key : {"resnet_out_scale_factor", "mid_block_scale_factor"}) {
    if (c.number(key, 1) != 1) c.fail(key, "only 1 is supported");
  }
  if (c.size("downsample_padding", 1) != 1) c.fail("downsample_padding", "only 1 is supported");
}

// A residual block, a transformer and another one; the first alone; or nothing.
void read_middle(const Config& c, const Levels& n, UNet& net) {
  constexpr auto* attending = "UNetMidBlock2DCrossAttn";
  constexpr auto* plain = "UNetMidBlock2D";
  const std::size_t last = n.widths.size() - 1;
  const std::string type = c.text("mid_block_type", attending);
  net.middle = n.at(last, has_transformer(c, "mid_block_type", type, attending, plain));
  net.middle->blocks = net.middle->transformer ? 1 : 0;
  if (c.json().json().contains("mid_block_type") && !c.given("mid_block_type")) {
    net.middle.reset();
  }
}

ModelSpec unet(const Config& c) {
  refuse_other_unets(c);
  UNet net;
  net.in = c.size("in_channels", 4);
  net.out = c.size("out_channels", 4);
  net.side = c.size("sample_size", 64);
  net.groups = c.size("norm_num_groups", 32);
  net.activation = c.activation("act_fn", "silu");
  net.dropout = c.rate("dropout", 0);
  net.first_kernel = c.size("conv_in_kernel", 3);
  net.last_kernel = c.size("conv_out_kernel", 3);
  net.classes = c.optional_size("num_class_embeds", std::nullopt).value_or(0);
  net.read_width = c.optional_size("encoder_hid_dim", std::nullopt).value_or(0);
  const Levels n = read_levels(c, net);
  net.text_width = text_width_of(c, n.widths.size());
  const std::size_t levels = n.widths.size();
  net.time_width = c.size("time_embedding_dim", 4 * n.widths.front());
  if (c.given("addition_embed_type")) {
    require(c, "addition_embed_type", "text_time");
    net.pooled_width = c.size("projection_class_embeddings_input_dim");
    static_cast<void>(c.size("addition_time_embed_dim", 1));  // a part of it
  }
  net.guidance_width = c.optional_size("time_cond_proj_dim", std::nullopt).value_or(0);
  constexpr auto* down = "down_block_types";
  constexpr auto* up = "up_block_types";
  const std::vector<std::string> going_down = {"CrossAttnDownBlock2D", "CrossAttnDownBlock2D",
                                               "CrossAttnDownBlock2D", "DownBlock2D"};
  const std::vector<std::string> going_up = {"UpBlock2D", "CrossAttnUpBlock2D",
                                             "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"};
  for (std::size_t l = 0; l < levels; ++l) {
    const std::string type = block_types(c, down, going_down, levels)[l];
    net.down.push_back(
        n.of_depths(c, "transformer_layers_per_block",
                    n.at(l, has_transformer(c, down, type, "CrossAttnDownBlock2D", "DownBlock2D")),
                    n.depths[l]));
  }
  for (std::size_t l = 0; l < levels; ++l) {
    const std::string type = block_types(c, up, going_up, levels)[l];
    UNetLevel level =
        n.at(levels - 1 - l, has_transformer(c, up, type, "CrossAttnUpBlock2D", "UpBlock2D"));
    level.blocks += 1;
    net.up.push_back(n.of_depths(c, "reverse_transformer_layers_per_block", level, n.up_depths[l]));
  }
  read_middle(c, n, net);
  return of_network(net);
}

ModelSpec autoencoder(const Config& c) {
  Autoencoder net;
  c.pass_over({"scaling_factor", "shift_factor", "latents_mean", "latents_std",  // of pipelines
               "force_upcast"});
  net.in = c.size("in_channels", 3);
  net.out = c.size("out_channels", 3);
  net.latents = c.size("latent_channels", 4);
  net.side = c.size("sample_size", 32);
  net.groups = c.size("norm_num_groups", 32);
  net.blocks = c.size("layers_per_block", 1);
  net.activation = c.activation("act_fn", "silu");
  net.attention = c.flag("mid_block_add_attention", true);
  net.quantized = c.flag("use_quant_conv", true);
  net.unquantized = c.flag("use_post_quant_conv", true);
  net.widths = c.sizes("block_out_channels", {64});
  const std::vector<std::pair<const char*, const char*>> known = {
      {"down_block_types", "DownEncoderBlock2D"}, {"up_block_types", "UpDecoderBlock2D"}};
  for (const auto& [key, type] : known) {
    for (const std::string& found : block_types(c, key, {type}, net.widths.size())) {
      static_cast<void>(has_transformer(c, key, found, type, type));
    }
  }
  for (const std::int64_t width : net.widths) {
    static_cast<void>(c.divided("block_out_channels", width, "norm_num_groups", net.groups));
  }
  return of_network(net);
}

}  // namespace

std::vector<Family> diffusion_families() {
  std::vector<Family> all{{"UNet2DConditionModel", "unet", unet},
                          {"AutoencoderKL", "autoencoder_kl", autoencoder}};
  for (const auto& table :
       {latent_diffusion_families(), joint_image_diffusion_families(), image_diffusion_families(),
        lumina2_families(), video_diffusion_families(), joint_video_diffusion_families(),
        skip_diffusion_families(), cogview_families()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

}  // namespace shardsim::models
