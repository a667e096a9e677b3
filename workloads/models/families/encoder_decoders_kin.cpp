// BART's kin with attention of their own: MVP, LED; and decoders without their encoders, TrOCR's
// among them.
#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "workloads/models/families/encoder_decoders.hpp"
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/roots.hpp"
#include "workloads/models/families/vision.hpp"

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

// BART's decoder behind an encoder of images.
// Defaults: transformers 5.23, configuration_trocr.py.
ModelSpec trocr_decoder(const Config& c) {
  ModelSpec spec;
  spec.stacks = {bart_decoder(c)};
  Stack& stack = spec.stacks[0];
  multiply_out(stack);
  c.pass_over({"decoder_layerdrop", "cross_attention_hidden_size"});
  auto& input = std::get<TokenEmbedding>(stack.input);
  constexpr std::int64_t offset = 2;
  input.position_rows = c.size("max_position_embeddings", 512) + offset;
  input.position_numbers = PositionNumbers::per_example;
  if (!c.flag("use_learned_position_embeddings", true)) input.positions.clear();
  if (!c.flag("layernorm_embedding", true)) input.norm = {};
  spec.head.vocab = c.needed("vocab_size", 50265);
  spec.head.causal_loss = false;
  spec.head.name = "output_projection";
  if (c.flag("tie_word_embeddings", true)) spec.head.tied_to = "model.shared.weight";
  return spec;
}

// Without the encoder: attention to it does not run.
ModelSpec trocr(const Config& c) {
  ModelSpec spec = decoder_of(trocr_decoder(c), /*ties=*/true);
  const std::int64_t hidden = spec.stacks[0].hidden;
  if (c.size("cross_attention_hidden_size", hidden) != hidden) {
    c.fail("cross_attention_hidden_size", "is not the decoder's width, which alone is supported");
  }
  return spec;
}

// FSMT (arXiv:1907.06616): BART's layers between two languages, each with a vocabulary of its own.
// Defaults: transformers 5.23, configuration_fsmt.py.
ModelSpec fsmt(const Config& c) {
  if (c.flag("tie_word_embeddings", false)) {
    c.fail("tie_word_embeddings", "only false is supported");
  }
  c.pass_over({"langs", "encoder_layerdrop", "decoder_layerdrop"});
  ModelSpec spec = bart(c);
  spec.shared.clear();
  spec.apart.clear();
  spec.buffers.clear();
  const std::int64_t offset = c.count("pad_token_id", 1) + 1;
  for (const bool decodes : {false, true}) {
    Stack& stack = spec.stacks[decodes ? 1 : 0];
    auto& input = std::get<TokenEmbedding>(stack.input);
    input.table_of.clear();
    input.vocab = c.size(decodes ? "tgt_vocab_size" : "src_vocab_size", 42024);
    input.scaled = c.flag("scale_embedding", true);
    input.position_rows = c.size("max_position_embeddings", 1024) + offset;
    input.position_offset = offset;
    input.position_numbers = PositionNumbers::per_example;
    input.norm = {};
    multiply_out(stack);
    for (Branch& branch : stack.kinds.front().branches) {
      if (auto* attention = std::get_if<Attention>(&branch.body)) attention->tokens_first = true;
      if (auto* mlp = std::get_if<Mlp>(&branch.body)) {
        mlp->activation = c.activation("activation_function", "relu");
      }
    }
  }
  spec.head.name = "model.decoder.output_projection";
  spec.head.tied_to.clear();
  return spec;
}

// What transformers' AutoModel makes of a configuration of images: their encoder, with a pooler
// that nobody reads.
ModelSpec image_encoder(const Config& c) {
  const std::string type = c.choice("model_type", "vit", {"vit", "deit"});
  const std::string name = type == "vit" ? "ViTModel" : "DeiTModel";
  const auto& all = families();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Family& f) { return f.architecture == name; });
  return found->read(c);
}

// Images read by the one, words written by the other (TrOCR, arXiv:2109.10282).
ModelSpec vision_encoder_decoder(const Config& c) {
  const Config encoder = part(c, "encoder");
  const Config decoder = part(c, "decoder");
  const std::string type = decoder.text("model_type", "bert");
  if (type != "trocr") decoder.fail("model_type", "of a decoder only \"trocr\" is supported");
  if (!decoder.flag("is_decoder", false)) decoder.fail("is_decoder", "only true is supported here");
  decoder.pass_over({"add_cross_attention"});
  ModelSpec spec = image_encoder(encoder);
  Stack& images = spec.stacks[0];
  replace_root(spec, "", "encoder.");
  images.idle_pooler = "encoder." + spec.head.name;
  images.role = StackRole::encoder;
  ModelSpec text = trocr_decoder(decoder);
  set_tied(text, false);
  Stack& words = text.stacks[0];
  auto& input = std::get<TokenEmbedding>(words.input);
  input.table_of.clear();
  replace_root(text, "", "decoder.");
  if (decoder.given("cross_attention_hidden_size")) {
    if (decoder.size("cross_attention_hidden_size") != images.hidden) {
      decoder.fail("cross_attention_hidden_size", "is not the encoder's hidden_size");
    }
  } else if (images.hidden != words.hidden) {
    images.project = "enc_to_dec_proj";
    images.project_width = words.hidden;
    images.project_bias = images.projects_rows = true;
  }
  spec.head = text.head;
  spec.head.name = "decoder." + text.head.name;
  if (decoder.flag("tie_word_embeddings", true)) spec.head.tied_to = input.name + ".weight";
  c.pass_over({"tie_word_embeddings"});  // embedding and head are the decoder's
  spec.stacks.push_back(std::move(words));
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
          {"FSMTForConditionalGeneration", "fsmt", fsmt},
          {"TrOCRForCausalLM", "trocr", trocr},
          {"VisionEncoderDecoderModel", "vision-encoder-decoder", vision_encoder_decoder}};
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
