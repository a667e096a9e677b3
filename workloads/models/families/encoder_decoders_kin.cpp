// BART's kin with attention of their own: MVP, LED; and decoders without their encoders, TrOCR's
// among them.
#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "workloads/models/families/encoder_decoders.hpp"
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

// Attention that is multiplied out whatever the file asks for.
void multiply_out(Stack& stack) {
  for (LayerKind& kind : stack.kinds) {
    for (Branch& branch : kind.branches) {
      if (auto* attention = std::get_if<Attention>(&branch.body)) attention->plain_only = true;
    }
  }
}

// BART; prompts before the layers are another training's.
ModelSpec mvp(const Config& c) {
  if (c.flag("use_prompt", false)) c.fail("use_prompt", "only false is supported");
  c.pass_over({"prompt_length", "prompt_mid_dim"});
  ModelSpec spec = bart(c);
  for (Stack& stack : spec.stacks) {
    std::get<TokenEmbedding>(stack.input).position_numbers = PositionNumbers::per_example;
    multiply_out(stack);
  }
  return spec;
}

// BART whose encoder has Longformer's windows.
ModelSpec led(const Config& c) {
  ModelSpec spec = bart(c);
  replace_root(spec, "model.", "led.");
  constexpr std::int64_t encoder_places = 16384;
  for (const bool decodes : {false, true}) {
    auto& input = std::get<TokenEmbedding>(spec.stacks[decodes ? 1 : 0].input);
    input.position_numbers = PositionNumbers::made;
    input.position_offset = 0;
    input.position_rows = decodes ? c.size("max_decoder_position_embeddings", 1024)
                                  : c.size("max_encoder_position_embeddings", encoder_places);
  }
  Stack& encoder = spec.stacks[0];
  const auto layers = static_cast<std::int64_t>(encoder.order.size());
  const std::vector<std::int64_t> windows = windows_of(c, layers);
  const LayerKind of_bart = encoder.kinds.front();
  const auto& attention = std::get<Attention>(of_bart.branches[0].body);
  Layers all = Layers::of(layers, [&](std::int64_t i) {
    LayerKind kind = of_bart;
    kind.branches[0].body = Mixer{WindowedAttention{.name = "self_attn.longformer_self_attn",
                                                    .out = "self_attn.output",
                                                    .heads = attention.heads,
                                                    .head_dim = attention.head_dim,
                                                    .window = windows[static_cast<std::size_t>(i)],
                                                    .dropout = attention.dropout}};
    return kind;
  });
  encoder.kinds = std::move(all.kinds);
  encoder.order = std::move(all.order);
  multiply_out(spec.stacks[1]);
  return spec;
}

// Of a model that reads and writes, the part that writes. Its attention to what would be read is
// there and does not run.
ModelSpec decoder_of(ModelSpec spec, bool ties) {
  Stack stack = std::move(spec.stacks.back());
  for (LayerKind& kind : stack.kinds) {
    for (Branch& branch : kind.branches) {
      const auto* attention = std::get_if<Attention>(&branch.body);
      branch.silent = attention != nullptr && attention->cross;
    }
  }
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.table_of.clear();
  input.shifted = false;
  spec.stacks.clear();
  spec.stacks.push_back(std::move(stack));
  spec.shared.clear();
  spec.apart.clear();
  spec.buffers.clear();
  spec.head.scaled = false;
  set_tied(spec, ties && !spec.head.tied_to.empty());
  return spec;
}

// BART's decoder behind an encoder of images, which is not there: attention to it does not run.
// Defaults: transformers 5.23, configuration_trocr.py.
ModelSpec trocr(const Config& c) {
  ModelSpec both;
  both.stacks = {bart_decoder(c)};
  both.head.vocab = c.needed("vocab_size", 50265);
  both.head.causal_loss = false;
  if (c.flag("tie_word_embeddings", true)) both.head.tied_to = "model.shared.weight";
  ModelSpec spec = decoder_of(std::move(both), /*ties=*/true);
  Stack& stack = spec.stacks[0];
  multiply_out(stack);
  if (c.size("cross_attention_hidden_size", stack.hidden) != stack.hidden) {
    c.fail("cross_attention_hidden_size", "is not the decoder's width, which alone is supported");
  }
  c.pass_over({"decoder_layerdrop"});
  auto& input = std::get<TokenEmbedding>(stack.input);
  constexpr std::int64_t offset = 2;
  input.position_rows = c.size("max_position_embeddings", 512) + offset;
  input.position_numbers = PositionNumbers::per_example;
  if (!c.flag("use_learned_position_embeddings", true)) input.positions.clear();
  if (!c.flag("layernorm_embedding", true)) input.norm = {};
  spec.head.name = "output_projection";
  return spec;
}

struct Writing {
  std::string_view stem, both;
  bool ties = true;
};

constexpr std::array writings = std::to_array<Writing>(
    {{"Bart", "BartForConditionalGeneration"},
     {"MBart", "MBartForConditionalGeneration"},
     {"Marian", "MarianMTModel"},
     {"Pegasus", "PegasusForConditionalGeneration"},
     {"Blenderbot", "BlenderbotForConditionalGeneration"},
     {"BlenderbotSmall", "BlenderbotSmallForConditionalGeneration"},
     {"PLBart", "PLBartForConditionalGeneration"},
     {"BigBirdPegasus", "BigBirdPegasusForConditionalGeneration", /*ties=*/false},
     {"Mvp", "MvpForConditionalGeneration"},
     {"Whisper", "WhisperForConditionalGeneration"}});

}  // namespace

std::vector<std::int64_t> windows_of(const Config& c, std::int64_t layers) {
  // One number is of all layers.
  const auto given = c.json().find("attention_window");
  std::vector<std::int64_t> windows;
  if (given && given->json().is_array()) {
    windows = c.integers("attention_window");
  } else {
    windows.assign(static_cast<std::size_t>(layers), c.size("attention_window", 512));
  }
  if (static_cast<std::int64_t>(windows.size()) != layers) {
    c.fail("attention_window", "has another number of entries than there are layers");
  }
  for (const std::int64_t window : windows) {
    if (window <= 0 || window % 2 != 0) c.fail("attention_window", "has to be even");
  }
  return windows;
}

std::vector<Family> encoder_decoder_kin_families() {
  return {{"MvpForConditionalGeneration", "mvp", mvp},
          {"LEDForConditionalGeneration", "led", led},
          {"TrOCRForCausalLM", "trocr", trocr}};
}

std::vector<Family> decoder_alone_families(const std::vector<Family>& known) {
  std::vector<Family> all;
  for (const Writing& writing : writings) {
    const auto both = std::find_if(known.begin(), known.end(), [&](const Family& family) {
      return family.architecture == writing.both;
    });
    all.push_back({std::string(writing.stem) + "ForCausalLM", both->model_type,
                   [read = both->read, ties = writing.ties](const Config& c) {
                     return decoder_of(read(c), ties);
                   }});
  }
  return all;
}

}  // namespace shardsim::models
