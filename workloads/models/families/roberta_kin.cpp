// RoBERTa's kin with parts of their own: I-BERT (arXiv:2101.01321) before it is quantized, X-MOD
// with adapters of languages (arXiv:2205.06266).
//
// Names, buffers and defaults as in transformers 5.23, modeling_ibert.py, quant_modules.py and
// modeling_xmod.py.
#include <algorithm>
#include <string>
#include <vector>

#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// What I-BERT's modules keep for a training of whole numbers, which is another.
class QuantizedBuffers {
 public:
  explicit QuantizedBuffers(ModelSpec& spec) : spec_(spec) {}

  void table(const std::string& name, std::int64_t rows, std::int64_t width) {
    add(name + ".weight_scaling_factor", {1});
    add(name + ".weight_integer", {rows, width});
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight_integer", {out, in});
    add(name + ".fc_scaling_factor", {out});
    add(name + ".bias_integer", {out});
  }
  // Of values that go by.
  void range(const std::string& name) {
    for (const char* what : {".x_min", ".x_max", ".act_scaling_factor"}) add(name + what, {1});
  }
  void norm(const std::string& name) {
    add(name + ".shift", {1});
    range(name + ".activation");
  }

 private:
  void add(const std::string& name, Shape shape) {
    spec_.buffers.push_back({name, std::move(shape)});
  }

  ModelSpec& spec_;
};

void add_ibert_buffers(ModelSpec& spec, const std::string& prefix, std::int64_t width) {
  QuantizedBuffers buffers(spec);
  const Stack& stack = spec.stacks[0];
  const auto& input = std::get<TokenEmbedding>(stack.input);
  const std::int64_t hidden = stack.hidden;
  buffers.table(input.name, input.vocab, hidden);
  buffers.table(input.types, input.type_rows, hidden);
  buffers.table(input.positions, input.position_rows, hidden);
  const std::string at = prefix + "embeddings.";
  for (const char* name : {"embeddings_act1", "embeddings_act2", "output_activation"}) {
    buffers.range(at + name);
  }
  buffers.norm(at + "LayerNorm");
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    const std::string layer = stack.prefix + "." + std::to_string(i) + ".";
    const std::string attention = layer + "attention.self.";
    for (const char* name : {"query", "key", "value"}) {
      buffers.linear(attention + name, hidden, hidden);
      buffers.range(attention + name + "_activation");
    }
    buffers.range(attention + "output_activation");
    buffers.range(attention + "softmax.act");
    buffers.linear(layer + "attention.output.dense", hidden, hidden);
    buffers.linear(layer + "intermediate.dense", width, hidden);
    buffers.linear(layer + "output.dense", hidden, width);
    for (const char* name : {"attention.output.", "output."}) {
      buffers.range(layer + name + "ln_input_act");
      buffers.norm(layer + name + "LayerNorm");
      buffers.range(layer + name + "output_activation");
    }
    for (const char* name :
         {"intermediate.output_activation", "pre_intermediate_act", "pre_output_act"}) {
      buffers.range(layer + name);
    }
  }
}

// Norms and attention are written out; modules of whole numbers pass values on.
ModelSpec ibert_masked(const Config& c) {
  if (c.flag("quant_mode", false)) c.fail("quant_mode", "only false is supported");
  c.pass_over({"force_dequant"});
  if (c.activation("hidden_act", "gelu") != "gelu") {
    c.fail("hidden_act", "the class has \"gelu\" alone");
  }
  ModelSpec spec = bert_like(c, "ibert.", /*roberta=*/true);
  LayerKind& layer = spec.stacks[0].kinds[0];
  std::get<Attention>(layer.branches[0].body).plain_only = true;
  for (Branch& branch : layer.branches) branch.joined.kind = NormKind::layer_by_hand;
  std::get<TokenEmbedding>(spec.stacks[0].input).norm.kind = NormKind::layer_by_hand;
  add_ibert_buffers(spec, "ibert.", std::get<Mlp>(layer.branches[1].body).width);
  return with_roberta_head(std::move(spec), c);
}

// Behind each layer's sum the adapter of the text's language, which is one and the same for the
// batch; the others are there and do not run.
ModelSpec xmod_masked(const Config& c) {
  for (const char* key : {"pre_norm", "adapter_layer_norm"}) {
    if (c.flag(key, false)) c.fail(key, "only false is supported");
  }
  for (const char* key : {"adapter_reuse_layer_norm", "ln_before_adapter"}) {
    if (!c.flag(key, true)) c.fail(key, "only true is supported");
  }
  std::vector<std::string> languages = c.texts("languages");
  if (languages.empty()) languages.emplace_back("en_XX");
  const std::string spoken = c.text("default_language", languages.front());
  if (std::find(languages.begin(), languages.end(), spoken) == languages.end()) {
    c.fail("default_language", "is none of the languages");
  }
  ModelSpec spec = bert_like(c, "roberta.", /*roberta=*/true);
  const std::int64_t reduction = c.size("adapter_reduction_factor", 2);
  LayerKind& layer = spec.stacks[0].kinds[0];
  const Branch whole = layer.branches[1];
  for (const std::string& language : languages) {
    Branch adapter = whole;  // with its norm, which stands before the adapter and behind it
    Mlp& mlp = std::get<Mlp>(adapter.body);
    mlp.name = "output.adapter_modules." + language;
    mlp.up = "dense1";
    mlp.down = "dense2";
    mlp.width = std::max<std::int64_t>(spec.stacks[0].hidden / reduction, 1);
    if (language != spoken) {
      adapter.silent = true;
      adapter.joined = {};
    }
    layer.branches.push_back(std::move(adapter));
  }
  return with_roberta_head(std::move(spec), c);
}

}  // namespace

std::vector<Family> roberta_kin_families() {
  return {{"IBertForMaskedLM", "ibert", ibert_masked}, {"XmodForMaskedLM", "xmod", xmod_masked}};
}

}  // namespace shardsim::models
