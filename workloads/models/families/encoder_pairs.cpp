// Two models of text, of which the second writes and attends to the first (EncoderDecoderModel,
// arXiv:1907.12461): BERT before BERT and the like.
//
// Source: transformers 5.23, modeling_encoder_decoder.py; the decoder's cross attention as in
// modeling_bert.py.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/roots.hpp"
#include "workloads/models/families/vision.hpp"

namespace shardsim::models {
namespace {

// What AutoModel and AutoModelForCausalLM make of a model type.
struct PairSide {
  std::string_view type, reads, writes;
};

constexpr std::array pair_sides =
    std::to_array<PairSide>({{"bert", "BertModel", "BertLMHeadModel"},
                             {"camembert", "CamembertModel", "CamembertForCausalLM"},
                             {"electra", "ElectraModel", "ElectraForCausalLM"},
                             {"ernie", "ErnieModel", "ErnieForCausalLM"},
                             {"roberta", "RobertaModel", "RobertaForCausalLM"},
                             {"xlm-roberta", "XLMRobertaModel", "XLMRobertaForCausalLM"}});

const PairSide& pair_side_of(const Config& c) {
  const std::string type = c.text("model_type", "bert");
  const auto* const found = std::find_if(pair_sides.begin(), pair_sides.end(),
                                         [&](const PairSide& side) { return side.type == type; });
  if (found == pair_sides.end()) c.fail("model_type", "is none of those supported here");
  return *found;
}

Stack reading_side(const Config& c) {
  if (c.flag("is_decoder", false)) c.fail("is_decoder", "an encoder is none");
  c.pass_over({"add_cross_attention", "tie_word_embeddings"});
  ModelSpec spec = read_as(c, pair_side_of(c).reads);
  replace_root(spec, "", "encoder.");
  Stack stack = std::move(spec.stacks[0]);
  stack.role = StackRole::encoder;
  if (spec.head.kind == HeadKind::pooler) stack.idle_pooler = "encoder." + spec.head.name;
  return stack;
}

// Between a layer's attention to itself and its MLP.
void attend_to_encoder(Stack& stack) {
  for (LayerKind& kind : stack.kinds) {
    Branch branch = kind.branches.front();
    auto& attention = std::get<Attention>(branch.body);
    attention.name = "crossattention";
    attention.cross = true;
    branch.joined.name = "crossattention.output.LayerNorm";
    kind.branches.insert(kind.branches.begin() + 1, std::move(branch));
  }
}

Head within_decoder(Head head) {
  for (std::string* name : {&head.name, &head.transform, &head.transform_norm.name, &head.tied_bias,
                            &head.apart_bias}) {
    if (!name->empty()) *name = "decoder." + *name;
  }
  return head;
}

ModelSpec writing_side(const Config& c) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (!c.flag(key, false)) c.fail(key, "only true is supported here");
  }
  ModelSpec spec = read_as(c, pair_side_of(c).writes);
  attend_to_encoder(spec.stacks[0]);
  replace_root(spec, "", "decoder.");
  spec.head = within_decoder(std::move(spec.head));
  spec.head.shifted = spec.head.fp32_loss = false;  // the loss is the pair's own
  spec.head.causal_loss = false;
  std::get<TokenEmbedding>(spec.stacks[0].input).shifted = true;
  return spec;
}

ModelSpec encoder_decoder(const Config& c) {
  const Config encoder = part(c, "encoder");
  const Config decoder = part(c, "decoder");
  c.pass_over({"tie_word_embeddings", "tie_encoder_decoder"});  // embedding and head: decoder's
  Stack reads = reading_side(encoder);
  ModelSpec spec = writing_side(decoder);
  const std::int64_t hidden = spec.stacks[0].hidden;
  if (decoder.given("cross_attention_hidden_size")) {
    decoder.fail("cross_attention_hidden_size", "is not supported");
  }
  if (reads.hidden != hidden) {
    reads.project = "enc_to_dec_proj";
    reads.project_width = hidden;
    reads.project_bias = reads.projects_rows = true;
  }
  spec.stacks.insert(spec.stacks.begin(), std::move(reads));
  return spec;
}

}  // namespace

std::vector<Family> encoder_pair_families() {
  return {{"EncoderDecoderModel", "encoder-decoder", encoder_decoder}};
}

}  // namespace shardsim::models
