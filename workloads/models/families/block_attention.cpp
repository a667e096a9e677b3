// BigBird, encoder and encoder with decoder.
#include <utility>

#include "workloads/models/families/encoder_decoders.hpp"
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

BlockAttention read_blocks(const Config& c, const Attention& attention, bool bias) {
  BlockAttention blocks;
  blocks.heads = attention.heads;
  blocks.head_dim = attention.head_dim;
  blocks.bias = c.flag("use_bias", bias);
  const std::string type = c.text("attention_type", "block_sparse");
  if (type != "block_sparse" && type != "original_full") {
    c.fail("attention_type", "is neither \"block_sparse\" nor \"original_full\"");
  }
  blocks.blocks = type == "block_sparse";
  blocks.block = c.size("block_size", 64);
  blocks.random = c.size("num_random_blocks", 3);
  blocks.dropout = attention.dropout;
  return blocks;
}

// Defaults: transformers 5.23, configuration_big_bird.py. The class drops before the norm of what
// enters, which keeps as much.
ModelSpec big_bird_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.types_stored = true;
  input.scaled = c.flag("rescale_embeddings", false);
  input.position_rows = c.size("max_position_embeddings", 4096);
  auto& branches = spec.stacks[0].kinds[0].branches;
  const auto attention = std::get<Attention>(branches[0].body);
  BlockAttention blocks = read_blocks(c, attention, /*bias=*/true);
  blocks.casts_mask = true;
  branches[0].body = Mixer{blocks};
  std::get<Mlp>(branches[1].body).activation = c.activation("hidden_act", "gelu_new");
  if (c.flag("is_decoder", false)) c.fail("is_decoder", "only an encoder is supported");
  c.pass_over({"sep_token_id"});
  spec.head = {.kind = HeadKind::pooler, .name = prefix + "pooler"};
  return spec;
}

ModelSpec big_bird(const Config& c) { return big_bird_like(c, ""); }

ModelSpec big_bird_masked(const Config& c) {
  ModelSpec spec = with_bert_head(big_bird_like(c, "bert."), c);
  spec.head.activation = c.activation("hidden_act", "gelu_new");
  spec.head.idle_pooler = "bert.pooler";  // which the class has in any case
  return spec;
}

// Norms before the branches and one, named as that of what enters, after each stack.
ModelSpec big_bird_pegasus(const Config& c) {
  ModelSpec spec = mbart(c);
  const bool bias = c.flag("use_bias", false);
  for (Stack& stack : spec.stacks) {
    auto& input = std::get<TokenEmbedding>(stack.input);
    input.scaled = c.flag("scale_embedding", true);
    input.position_numbers = PositionNumbers::made;
    input.position_offset = 0;
    input.position_rows = c.size("max_position_embeddings", 4096);
    stack.norm = std::exchange(input.norm, {});
    for (Branch& branch : stack.kinds[0].branches) {
      if (auto* attention = std::get_if<Attention>(&branch.body)) {
        set_biases(*attention, bias, bias);
      } else {
        std::get<Mlp>(branch.body).activation = c.activation("activation_function", "gelu_new");
      }
    }
  }
  // Of the encoder's the class drops nothing between both products.
  std::get<Mlp>(spec.stacks[0].kinds[0].branches.back().body).inner_dropout = 0;
  Branch& first = spec.stacks[0].kinds[0].branches[0];
  BlockAttention blocks = read_blocks(c, std::get<Attention>(first.body), /*bias=*/false);
  blocks.name = "self_attn.self";
  blocks.out = "self_attn.output";
  blocks.out_bias = bias;
  first.body = Mixer{blocks};
  return spec;
}

}  // namespace

std::vector<Family> block_attention_families() {
  return {{"BigBirdForMaskedLM", "big_bird", big_bird_masked},
          {"BigBirdModel", "big_bird", big_bird},
          {"BigBirdPegasusForConditionalGeneration", "bigbird_pegasus", big_bird_pegasus}};
}

}  // namespace shardsim::models
