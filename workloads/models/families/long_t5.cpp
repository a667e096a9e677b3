// LongT5: T5 whose encoder sees neighbours alone, or sums of blocks beside them.
#include <string>

#include "workloads/models/families/encoder_decoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Defaults: transformers 5.23, configuration_longt5.py.
ModelSpec long_t5(const Config& c) {
  ModelSpec spec = t5_like(c, {});
  const std::string type = c.text("encoder_attention_type", "local");
  if (type != "local" && type != "transient-global") {
    c.fail("encoder_attention_type", "is neither \"local\" nor \"transient-global\"");
  }
  const bool sums = type == "transient-global";
  const std::int64_t radius = c.size("local_radius", 127);
  const std::int64_t block = c.size("global_block_size", 16);
  for (LayerKind& kind : spec.stacks[0].kinds) {
    Body& body = kind.branches[0].body;
    const auto attention = std::get<Attention>(body);
    const std::string name = sums ? "TransientGlobalSelfAttention" : "LocalSelfAttention";
    body = Mixer{LocalAttention{.name = "layer.0." + name,
                                .heads = attention.heads,
                                .head_dim = attention.head_dim,
                                .radius = radius,
                                .global_block = sums ? block : 0,
                                .buckets = attention.relative_buckets,
                                .dropout = attention.dropout}};
  }
  return spec;
}

}  // namespace

std::vector<Family> long_t5_families() {
  return {{"LongT5ForConditionalGeneration", "longt5", long_t5}};
}

}  // namespace shardsim::models
