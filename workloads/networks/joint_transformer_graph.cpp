#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "workloads/networks/diffusers_attention.hpp"
#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

class JointGraph {
 public:
  JointGraph(NetworkGraph& n, const JointTransformer& net) : n_(n), c_(n.c), net_(net) {}

  TensorId build(std::int64_t side, std::int64_t text) {
    n_.first_block("embedding");
    embed(side, text);
    n_.live = {&image_, &text_, &condition_};
    // A kind for each that attends once or twice; the last hands on no text, unless blocks of one
    // stream come behind.
    const std::int64_t alike = net_.single > 0 ? net_.layers : net_.layers - 1;
    std::array<std::vector<std::int32_t>, 2> kinds;
    for (std::int64_t i = 0; i < alike; ++i) {
      kinds[is_dual(i) ? 1 : 0].push_back(static_cast<std::int32_t>(i));
    }
    bool continues = false;
    for (const bool dual : {false, true}) {
      if (kinds[dual ? 1 : 0].empty()) continue;
      n_.next_layers("transformer_blocks", kinds[dual ? 1 : 0], continues);
      run_block(dual, /*last=*/false);
      continues = true;
    }
    if (net_.single > 0) {
      single_blocks();
    } else {
      n_.next_layers("transformer_blocks", {static_cast<std::int32_t>(net_.layers - 1)});
      run_block(is_dual(net_.layers - 1), /*last=*/true);
    }
    n_.live = {&image_, &condition_};
    n_.next_block("head");
    use(image_rows_);
    const std::vector<TensorId> by = n_.modulation("norm_out", condition_, 2);
    const TensorId x = n_.modulated("norm_out.norm", image_, by[1], by[0]);
    const LabelId pixels =
        c_.label("patch_values", net_.packed ? net_.out : net_.patch * net_.patch * net_.out);
    return n_.mean_loss(c_.linear({"proj_out", {pixels}, {c_.hidden}, /*bias=*/true}, x,
                                  {{c_.batch}, {c_.sequence}, {pixels}}));
  }

 private:
  struct RowLabels {
    LabelId queries = 0, keys = 0;
  };

  [[nodiscard]] bool is_dual(std::int64_t layer) const {
    return std::find(net_.dual.begin(), net_.dual.end(), layer) != net_.dual.end();
  }

  // Ops from here on are of these rows.
  void use(const RowLabels& rows) {
    c_.sequence = rows.queries;
    c_.key_sequence = rows.keys;
  }

  TensorId numbers(const char* name, std::int64_t width) {
    return c_.g.input(name, c_.g.compute_dtype(), {{c_.batch}, {c_.label(name, width)}});
  }

  // FLUX's latents: rows of patches.
  void embed_packed(std::int64_t side) {
    const std::int64_t rows = side / net_.patch * (side / net_.patch);
    image_rows_ = {c_.label("sequence", rows, LabelRole::sequence),
                   c_.label("key_sequence", rows, LabelRole::key_sequence)};
    use(image_rows_);
    c_.hidden = c_.label("hidden", net_.hidden(), LabelRole::hidden);
    const LabelId values = c_.label("latent_values", net_.in);
    const TensorId latents =
        c_.g.input("hidden_states", c_.g.compute_dtype(), {{c_.batch}, {c_.sequence}, {values}});
    image_ = c_.g.marked(
        c_.linear({"x_embedder", {c_.hidden}, {values}, /*bias=*/true}, latents, c_.stream()),
        StreamMark::stream);
  }

  void embed_patches(std::int64_t side) {
    const std::int64_t hidden = net_.hidden();
    const Convolution patches{
        .out = hidden, .kernel = net_.patch, .stride = net_.patch, .padding = 0};
    TensorId x = n_.rows_of("pos_embed.rows",
                            n_.convolve("pos_embed.proj", patches, n_.input(net_.in, side)),
                            LabelRole::sequence);
    image_rows_ = {c_.sequence, c_.key_sequence};
    // The middle of a table, which is a buffer.
    const LabelId places = c_.label("positions", net_.positions * net_.positions);
    const TensorId table = c_.g.buffer("pos_embed.pos_embed", DType::f32,
                                       {{c_.label("one", 1)}, {places}, {c_.hidden}});
    const TensorId middle =
        c_.g.slices("pos_embed.cropped", table,
                    {{"pos_embed.cropped", {{c_.sequence}, {c_.hidden}}}}, {places, c_.sequence})
            .front();
    const TensorId positions = c_.g.cast("pos_embed.cast", middle, c_.g.compute_dtype());
    image_ = c_.g.marked(c_.g.elementwise(Function::add, "pos_embed.added", {x, positions}),
                         StreamMark::stream);
  }

  void embed(std::int64_t side, std::int64_t text) {
    if (net_.packed) {
      embed_packed(side);
    } else {
      embed_patches(side);
    }
    const std::int64_t hidden = net_.hidden();
    constexpr std::int64_t time_numbers = 256;
    TensorId time = n_.condition("time_text_embed.timestep_embedder",
                                 numbers("time_numbers", time_numbers), hidden, "silu");
    if (net_.guidance) {
      const TensorId guidance =
          n_.condition("time_text_embed.guidance_embedder",
                       numbers("guidance_numbers", time_numbers), hidden, "silu");
      time = c_.g.elementwise(Function::add, "time_text_embed.time", {time, guidance});
    }
    const TensorId pooled =
        n_.condition("time_text_embed.text_embedder",
                     numbers("pooled_projections", net_.pooled_width), hidden, "silu");
    condition_ = c_.g.elementwise(Function::add, "time_text_embed", {time, pooled});
    text_rows_ = {c_.label("text_sequence", text, LabelRole::sequence),
                  c_.label("key_text_sequence", text, LabelRole::key_sequence)};
    use(text_rows_);
    const LabelId width = c_.label("text_width", net_.text_width);
    const TensorId states = c_.g.input("encoder_hidden_states", c_.g.compute_dtype(),
                                       {{c_.batch}, {c_.sequence}, {width}});
    text_ = c_.g.marked(
        c_.linear({"context_embedder", {c_.hidden}, {width}, /*bias=*/true}, states, c_.stream()),
        StreamMark::stream);
  }

  // [batch, rows, heads, head_dim], normed where the network norms them.
  TensorId heads_of(const std::string& module, const std::string& norm, TensorId x) {
    const LabelId heads = c_.label("heads", net_.heads, LabelRole::heads);
    const LabelId dim = c_.label("head_dim", net_.head_dim);
    const GraphBuilder::Within part(c_.g, OpPart::input_projection);
    const TensorId all = c_.linear({c_.inside("attn." + module), {heads, dim}, {c_.hidden}, true},
                                   x, {{c_.batch}, {c_.sequence}, {heads}, {dim}});
    if (!net_.qk_norm || norm.empty()) return all;
    return c_.norm({NormKind::rms_t5, norm}, c_.inside("attn." + norm), all, {dim});
  }

  // FLUX turns queries and keys of both rows.
  TensorId attend_to(TensorId q, TensorId k, TensorId v, const RowLabels& rows) {
    const LabelId dim = c_.label("head_dim", net_.head_dim);
    if (net_.packed) {
      const Dims angles{{rows.queries}, {dim}};
      const TensorId cos = c_.g.constant("rope.cos", DType::f32, angles);
      const TensorId sin = c_.g.constant("rope.sin", DType::f32, angles);
      q = c_.g.rope(c_.inside("attn.q_rope"), q, cos, sin, dim);
      k = c_.g.rope(c_.inside("attn.k_rope"), k, cos, sin, dim);
    }
    return c_.g.attention(c_.inside("attn.attention"), q, k, v, dim, {{rows.queries, rows.keys}},
                          {});
  }

  struct Outputs {
    TensorId image, text;
  };

  // Image and text attend to both; the last block's text to none.
  Outputs attend(TensorId image, TensorId text, bool last) {
    const GraphBuilder::Within of(c_.g, OpModule::attention);
    const std::int64_t rows =
        c_.g.label_size(image_rows_.queries) + c_.g.label_size(text_rows_.queries);
    const LabelId joint = c_.label("joint_sequence", rows);
    const LabelId keys = c_.label("key_joint_sequence", rows, LabelRole::key_sequence);
    const LabelId heads = c_.label("heads", net_.heads, LabelRole::heads);
    const LabelId dim = c_.label("head_dim", net_.head_dim);
    const std::vector<LabelId> whole{image_rows_.queries, text_rows_.queries, joint};
    const auto both = [&](const char* name, const char* of_image, const char* image_norm,
                          const char* of_text, const char* text_norm) {
      use(image_rows_);
      const TensorId first = heads_of(of_image, image_norm, image);
      use(text_rows_);
      const TensorId second = heads_of(of_text, text_norm, text);
      return c_.g.concatenate(c_.inside(name), {first, second},
                              {{c_.batch}, {joint}, {heads}, {dim}}, whole);
    };
    const TensorId q = both("attn.query", "to_q", "norm_q", "add_q_proj", "norm_added_q");
    const TensorId k = both("attn.key", "to_k", "norm_k", "add_k_proj", "norm_added_k");
    const TensorId v = both("attn.value", "to_v", "", "add_v_proj", "");
    const TensorId out = attend_to(q, k, v, {joint, keys});
    const auto rows_of = [&](const RowLabels& rows) {
      return Dims{{c_.batch}, {rows.queries}, {heads}, {dim}};
    };
    std::vector<GraphBuilder::Part> read{{c_.inside("attn.image"), rows_of(image_rows_)}};
    if (!last) read.push_back({c_.inside("attn.text"), rows_of(text_rows_)});
    const std::vector<TensorId> parts = c_.g.slices(c_.inside("attn.parts"), out, read, whole);
    const GraphBuilder::Within part(c_.g, OpPart::out_projection);
    const auto project = [&](const char* name, TensorId x, const RowLabels& rows) {
      use(rows);
      return c_.linear({c_.inside(name), {c_.hidden}, {heads, dim}, /*bias=*/true}, x, c_.stream());
    };
    return {project("attn.to_out.0", parts[0], image_rows_),
            last ? no_tensor : project("attn.to_add_out", parts[1], text_rows_)};
  }

  TensorId mix(const char* norm, const char* mlp, TensorId x, const std::vector<TensorId>& by) {
    const GraphBuilder::Within of(c_.g, OpModule::mlp);
    const TensorId out = add(
        c_, diffusers_mlp(mlp, net_.heads * net_.head_dim, "gelu_pytorch_tanh", MlpForm::plain, 0),
        n_.modulated(c_.inside(norm), x, by[3], by[4]));
    return n_.gated_onto(c_.inside(mlp), x, out, by[5]);
  }

  TensorId attend_again(TensorId x) {
    Attention attention = diffusers_attention("attn2", net_.heads, net_.head_dim);
    attention.q_bias = attention.k_bias = attention.v_bias = true;
    if (net_.qk_norm) {
      attention.q_norm = {NormKind::rms_t5, "norm_q"};
      attention.k_norm = {NormKind::rms_t5, "norm_k"};
    }
    const GraphBuilder::Within of(c_.g, OpModule::attention);
    return add(c_, attention, x);
  }

  void run_block(bool dual, bool last) {
    constexpr std::int64_t parts = 6;  // shift, scale and gate of attention and of the MLP
    use(image_rows_);
    const auto of_image = n_.modulation(c_.inside("norm1"), condition_, dual ? parts + 3 : parts);
    const TensorId image = n_.modulated(c_.inside("norm1.norm"), image_, of_image[0], of_image[1]);
    TensorId again = no_tensor;
    if (dual) again = n_.modulated(c_.inside("norm1.norm2"), image_, of_image[6], of_image[7]);
    use(text_rows_);
    const auto of_text = n_.modulation(c_.inside("norm1_context"), condition_, last ? 2 : parts);
    const TensorId text = n_.modulated(c_.inside("norm1_context.norm"), text_,
                                       of_text[last ? 1 : 0], of_text[last ? 0 : 1]);
    const Outputs out = attend(image, text, last);
    use(image_rows_);
    image_ = n_.gated_onto(c_.inside("attn.image"), image_, out.image, of_image[2]);
    if (dual) image_ = n_.gated_onto(c_.inside("attn2"), image_, attend_again(again), of_image[8]);
    image_ = mix("norm2", "ff", image_, of_image);
    if (last) return;
    use(text_rows_);
    text_ = n_.gated_onto(c_.inside("attn.text"), text_, out.text, of_text[2]);
    text_ = mix("norm2_context", "ff_context", text_, of_text);
  }

  // The last hands on no text.
  void single_blocks() {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(net_.single - 1));
    std::iota(numbers.begin(), numbers.end(), 0);
    if (!numbers.empty()) {
      n_.next_layers("single_transformer_blocks", std::move(numbers));
      single_block(/*last=*/false);
    }
    n_.next_layers("single_transformer_blocks", {static_cast<std::int32_t>(net_.single - 1)},
                   /*continues=*/net_.single > 1);
    single_block(/*last=*/true);
  }

  void single_block(bool last) {
    const std::int64_t rows =
        c_.g.label_size(image_rows_.queries) + c_.g.label_size(text_rows_.queries);
    const RowLabels joint{c_.label("joint_sequence", rows),
                          c_.label("key_joint_sequence", rows, LabelRole::key_sequence)};
    const std::vector<LabelId> whole{image_rows_.queries, text_rows_.queries, joint.queries};
    use(joint);
    TensorId x =
        c_.g.marked(c_.g.concatenate(c_.inside("rows"), {text_, image_}, c_.stream(), whole),
                    StreamMark::stream);
    const std::vector<TensorId> by = n_.modulation(c_.inside("norm"), condition_, 3);
    const TensorId normed = n_.modulated(c_.inside("norm.norm"), x, by[0], by[1]);
    x = n_.gated_onto(c_.inside("proj_out"), x, side_by_side(normed, joint), by[2]);
    const auto part = [&](const RowLabels& of) {
      return Dims{{c_.batch}, {of.queries}, {c_.hidden}};
    };
    std::vector<GraphBuilder::Part> read{{c_.inside("image"), part(image_rows_)}};
    if (!last) read.push_back({c_.inside("text"), part(text_rows_)});
    const std::vector<TensorId> parts = c_.g.slices(c_.inside("parts"), x, read, whole);
    image_ = parts[0];
    if (!last) text_ = parts[1];
  }

  // What attention and the MLP make of the same rows, through one product.
  TensorId side_by_side(TensorId x, const RowLabels& rows) {
    const LabelId heads = c_.label("heads", net_.heads, LabelRole::heads);
    const LabelId dim = c_.label("head_dim", net_.head_dim);
    const LabelId ffn = c_.label("ffn", 4 * net_.hidden(), LabelRole::width);
    const LabelId width = c_.label("attention_and_mlp", 5 * net_.hidden());
    const TensorId attended = [&] {
      const GraphBuilder::Within of(c_.g, OpModule::attention);
      const TensorId q = heads_of("to_q", "norm_q", x);
      const TensorId k = heads_of("to_k", "norm_k", x);
      return attend_to(q, k, heads_of("to_v", "", x), rows);
    }();
    const GraphBuilder::Within of(c_.g, OpModule::mlp);
    TensorId inner = c_.linear({c_.inside("proj_mlp"), {ffn}, {c_.hidden}, /*bias=*/true}, x,
                               {{c_.batch}, {c_.sequence}, {ffn}});
    inner = c_.activate("gelu_pytorch_tanh", c_.inside("act_mlp"), inner);
    const TensorId both =
        c_.g.concatenate(c_.inside("attention_and_mlp"), {attended, inner},
                         {{c_.batch}, {c_.sequence}, {width}}, {heads, dim, ffn, width});
    return c_.linear({c_.inside("proj_out"), {c_.hidden}, {width}, /*bias=*/true}, both,
                     c_.stream());
  }

  NetworkGraph& n_;
  GraphContext& c_;
  const JointTransformer& net_;
  RowLabels image_rows_, text_rows_;
  TensorId image_ = no_tensor, text_ = no_tensor, condition_ = no_tensor;
};

}  // namespace

TensorId add(NetworkGraph& n, const JointTransformer& net, std::int64_t side) {
  return JointGraph(n, net).build(side, net.text);
}

}  // namespace shardsim::models
