#include "workloads/models/vit.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/models/config_reader.hpp"

namespace shardsim {
namespace {

struct VitSizes {
  std::int64_t width = 0;
  std::int64_t depth = 0;
  std::int64_t mlp_dim = 0;
  std::int64_t heads = 0;
  std::pair<std::int64_t, std::int64_t> patch;
  std::pair<std::int64_t, std::int64_t> image;
  std::int64_t channels = 3;
  std::int64_t classes = 0;
};

VitSizes read_sizes(const JsonReader& json) {
  // Ours, so every key is known.
  const std::vector<std::string> keys = {"model_type",  "width",      "depth",      "mlp_dim",
                                         "num_heads",   "patch_size", "image_size", "channels",
                                         "num_classes", "pool_type"};
  json.only_keys(keys);
  const ConfigReader config(json, keys);
  const JsonReader pool = json.at("pool_type");
  if (pool.string() != "gap") {
    pool.fail(fmt::format("\"{}\" is not supported; supported is gap", pool.string()));
  }
  VitSizes m;
  m.width = config.size("width");
  m.depth = config.layers("depth");
  m.mlp_dim = config.size_or("mlp_dim", 4 * m.width);  // big_vision's default
  m.heads = config.size("num_heads");
  m.patch = config.size_pair("patch_size");
  m.image = config.size_pair("image_size");
  m.channels = config.size_or("channels", 3);
  m.classes = config.size("num_classes");
  config.require_divides("width", m.width, "num_heads", m.heads);
  config.require_divides("image height", m.image.first, "patch height", m.patch.first);
  config.require_divides("image width", m.image.second, "patch width", m.patch.second);
  return m;
}

class VitBuilder {
 public:
  VitBuilder(const std::string& name, const VitSizes& sizes, const WorkloadOptions& options)
      : m_(sizes),
        g_(name, options.compute_dtype, options.weights),
        batch_(g_.label("batch", options.batch, LabelRole::batch)),
        one_(g_.label("one", 1)),
        rows_(g_.label("patch_rows", m_.image.first / m_.patch.first)),
        cols_(g_.label("patch_cols", m_.image.second / m_.patch.second)),
        key_rows_(g_.label("key_rows", m_.image.first / m_.patch.first)),
        key_cols_(g_.label("key_cols", m_.image.second / m_.patch.second)),
        patch_height_(g_.label("patch_height", m_.patch.first)),
        patch_width_(g_.label("patch_width", m_.patch.second)),
        channels_(g_.label("channels", m_.channels)),
        hidden_(g_.label("hidden", m_.width, LabelRole::hidden)),
        heads_(g_.label("heads", m_.heads, LabelRole::heads)),
        head_dim_(g_.label("head_dim", m_.width / m_.heads)),
        ffn_(g_.label("ffn", m_.mlp_dim, LabelRole::width)),
        classes_(g_.label("classes", m_.classes)),
        index_dtype_(options.index_dtype) {}

  Workload build() {
    embed();
    layer();
    const TensorId loss = head();
    return g_.finish(loss);
  }

 private:
  [[nodiscard]] Dim tokens() const { return {rows_, cols_}; }
  [[nodiscard]] GraphBuilder::Dims stream() const { return {{batch_}, tokens(), {hidden_}}; }

  void embed() {
    g_.begin_block("embedding");
    const TensorId image =
        g_.input("image", g_.compute_dtype(),
                 {{batch_}, {rows_, patch_height_}, {cols_, patch_width_}, {channels_}});
    const TensorId kernel = g_.parameter("params/embedding/kernel",
                                         {{patch_height_}, {patch_width_}, {channels_}, {hidden_}});
    const TensorId bias = g_.parameter("params/embedding/bias", {{hidden_}});
    const TensorId patches = g_.linear("embedding", image, kernel, stream(), bias);
    const TensorId positions = g_.parameter("params/pos_embedding", {{one_}, tokens(), {hidden_}});
    g_.carry_out(g_.elementwise(Function::add, "positions", {patches, positions}));
  }

  void layer() {
    const std::string at = "Transformer/encoderblock_{}/";
    g_.begin_layers("Transformer/encoderblock_{}", m_.depth);
    const TensorId x = g_.carry_in(at + "input");
    const TensorId attended = attention(input_norm(at + "LayerNorm_0", x));
    const TensorId h = g_.elementwise(Function::add, at + "attention_residual", {x, attended});
    const TensorId fed = mlp(input_norm(at + "LayerNorm_1", h));
    g_.carry_out(g_.elementwise(Function::add, at + "mlp_residual", {h, fed}));
  }

  TensorId input_norm(const std::string& name, TensorId x) {
    const GraphBuilder::Within part(g_, OpPart::input_norm);
    return norm(name, x);
  }

  TensorId norm(const std::string& name, TensorId x) {
    const TensorId scale = g_.parameter("params/" + name + "/scale", {{hidden_}});
    const TensorId bias = g_.parameter("params/" + name + "/bias", {{hidden_}});
    return g_.layer_norm(name, x, scale, bias, hidden_);
  }

  // flax's Dense and DenseGeneral: kernel [in..., out...], bias [out...].
  TensorId dense(const std::string& name, TensorId x, GraphBuilder::Dims in, GraphBuilder::Dims out,
                 GraphBuilder::Dims result) {
    GraphBuilder::Dims kernel_dims = std::move(in);
    kernel_dims.insert(kernel_dims.end(), out.begin(), out.end());
    const TensorId kernel = g_.parameter("params/" + name + "/kernel", std::move(kernel_dims));
    const TensorId bias = g_.parameter("params/" + name + "/bias", std::move(out));
    return g_.linear(name, x, kernel, std::move(result), bias);
  }

  TensorId attention(TensorId x) {
    const GraphBuilder::Within module(g_, OpModule::attention);
    const std::string at = "Transformer/encoderblock_{}/MultiHeadDotProductAttention_0/";
    const GraphBuilder::Dims per_head{{batch_}, tokens(), {heads_}, {head_dim_}};
    const auto project = [&](const char* name) {
      const GraphBuilder::Within part(g_, OpPart::input_projection);
      return dense(at + name, x, {{hidden_}}, {{heads_}, {head_dim_}}, per_head);
    };
    const TensorId query = project("query");
    const TensorId key = project("key");
    const TensorId value = project("value");
    const TensorId out = g_.attention(at + "attention", query, key, value, head_dim_,
                                      {{rows_, key_rows_}, {cols_, key_cols_}}, {});
    const GraphBuilder::Within part(g_, OpPart::out_projection);
    return dense(at + "out", out, {{heads_}, {head_dim_}}, {{hidden_}}, stream());
  }

  TensorId mlp(TensorId x) {
    const GraphBuilder::Within module(g_, OpModule::mlp);
    const std::string at = "Transformer/encoderblock_{}/MlpBlock_0/";
    const TensorId wide = [&] {
      const GraphBuilder::Within part(g_, OpPart::first_product);
      return dense(at + "Dense_0", x, {{hidden_}}, {{ffn_}}, {{batch_}, tokens(), {ffn_}});
    }();
    const TensorId activated = [&] {
      const GraphBuilder::Within part(g_, OpPart::activation);
      return g_.elementwise(Function::gelu, at + "gelu", {wide});
    }();
    const GraphBuilder::Within part(g_, OpPart::last_product);
    return dense(at + "Dense_1", activated, {{ffn_}}, {{hidden_}}, stream());
  }

  TensorId head() {
    g_.begin_block("head");
    const TensorId x =
        norm("Transformer/encoder_norm", g_.carry_in("Transformer/encoder_norm/input"));
    const TensorId pooled = g_.mean("pool", x, {{batch_}, {hidden_}});
    const TensorId logits =
        dense("head", pooled, {{hidden_}}, {{classes_}}, {{batch_}, {classes_}});
    const TensorId labels = g_.input("labels", index_dtype_, {{batch_}});
    return g_.cross_entropy(g_.cast("loss.logits", logits, DType::f32), labels, classes_);
  }

  VitSizes m_;
  GraphBuilder g_;
  LabelId batch_, one_, rows_, cols_, key_rows_, key_cols_, patch_height_, patch_width_, channels_,
      hidden_, heads_, head_dim_, ffn_, classes_;
  DType index_dtype_;
};

}  // namespace

Workload build_vit(const ModelConfig& config, const WorkloadOptions& options) {
  const VitSizes sizes = read_sizes(JsonReader(*config.json, {config.path, ""}));
  return VitBuilder(config.name, sizes, options).build();
}

}  // namespace shardsim
