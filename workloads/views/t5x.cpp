#include "workloads/views/t5x.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "workloads/views/form_text.hpp"

namespace shardsim {
namespace {

const std::vector<std::string>& t5x_families() {
  static const std::vector<std::string> table = {"mt5", "t5"};
  return table;
}

constexpr std::array t5x_rows = std::to_array<ViewRow>(
    {{"shared.weight", "token_embedder/embedding", "vocab=vocab embed=hidden"},
     {"lm_head.weight", "decoder/logits_dense/kernel", "embed=hidden vocab=vocab"},
     {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
      "encoder/relpos_bias/rel_embedding", "heads=heads relpos_buckets=*"},
     {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
      "decoder/relpos_bias/rel_embedding", "heads=heads relpos_buckets=*"},
     {"encoder.final_layer_norm.weight", "encoder/encoder_norm/scale", "embed=hidden"},
     {"decoder.final_layer_norm.weight", "decoder/decoder_norm/scale", "embed=hidden"},
     {"layer.0.layer_norm.weight", "pre_{attention}_layer_norm/scale", "embed=hidden"},
     {"layer.0.SelfAttention.q.weight", "{attention}/query/kernel", "embed=hidden joined_kv=*"},
     {"layer.0.SelfAttention.k.weight", "{attention}/key/kernel", "embed=hidden joined_kv=*"},
     {"layer.0.SelfAttention.v.weight", "{attention}/value/kernel", "embed=hidden joined_kv=*"},
     {"layer.0.SelfAttention.o.weight", "{attention}/out/kernel",
      "joined_kv=heads+head_dim embed=hidden"},
     {"layer.1.EncDecAttention.q.weight", "encoder_decoder_attention/query/kernel",
      "embed=hidden joined_kv=*"},
     {"layer.1.EncDecAttention.k.weight", "encoder_decoder_attention/key/kernel",
      "embed=hidden joined_kv=*"},
     {"layer.1.EncDecAttention.v.weight", "encoder_decoder_attention/value/kernel",
      "embed=hidden joined_kv=*"},
     {"layer.1.EncDecAttention.o.weight", "encoder_decoder_attention/out/kernel",
      "joined_kv=heads+head_dim embed=hidden"}});

// Of the last branch of a layer, the second of an encoder's and the third of a decoder's.
constexpr std::array t5x_mlp_rows = std::to_array<ViewRow>(
    {{"layer_norm.weight", "pre_mlp_layer_norm/scale", "embed=hidden"},
     {"DenseReluDense.wi.weight", "mlp/wi/kernel", "embed=hidden mlp=ffn"},
     {"DenseReluDense.wi_0.weight", "mlp/wi_0/kernel", "embed=hidden mlp=ffn"},
     {"DenseReluDense.wi_1.weight", "mlp/wi_1/kernel", "embed=hidden mlp=ffn"},
     {"DenseReluDense.wo.weight", "mlp/wo/kernel", "mlp=ffn embed=hidden"}});

std::optional<ViewedParameter> by_table(const Workload& workload, TensorId parameter,
                                        std::string_view name, std::span<const ViewRow> rows,
                                        bool decodes) {
  for (const ViewRow& row : rows) {
    if (row.from != name) continue;
    std::string to(row.to);
    const std::string hole = "{attention}";
    if (const std::size_t found = to.find(hole); found != std::string::npos) {
      to.replace(found, hole.size(), decodes ? "self_attention" : "attention");
    }
    return in_form(workload, parameter, to, row.dims);
  }
  return std::nullopt;
}

}  // namespace

ViewedLayers t5x_layers(const ViewInput& input) {
  const auto& known = t5x_families();
  if (std::count(known.begin(), known.end(), input.family) == 0) {
    fail_without_family(input, "t5x", known);
  }
  ViewedLayers layers;
  for (const auto& [stack, count] : layer_counts(input.workload)) {
    const std::string side = stack.substr(0, stack.find('.'));
    for (std::size_t i = 0; i < count; ++i) {
      layers[stack].push_back({.path = fmt::format("{}/layers_{}", side, i)});
    }
  }
  return layers;
}

std::optional<ViewedParameter> t5x_parameter(const ViewInput& input, TensorId parameter) {
  const Workload& workload = input.workload;
  const bool decodes = stack_of(workload, workload.tensors[at(parameter)]).starts_with("decoder.");
  const std::string name = name_in_layer(workload, parameter);
  const std::string mlp = decodes ? "layer.2." : "layer.1.";
  if (name.starts_with(mlp)) {
    return by_table(workload, parameter, name.substr(mlp.size()), t5x_mlp_rows, decodes);
  }
  // Between a decoder's attention to itself and its MLP.
  if (name == "layer.1.layer_norm.weight") {
    return in_form(workload, parameter, "pre_cross_attention_layer_norm/scale", "embed=hidden");
  }
  return by_table(workload, parameter, name, t5x_rows, decodes);
}

}  // namespace shardsim
