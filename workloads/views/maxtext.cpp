#include "workloads/views/maxtext.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "workloads/views/form_text.hpp"
#include "workloads/views/maxtext_rows.hpp"

namespace shardsim {
namespace {

// Where layers of a family are, by their numbers.
enum class Scan : std::uint8_t {
  plain,       // all alike
  cycle,       // layers_0, layers_1, ... of a scanned block, and nothing is left over
  numbered,    // the same as layer_0, layer_1, ...
  remainder,   // likewise, and what is left over follows unscanned
  pairs,       // two layers in one, told apart by their modules' names
  by_experts,  // dense_layers, then moe_layers
  locals       // of each cycle but the last in local_layers, a scan within; the last global_layer
};

struct MaxTextFamily {
  std::vector<std::string_view> families;
  std::string_view attention = "self_attention";
  std::string_view moe{};     // module of routed experts
  std::string_view shared{};  // of those that every token visits
  // What the router's kernel calls the stream, at e591f30 and in 0.2.5.
  std::string_view gate = "embed", gate_025 = "embed";
  std::string_view norm = "_layer_norm";
  std::string_view pre_norm = "pre_self_attention{norm}";
  std::string_view mlp_norm = "post_self_attention_layer_norm";
  std::string_view post_norm = "post_ffw{norm}";
  std::string_view named = "norm";  // the dimension of norms
  std::string_view out = "heads=heads kv=*";
  Scan scan = Scan::plain;
  int cycle = 1;
  std::string_view block = "decoder/layers";
};

// Qwen3-Next and those after it.
MaxTextFamily of_delta_rule(const char* family, Scan scan) {
  return {.families = {family},
          .attention = "attention/attention",
          .moe = "mlp/routed_experts",
          .shared = "mlp/shared_expert",
          .pre_norm = "input_layernorm",
          .mlp_norm = "post_attention_layernorm",
          .named = "-",
          .out = "mlp=*",
          .scan = scan,
          .cycle = 4};
}

const std::vector<MaxTextFamily> maxtext_families = {
    {.families = {"llama", "mistral", "qwen2", "qwen3"}},
    {.families = {"mixtral"}, .moe = "MoeBlock_0"},
    {.families = {"qwen3_moe"}, .moe = "moe_block"},
    {.families = {"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2"},
     .moe = "DeepSeekMoeBlock_0/MoeBlock_0",
     .shared = "DeepSeekMoeBlock_0/shared_experts",
     .gate = "embed_moe",
     .gate_025 = "embed_router",
     .scan = Scan::by_experts},
    {.families = {"gpt_oss"},
     .attention = "GptOssAttention",
     .moe = "GptOssMlp",
     .scan = Scan::cycle,
     .cycle = 2},
    {.families = {"llama4_text"},
     .moe = "Llama4MoEBlock_0/MoeBlock_0",
     .shared = "Llama4MoEBlock_0/shared_experts",
     .gate_025 = "embed_router",
     .scan = Scan::cycle,
     .cycle = 4},
    {.families = {"olmo3"},
     .attention = "attention",
     .post_norm = "post_mlp_layer_norm",
     .scan = Scan::cycle,
     .cycle = 4},
    {.families = {"gemma"}, .norm = "_norm", .mlp_norm = "pre_ffw_norm"},
    {.families = {"gemma2"},
     .attention = "self_attention{mark}",
     .norm = "_norm{mark}",
     .mlp_norm = "post_self_attention_norm{mark}",
     .scan = Scan::pairs,
     .cycle = 2},
    {.families = {"gemma3_text"},
     .norm = "_norm",
     .mlp_norm = "post_self_attention_norm",
     .scan = Scan::remainder,
     .cycle = 6},
    {.families = {"gemma4_text"},
     .moe = "mlp/moe_block/MoeBlock_0",
     .shared = "mlp/moe_block/shared_experts",
     .gate_025 = "embed_router",
     .norm = "_norm",
     .mlp_norm = "post_self_attention_norm",
     .scan = Scan::locals,
     .cycle = 6,
     .block = "decoder/scanned_blocks"},
    of_delta_rule("qwen3_next", Scan::locals),
    of_delta_rule("qwen3_5_moe_text", Scan::numbered),
    {.families = {"gpt2"}}};

const MaxTextFamily* find_maxtext_family(const std::string& family) {
  for (const MaxTextFamily& known : maxtext_families) {
    if (std::count(known.families.begin(), known.families.end(), family) > 0) return &known;
  }
  return nullptr;
}

// Whether each layer has experts.
std::vector<bool> layers_with_experts(const Workload& workload) {
  const auto counts = layer_counts(workload);
  std::vector<bool> have(counts.empty() ? 0 : counts.begin()->second);
  for (const Block& block : workload.blocks) {
    if (!block.is_layer) continue;
    const bool has = std::any_of(block.forward.begin(), block.forward.end(),
                                 [](const Op& op) { return op.module == OpModule::experts; });
    for (const std::int32_t number : block.numbers) have[at(number)] = has;
  }
  return have;
}

// Layers that share keys and have inputs of their own are not scanned.
bool is_small_gemma(const Workload& workload) {
  return std::any_of(workload.tensors.begin(), workload.tensors.end(), [](const Tensor& tensor) {
    return tensor.name == "model.per_layer_model_projection.weight";
  });
}

TreeView::Layer stacked_at(std::string path, std::string axis) {
  return {.path = std::move(path), .mark = "", .stacked = true, .axis = std::move(axis)};
}

TreeView::Layer layer_of(const MaxTextFamily& family, std::size_t i, std::size_t layers,
                         bool has_experts) {
  const auto cycle = static_cast<std::size_t>(family.cycle);
  const std::string block(family.block);
  switch (family.scan) {
    case Scan::plain:
      break;
    case Scan::cycle:
      return stacked_at(fmt::format("{}/layers_{}", block, i % cycle), "layers");
    case Scan::numbered:
      return stacked_at(fmt::format("{}/layer_{}", block, i % cycle), "layers");
    case Scan::remainder:
      if (i < layers - layers % cycle) {
        return stacked_at(fmt::format("{}/layers_{}", block, i % cycle), "layers");
      }
      return {.path = fmt::format("decoder/layers_remainder/layers_{}", i % cycle)};
    case Scan::pairs: {
      TreeView::Layer layer = stacked_at(block, "layers");
      layer.mark = i % cycle == 0 ? "_local" : "_global";
      return layer;
    }
    case Scan::by_experts: {
      const std::string stack = has_experts ? "moe_layers" : "dense_layers";
      return stacked_at("decoder/" + stack, stack);
    }
    case Scan::locals: {
      if (i % cycle + 1 == cycle) return stacked_at(block + "/global_layer", "layers");
      TreeView::Layer layer = stacked_at(block + "/local_layers", "layers");
      layer.inner = family.cycle - 1;
      layer.inner_axis = "local_layers";
      return layer;
    }
  }
  return stacked_at(block, "layers");
}

std::vector<std::string> known_families() {
  std::vector<std::string> names;
  for (const MaxTextFamily& family : maxtext_families) {
    names.insert(names.end(), family.families.begin(), family.families.end());
  }
  return names;
}

struct MaxTextVersion {
  std::string_view stream, delta_heads;
  bool is_025 = false;
};

std::optional<ViewedParameter> viewed_in(const MaxTextVersion& version, const ViewInput& input,
                                         TensorId parameter) {
  const MaxTextFamily& family = *find_maxtext_family(input.family);
  const std::vector<bool> experts = layers_with_experts(input.workload);
  // Of Gemma 4 the MLP beside experts is one that every token visits.
  const bool is_beside = input.family == "gemma4_text" && !experts.empty() && experts.front();
  auto viewed = by_row(input.workload, parameter, maxtext_rows(),
                       {{"attention", family.attention},
                        {"moe", family.moe},
                        {"shared", family.shared},
                        {"dense", is_beside ? family.shared : "mlp{mark}"},
                        {"gate", version.is_025 ? family.gate_025 : family.gate},
                        {"stream", version.stream},
                        {"delta_heads", version.delta_heads},
                        {"pre_norm", family.pre_norm},
                        {"mlp_norm", family.mlp_norm},
                        {"post_norm", family.post_norm},
                        {"norm", family.norm},
                        {"named", family.named},
                        {"out", family.out}});
  if (viewed) viewed->form.stacked_at = std::min<std::size_t>(1, viewed->form.axes.size());
  return viewed;
}

}  // namespace

ViewedLayers maxtext_layers(const ViewInput& input) {
  const MaxTextFamily* family = find_maxtext_family(input.family);
  if (family == nullptr) fail_without_family(input, "maxtext", known_families());
  const std::vector<bool> has_experts = layers_with_experts(input.workload);
  const std::size_t count = has_experts.size();
  const bool is_scanned = !is_small_gemma(input.workload);
  const bool may_be_left = !is_scanned || family->scan == Scan::remainder;
  if (!may_be_left && count % static_cast<std::size_t>(family->cycle) != 0) {
    throw InputError(input.place,
                     fmt::format("view \"maxtext\" scans {} layers of {} together, and its {} are "
                                 "no multiple of these",
                                 family->cycle, input.family, count));
  }
  std::vector<TreeView::Layer> layers;
  for (std::size_t i = 0; i < count; ++i) {
    layers.push_back(is_scanned ? layer_of(*family, i, count, has_experts[i])
                                : TreeView::Layer{.path = fmt::format("decoder/layers_{}", i)});
  }
  return {{layer_counts(input.workload).begin()->first, std::move(layers)}};
}

std::optional<ViewedParameter> maxtext_parameter(const ViewInput& input, TensorId parameter) {
  return viewed_in({"embed", "mlp"}, input, parameter);
}

std::optional<ViewedParameter> maxtext_025_parameter(const ViewInput& input, TensorId parameter) {
  return viewed_in({"embed_attn", "gdn_head", /*is_025=*/true}, input, parameter);
}

}  // namespace shardsim
