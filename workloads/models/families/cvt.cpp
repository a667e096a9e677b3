// CvT (arXiv:2103.15808): queries, keys and values are made of places by convolutions of each
// channel, keys and values of fewer; a class token in the last stage.
//
// Source: transformers 5.23.0, modeling_cvt.py.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct CvtStage {
  std::int64_t width = 0, depth = 0, heads = 1, ffn = 0;
  std::int64_t patch = 0, stride = 0, padding = 0;
  std::int64_t kernel = 3, stride_q = 1, stride_kv = 2, padding_q = 1, padding_kv = 1;
  bool token = false, bias = true;
  double dropout = 0, attention_dropout = 0, drop_path = 0;
};

template <class T>
std::vector<T> cvt_list(const Config& c, const char* key, std::vector<T> usual,
                        std::size_t stages) {
  if (const auto list = c.json().find(key)) {
    static_cast<void>(c.given(key));
    usual.clear();
    for (const auto& item : list->json()) {
      if (!item.is_number() && !item.is_boolean()) c.fail(key, "is no list of numbers");
      usual.push_back(item.get<T>());
    }
  }
  if (usual.size() < stages) c.fail(key, "has not one entry for each of depth");
  return usual;
}

std::vector<CvtStage> read_cvt(const Config& c) {
  using Sizes64 = std::vector<std::int64_t>;
  const Sizes64 depths = c.sizes("depth", {1, 2, 10});
  const std::size_t count = depths.size();
  const auto sizes = [&](const char* key, Sizes64 usual) {
    return cvt_list<std::int64_t>(c, key, std::move(usual), count);
  };
  const auto rates = [&](const char* key, std::vector<double> usual) {
    return cvt_list<double>(c, key, std::move(usual), count);
  };
  const Sizes64 widths = sizes("embed_dim", {64, 192, 384}), heads = sizes("num_heads", {1, 3, 6});
  const Sizes64 patch = sizes("patch_sizes", {7, 3, 3}), stride = sizes("patch_stride", {4, 2, 2});
  const Sizes64 padding = sizes("patch_padding", {2, 1, 1});
  const Sizes64 kernels = sizes("kernel_qkv", {3, 3, 3});
  const Sizes64 padding_q = sizes("padding_q", {1, 1, 1});
  const Sizes64 padding_kv = sizes("padding_kv", {1, 1, 1});
  const Sizes64 stride_q = sizes("stride_q", {1, 1, 1}), stride_kv = sizes("stride_kv", {2, 2, 2});
  const auto ratios = rates("mlp_ratio", {4, 4, 4}), dropout = rates("drop_rate", {0, 0, 0});
  const auto attention = rates("attention_drop_rate", {0, 0, 0});
  const auto paths = rates("drop_path_rate", {0, 0, 0.1});
  const auto tokens = cvt_list<bool>(c, "cls_token", {false, false, true}, count);
  const auto biases = cvt_list<bool>(c, "qkv_bias", {true, true, true}, count);
  std::vector<std::string> methods(count, "dw_bn");
  if (c.given("qkv_projection_method")) methods = c.texts("qkv_projection_method");
  if (methods.size() < count) {
    c.fail("qkv_projection_method", "has not one entry for each of depth");
  }
  std::vector<CvtStage> stages;
  for (std::size_t s = 0; s < count; ++s) {
    if (methods[s] != "dw_bn") {
      c.fail("qkv_projection_method", "only \"dw_bn\" is supported");
    }
    if (static_cast<std::int64_t>(s) >= depths[s]) {
      c.fail("depth", "has a stage of fewer layers than its number, which the class cannot build");
    }
    if (tokens[s] && s + 1 < count) c.fail("cls_token", "is supported in the last stage alone");
    static_cast<void>(c.divided("embed_dim", widths[s], "num_heads", heads[s]));
    stages.push_back({.width = widths[s],
                      .depth = depths[s],
                      .heads = heads[s],
                      .ffn = static_cast<std::int64_t>(ratios[s] * static_cast<double>(widths[s])),
                      .patch = patch[s],
                      .stride = stride[s],
                      .padding = padding[s],
                      .kernel = kernels[s],
                      .stride_q = stride_q[s],
                      .stride_kv = stride_kv[s],
                      .padding_q = padding_q[s],
                      .padding_kv = padding_kv[s],
                      .token = tokens[s],
                      .bias = biases[s],
                      .dropout = dropout[s],
                      .attention_dropout = attention[s],
                      // Every layer has the rate of the stage's number.
                      .drop_path = rising_rate(paths[s], static_cast<std::int64_t>(s), depths[s])});
  }
  return stages;
}

// Rows that a projection reads, behind the class token.
Ref cvt_places(Draft& d, const CvtStage& n, const std::string& which, std::int64_t stride,
               std::int64_t padding, std::optional<Ref> token, Ref picture) {
  const Draft::In of(d, fmt::format("attention.attention.convolution_projection_{}.", which) +
                            "convolution_projection");
  Convolve own = square("convolution", n.width, n.kernel, stride, /*bias=*/false);
  own.padding = {padding, padding};
  own.each = true;
  const Ref rows = d.rows(d.batch_norm("normalization", d.convolve(own, picture)));
  return token ? d.behind({*token, rows}) : rows;
}

Ref cvt_layer(Draft& d, const CvtStage& n, Ref x) {
  const Ref normed = d.norm(row_norm("layernorm_before"), x);
  std::optional<Ref> token;
  Ref places = normed;
  if (n.token) {
    token = d.part({.count = 1}, normed);
    places = d.part({.first = 1}, normed);
  }
  const Ref picture = d.picture(places);
  const Ref k = cvt_places(d, n, "key", n.stride_kv, n.padding_kv, token, picture);
  const Ref q = cvt_places(d, n, "query", n.stride_q, n.padding_q, token, picture);
  const Ref v = cvt_places(d, n, "value", n.stride_kv, n.padding_kv, token, picture);
  const Ref out = d.attend({.name = "attention",
                            .heads = n.heads,
                            .q = "attention.projection_query",
                            .k = "attention.projection_key",
                            .v = "attention.projection_value",
                            .o = "output.dense",
                            .q_bias = n.bias,
                            .k_bias = n.bias,
                            .v_bias = n.bias,
                            .dropout = n.attention_dropout,
                            .plain = true},
                           q, k, v);
  x = d.sum(d.drop_path(n.drop_path, d.drop(n.dropout, out)), x);
  const Ref mixed = d.mlp("intermediate.dense", "output.dense", n.ffn, n.width, "gelu",
                          d.norm(row_norm("layernorm_after"), x));
  return d.drop_path(n.drop_path, d.sum(d.drop(n.dropout, mixed), x));
}

struct CvtEnd {
  Ref picture = 0;
  std::optional<Ref> token{};
};

CvtEnd cvt_end(const Config& c, Draft& d, const std::string& prefix) {
  const std::vector<CvtStage> stages = read_cvt(c);
  CvtEnd end;
  end.picture = d.image(c.size("num_channels", 3));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const CvtStage& n = stages[s];
    d.layer(prefix + "encoder.stages", static_cast<std::int64_t>(s), "stage");
    Ref x = 0;
    {
      const Draft::In of(d, "embedding.convolution_embeddings");
      Convolve cut = square("projection", n.width, n.patch, n.stride);
      cut.padding = {n.padding, n.padding};
      x = d.norm(row_norm("normalization"), d.rows(d.convolve(cut, end.picture)));
    }
    x = d.drop(n.dropout, x);
    if (n.token) x = d.before("cls_token", x);
    for (std::int64_t i = 0; i < n.depth; ++i) {
      const Draft::In of(d, fmt::format("layers.{}", i));
      x = cvt_layer(d, n, x);
    }
    if (n.token) {
      end.token = d.part({.count = 1}, x);
      x = d.part({.first = 1}, x);
    }
    end.picture = d.picture(x);
  }
  d.outside("head");
  return end;
}

ModelSpec cvt_spec(const Config& c, Draft& d) {
  ModelSpec spec;
  spec.network = d.finish({.side = c.size("image_size", 224)});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec cvt_model(const Config& c) {
  Draft d;
  d.sum_loss(cvt_end(c, d, "").picture);
  return cvt_spec(c, d);
}

ModelSpec cvt_classifier(const Config& c) {
  Draft d;
  const CvtEnd end = cvt_end(c, d, "cvt.");
  if (!end.token) c.fail("cls_token", "is not true of the last stage, whose token is classified");
  const Ref rows = d.norm(row_norm("layernorm"), *end.token);
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, d.mean(rows)));
  return cvt_spec(c, d);
}

}  // namespace

std::vector<Family> cvt_families() {
  return {{"CvtModel", "cvt", cvt_model}, {"CvtForImageClassification", "cvt", cvt_classifier}};
}

}  // namespace shardsim::models
