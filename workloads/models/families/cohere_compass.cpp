// Cohere Compass: Cohere 2's layers, full ones everywhere unless the file lists others, behind
// Qwen3-VL's tower (transformers 5.23, modeling_cohere_compass.py).
#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

// Whether layers of a type have positions: the file says them of each, or null. The class has no
// others.
bool has_positions(const Config& c, const std::string& type) {
  const auto all = c.json().find("rope_parameters");
  if (!all || !all->is_object() || !all->json().contains(type)) {
    c.fail("rope_parameters", "has no entry for " + type);
  }
  return !all->json()[type].is_null();
}

ModelSpec cohere_compass_text(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true, .hidden = 8192, .width = 22528, .vocab = 256000});
  n.norm = NormKind::layer_wide;
  n.head_dim = c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads);
  c.pass_over({"pooling", "head_dim", "logit_scale"});
  const auto types =
      layer_types(c, n.layers, [](std::int64_t) { return std::string("full_attention"); });
  ModelSpec spec = decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        const std::string& type = types[static_cast<std::size_t>(i)];
        const bool full = is_full(types, i);
        Attention attention = llama_attention(c, n);
        attention.window = full ? 0 : c.count("sliding_window", 4096);
        attention.rotary.table = full ? "rotary" : "rotary of windows";
        attention.rotary.by_example = true;
        if (!has_positions(c, type)) attention.rotary.dims = 0;
        return LayerKind{.name = full ? "full" : "windowed",
                         .branches = {{.before = {n.norm, "input_layernorm"}, .body = attention},
                                      {.body = llama_mlp(n)}},
                         .parallel = true};
      }));
  spec.head.scaled = true;  // by 1, too
  return spec;
}

ModelSpec cohere_compass(const Config& c) {
  ModelSpec spec = qwen3_vl_like(c, cohere_compass_text, 3);
  spec.head.scaled = nested(c, "text_config").given("logit_scale");
  return spec;
}

}  // namespace

std::vector<Family> cohere_compass_families() {
  return {{"CohereCompassForCausalLM", "cohere_compass_text", cohere_compass_text},
          {"CohereCompassForConditionalGeneration", "cohere_compass", cohere_compass}};
}

}  // namespace shardsim::models
