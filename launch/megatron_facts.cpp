#include "launch/megatron_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/model_families.hpp"

namespace shardsim {
namespace {

std::string without_blanks(const Json& value) {
  std::string text;
  for (const Json& one : value.is_array() ? value : Json::array({value})) {
    for (const char c : one.is_string() ? one.get<std::string>() : one.dump()) {
      if (c != ' ' && c != '\'' && c != '"') text += c;
    }
  }
  return text;
}

std::optional<std::int64_t> integer_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The layers that "[0]*3+[1]*58" lists; nothing: it is no such thing.
std::optional<std::vector<bool>> layers_in(std::string text) {
  constexpr std::int64_t most = 10'000;
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  std::vector<bool> layers;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    const std::string_view term = std::string_view{text}.substr(at, end - at);
    const std::size_t close = term.find(']');
    if (!term.starts_with('[') || close == std::string_view::npos) return std::nullopt;
    const std::string_view rest = term.substr(close + 1);
    const auto times = rest.empty() ? 1 : integer_in(rest.substr(rest.starts_with('*') ? 1 : 0));
    if (!times || *times < 0 || *times > most) return std::nullopt;
    std::vector<bool> listed;
    for (const char c : term.substr(1, close - 1)) {
      if (c != '0' && c != '1' && c != ',') return std::nullopt;
      if (c != ',') listed.push_back(c == '1');
    }
    for (std::int64_t i = 0; i < *times && layers.size() <= most; ++i) {
      layers.insert(layers.end(), listed.begin(), listed.end());
    }
    at = end + 1;
  }
  return layers;
}

}  // namespace

std::int64_t megatron_window(const Facts& facts) {
  std::string text = without_blanks(facts.at("arg.window"));
  for (const char bracket : {'(', ')', '[', ']'}) std::erase(text, bracket);
  const std::size_t comma = text.find(',');
  const auto before = integer_in(std::string_view{text}.substr(0, comma));
  const auto after = comma == std::string::npos
                         ? std::optional<std::int64_t>(0)
                         : integer_in(std::string_view{text}.substr(comma + 1));
  if (before && after && *before >= 0 && *after == 0) return *before + 1;
  facts.fail("arg.window", "expected how many tokens before, and 0 behind: (4095,0)");
}

std::vector<std::int64_t> megatron_context_sizes(const Facts& facts) {
  std::vector<std::int64_t> sizes;
  if (!facts.has("arg.context_sizes")) return sizes;
  const Json given = facts.get("arg.context_sizes");
  for (const Json& one : given.is_array() ? given : Json::array({given})) {
    const auto size = integer_in(one.is_string() ? one.get<std::string>() : one.dump());
    if (!size || *size < 1) facts.fail("arg.context_sizes", "expected sizes of groups: 2 4");
    sizes.push_back(*size);
  }
  return sizes;
}

std::int64_t megatron_dense_layers(const Facts& facts) {
  if (!facts.has("arg.moe_layers")) return 0;
  const std::string text = without_blanks(facts.at("arg.moe_layers"));
  if (text == "1") return 0;
  const std::int64_t layers = facts.integer("model.layers");
  const auto listed = layers_in(text);
  if (!listed || static_cast<std::int64_t>(listed->size()) != layers) {
    facts.fail("arg.moe_layers", fmt::format("expected 1, or a list of {} layers: [0]*3+[1]*{}",
                                             layers, std::max<std::int64_t>(layers - 3, 1)));
  }
  std::int64_t dense = 0;
  while (dense < layers && !(*listed)[static_cast<std::size_t>(dense)]) ++dense;
  for (std::int64_t i = dense; i < layers; ++i) {
    if ((*listed)[static_cast<std::size_t>(i)]) continue;
    facts.fail("arg.moe_layers",
               "layers of experts between others cannot be made of arguments: name the model's "
               "config.json with --model");
  }
  return dense;
}

namespace {

// mamba_hybrid_layer_allocation.py: attention evenly, state-space layers at both ends, then MLPs
// evenly among what is left, towards the end.
std::string pattern_of_ratios(std::int64_t layers, double attention, double mlp) {
  std::string pattern(static_cast<std::size_t>(layers), 'M');
  // Every so many of a letter one becomes another.
  const auto deal = [&](char letter, double each) {
    double left = each;
    for (char& layer : pattern) {
      if (layer != 'M') continue;
      if (left < 0.5) layer = letter;
      left += left < 0.5 ? each : -1;
    }
  };
  const double attending = std::nearbyint(static_cast<double>(layers) * attention);
  const double mixing = static_cast<double>(layers) - attending;
  deal('*', mixing / (attending + 1));
  const double wide = std::nearbyint(static_cast<double>(layers) * mlp);
  if (wide > 0) deal('-', (mixing - wide) / wide);
  return pattern;
}

}  // namespace

void find_megatron_pattern(Facts& facts) {
  const double attention = facts.number("arg.attention_ratio"), mlp = facts.number("arg.mlp_ratio");
  if (!facts.has("model.pattern") && attention == 0 && mlp == 0) return;
  if (!facts.has("model.pattern")) {
    facts.set("model.pattern", pattern_of_ratios(facts.integer("model.layers"), attention, mlp));
  }
  const std::string pattern = without_blanks(facts.at("model.pattern"));
  if (pattern.find_first_not_of("M*-E") != std::string::npos) {
    facts.fail("model.pattern", "expected a letter for each layer: M, *, - or E");
  }
  facts.set("model.pattern", pattern, facts.place("model.pattern"), /*given=*/true);
  if (!facts.has("model.layers")) {
    facts.set("model.layers", static_cast<std::int64_t>(pattern.size()));
  }
  // Defaults of transformer_config.py; heads fill twice the width.
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"model.mamba_state", 128}, {"model.mamba_dim", 64}, {"model.mamba_groups", 8}};
  for (const auto& [name, size] : sizes) {
    if (!facts.has(name)) facts.set(name, size);
  }
  if (!facts.has("model.mamba_heads")) {
    facts.set("model.mamba_heads",
              2 * facts.integer("model.hidden") / facts.integer("model.mamba_dim"));
  }
  if (pattern.find('E') == std::string::npos) {
    facts.erase("model.experts");
  } else if (!facts.is("model.scores", "sigmoid")) {
    facts.fail("model.scores", "experts of a pattern are chosen by sigmoid scores");
  }
  facts.erase("model.scores");
}

void read_megatron_types(const Facts& facts, Json& workload) {
  const std::string type = facts.text("arg.type");
  Json& precision = workload["precision"];
  precision["compute"] = type;
  precision["parameters"] = type;
  const Json gradients = facts.get("arg.gradients");
  // arguments.py: bf16 adds gradients up in fp32 unless it is told otherwise.
  precision["gradients"] = type == "fp32"         ? Json("fp32")
                           : !gradients.is_null() ? gradients
                           : type == "bf16"       ? Json("fp32")
                                                  : Json(type);
  precision["master"] = type == "fp32" ? Json("none") : facts.at("arg.master");
  if (facts.at("arg.first_moment") != facts.at("arg.second_moment")) {
    facts.fail("arg.second_moment", "moments of two types are not simulated");
  }
  precision["moments"] = facts.at("arg.first_moment");
  if (facts.has("arg.fp4")) {
    precision["compute"] = "nvfp4";
  } else if (facts.has("arg.fp8")) {
    const bool scaled_in_blocks = facts.is("arg.fp8_recipe", "mxfp8");
    precision["compute"] = scaled_in_blocks ? "mxfp8" : "fp8";
    if (!scaled_in_blocks) precision["scaling"] = facts.at("arg.fp8_recipe");
    if (facts.flag("arg.fp8_gather")) precision["gather"] = "fp8";
    if (facts.flag("arg.fp8_attention")) precision["attention"] = "fp8";
  }
  if (facts.flag("arg.wide_ends")) {
    precision["bf16_layers"] = {{"first", facts.integer("arg.wide_first", 0)},
                                {"last", facts.integer("arg.wide_last", 0)}};
  }
}

void add_megatron_type_facts(const Json& precision, Facts& facts) {
  const std::string type = precision["parameters"];
  facts.set("arg.type", type);
  const Json& gradients = precision["gradients"];
  if (type == "bf16" && gradients == "bf16") facts.set("arg.gradients", "bf16");
  if (type == "fp16" && gradients == "fp32") facts.set("arg.gradients", "fp32");
  if (precision["master"] != "none") facts.set("arg.master", precision["master"]);
  facts.set("arg.first_moment", precision["moments"]);
  facts.set("arg.second_moment", precision["moments"]);
  const std::string compute = precision["compute"];
  if (compute == "nvfp4") facts.set("arg.fp4", "e2m1");
  if (compute == "fp8" || compute == "mxfp8") {
    facts.set("arg.fp8", "hybrid");
    facts.set("arg.fp8_recipe",
              compute == "mxfp8" ? Json("mxfp8") : Json(precision.value("scaling", "delayed")));
    facts.set("arg.fp8_gather", precision.contains("gather"));
    facts.set("arg.fp8_attention", precision.contains("attention"));
  }
  if (precision.contains("bf16_layers")) {
    facts.set("arg.wide_ends", true);
    facts.set("arg.wide_first", precision["bf16_layers"]["first"]);
    facts.set("arg.wide_last", precision["bf16_layers"]["last"]);
  }
}

void read_megatron_recompute(const Facts& facts, Json& workload) {
  // --moe-layer-recompute is the older word for selective, of experts (arguments.py).
  const bool experts = facts.flag("arg.recompute_experts");
  if (!experts && !facts.has("arg.recompute") && !facts.has("arg.recompute_method")) return;
  Json& policy = workload["rematerialization"];
  const bool selective = facts.is("arg.recompute", "selective");
  if (selective || (experts && !facts.has("arg.recompute"))) {
    const Json modules = facts.get("arg.recompute_modules");
    Json list = modules.is_array() ? modules : Json::array();
    if (modules.is_string()) list.push_back(modules);
    if (modules.is_null() && selective) list.push_back("core_attn");
    if (experts && std::find(list.begin(), list.end(), "moe") == list.end()) list.push_back("moe");
    policy = {{"modules", list}};
    return;
  }
  if (facts.is("arg.recompute", "each layer")) {  // --checkpoint-activations of 2021
    policy = {{"layers", 1}, {"method", "uniform"}};
    return;
  }
  if (!facts.has("arg.recompute_method")) {
    facts.fail("arg.recompute",
               "full recomputation needs a method: --recompute-method uniform or block");
  }
  policy = {{"layers", facts.integer_or("arg.recompute_layers", 1)},
            {"method", facts.at("arg.recompute_method")}};
}

void add_megatron_recompute_facts(const Json& rematerialization, Facts& facts) {
  if (rematerialization.is_string()) {
    if (rematerialization == "selective") facts.set("arg.recompute", "selective");
    if (rematerialization == "full") {
      facts.set("arg.recompute", "full");
      facts.set("arg.recompute_method", "uniform");
      facts.set("arg.recompute_layers", 1);
    }
    return;
  }
  if (rematerialization.contains("modules")) {
    facts.set("arg.recompute", "selective");
    facts.set("arg.recompute_modules", rematerialization["modules"]);
  } else if (rematerialization.contains("method")) {
    facts.set("arg.recompute", "full");
    facts.set("arg.recompute_method", rematerialization["method"]);
    facts.set("arg.recompute_layers", rematerialization["layers"]);
  }
}

namespace {

// Llama 4's arguments have all layers alike.
void write_layers_alike(const Place& place, Facts& facts) {
  const bool alike = facts.integer("model.chunk", 0) == 0 &&
                     facts.integer("model.nope_interval") > facts.integer("model.layers") &&
                     facts.integer_or("model.routed_step", 1) == 1;
  if (!alike) {
    throw InputError(place,
                     "Megatron's arguments make Llama 4 of layers that are alike: with "
                     "experts and positions, to all tokens");
  }
  for (const char* fact : {"model.chunk", "model.nope_interval", "model.routed_step"}) {
    facts.erase(fact);
  }
}

}  // namespace

void add_megatron_model_facts(const Json& config, const Place& place, Facts& facts) {
  // What arguments are without being told is not what config.json is.
  for (const auto& [fact, value] : std::vector<std::pair<const char*, Json>>{
           {"model.positions", "rope"}, {"model.norm", "rms"}, {"model.bias", false}}) {
    facts.set(fact, value);
  }
  add_model_facts(config, place, facts);
  if (facts.has("model.pattern") && facts.has("model.experts"))
    facts.set("model.scores", "sigmoid");
  if (facts.has("model.chunk")) write_layers_alike(place, facts);
  const bool clamped = facts.flag("model.clamped");
  const bool gated = !clamped && (!facts.has("model.gated") || facts.flag("model.gated"));
  facts.set("arg.activation", clamped ? Json("gelu")
                              : gated ? Json("swiglu")
                                      : facts.get("model.activation"));
  const bool usual_width =
      !gated && facts.integer_or("model.width", 0) == 4 * facts.integer("model.hidden");
  if (usual_width) facts.erase("model.width");
  for (const char* fact : {"model.gated", "model.activation"}) facts.erase(fact);
  if (facts.has("model.kv_heads") && !facts.flag("model.latent")) {
    facts.set("arg.grouped_query", true);
    facts.set("arg.query_groups", facts.at("model.kv_heads"));
  }
  facts.erase("model.kv_heads");
  if (facts.has("model.window")) {
    facts.set("arg.window", fmt::format("({},0)", facts.integer("model.window") - 1));
    facts.erase("model.window");
  }
  const std::int64_t dense = facts.integer_or("model.dense_layers", 0);
  if (dense > 0) {
    facts.set("arg.moe_layers",
              fmt::format("[0]*{}+[1]*{}", dense, facts.integer("model.layers") - dense));
  }
  facts.erase("model.dense_layers");
  if (facts.has("model.shared_width") && facts.integer("model.shared_width", 0) == 0) {
    facts.erase("model.shared_width");
  }
}

}  // namespace shardsim
