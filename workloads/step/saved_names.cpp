#include "workloads/step/saved_names.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "base/index.hpp"

namespace shardsim {
namespace {

using Tensors = std::vector<TensorId>;

// Operands of attention: queries, keys, values.
Tensors read_by_attention(const Block& block, std::size_t first, std::size_t count) {
  Tensors tensors;
  for (const Op& op : block.forward) {
    if (kind_of(op) != OpKind::attention) continue;
    for (std::size_t i = first; i < first + count; ++i) tensors.push_back(op.operands[i].tensor);
  }
  return tensors;
}

template <class Chosen>
Tensors results_of(const Block& block, const Chosen& chosen) {
  Tensors tensors;
  for (const Op& op : block.forward) {
    if (!chosen(op)) continue;
    for (const Operand& result : op.results) tensors.push_back(result.tensor);
  }
  return tensors;
}

bool is_product(const Op& op) { return kind_of(op) == OpKind::einsum; }

bool is_dense(OpModule module) { return module != OpModule::experts; }

// First or last products of MLPs or of routed experts.
Tensors products(const Block& block, OpPart part, bool dense) {
  return results_of(block, [&](const Op& op) {
    return is_product(op) && op.part == part && is_dense(op.module) == dense;
  });
}

// The gate's and up, where they are two products.
Tensors one_of(Tensors pair, std::size_t which) {
  if (pair.size() < 2 && which > 0) return {};
  if (pair.size() < 2) return pair;
  return Tensors(1, pair[which]);
}

Tensors latents(const Block& block, OpPart part, OpKind kind) {
  Tensors made;
  for (const Op& op : block.forward) {
    // Not a norm's statistics.
    if (op.part == part && kind_of(op) == kind) made.push_back(op.results.front().tensor);
  }
  return made;
}

struct SavedName {
  std::string_view name;
  Tensors (*find)(const Block&);
};

constexpr std::array saved{
    SavedName{"decoder_layer_input", [](const Block& b) { return b.carries_in; }},
    SavedName{"query_proj", [](const Block& b) { return read_by_attention(b, 0, 1); }},
    SavedName{"q", [](const Block& b) { return read_by_attention(b, 0, 1); }},
    SavedName{"key_proj", [](const Block& b) { return read_by_attention(b, 1, 1); }},
    SavedName{"k", [](const Block& b) { return read_by_attention(b, 1, 1); }},
    SavedName{"value_proj", [](const Block& b) { return read_by_attention(b, 2, 1); }},
    SavedName{"v", [](const Block& b) { return read_by_attention(b, 2, 1); }},
    SavedName{"qkv_proj", [](const Block& b) { return read_by_attention(b, 0, 3); }},
    SavedName{"context",
              [](const Block& b) {
                return results_of(b, [](const Op& op) { return kind_of(op) == OpKind::attention; });
              }},
    SavedName{"out_proj",
              [](const Block& b) {
                return results_of(b, [](const Op& op) {
                  return op.part == OpPart::out_projection && is_product(op);
                });
              }},
    SavedName{"mlpwi",
              [](const Block& b) { return products(b, OpPart::first_product, /*dense=*/true); }},
    SavedName{"mlpwi_0",
              [](const Block& b) {
                return one_of(products(b, OpPart::first_product, /*dense=*/true), 0);
              }},
    SavedName{"mlpwi_1",
              [](const Block& b) {
                return one_of(products(b, OpPart::first_product, /*dense=*/true), 1);
              }},
    SavedName{"mlpwo",
              [](const Block& b) { return products(b, OpPart::last_product, /*dense=*/true); }},
    SavedName{"moe_mlpwi",
              [](const Block& b) { return products(b, OpPart::first_product, /*dense=*/false); }},
    SavedName{"moe_mlpwo",
              [](const Block& b) { return products(b, OpPart::last_product, /*dense=*/false); }},
    SavedName{"mla_q",
              [](const Block& b) { return latents(b, OpPart::query_latent, OpKind::norm); }},
    SavedName{"q_wa_proj",
              [](const Block& b) { return latents(b, OpPart::query_latent, OpKind::einsum); }},
    SavedName{"mla_kv",
              [](const Block& b) { return latents(b, OpPart::key_latent, OpKind::norm); }},
    SavedName{"kv_wa_proj",
              [](const Block& b) { return latents(b, OpPart::key_latent, OpKind::einsum); }}};

// In the order of the forward pass. What comes of one tensor into an attention is one product.
Tensors every_other(const Block& block) {
  bool keeps = false;
  TensorId read = no_tensor;  // by the projections into an attention
  return results_of(block, [&](const Op& op) {
    const OpKind kind = kind_of(op);
    if (op.function == Function::matmul || op.function == Function::linear) {
      // Routers' are computed again and not counted (force_recompute_mm_shapes_by_fqns).
      if (op.module == OpModule::experts) return false;
      const TensorId reads = op.operands.front().tensor;
      const bool is_joint = op.part == OpPart::input_projection && reads == read;
      if (op.part == OpPart::input_projection) read = reads;
      return is_joint ? keeps : (keeps = !keeps);
    }
    return kind == OpKind::attention || kind == OpKind::scan || kind == OpKind::chunked_scan ||
           op.function == Function::top_k;
  });
}

// MaxText's policies: names.
struct NamingPolicy {
  std::string_view policy;
  std::vector<std::string_view> names;
};

const std::vector<NamingPolicy>& naming_policies() {
  static const std::vector<NamingPolicy> table = {
      {"full", {}},
      {"nothing_saveable", {}},
      {"minimal", {"qkv_proj", "out_proj", "mlpwi", "mlpwo"}},
      {"minimal_with_context", {"qkv_proj", "context", "out_proj", "mlpwi", "mlpwo"}},
      {"minimal_flash", {"qkv_proj", "context", "out_proj", "mlpwi", "mlpwo"}},
      {"save_dot_with_context_except_mlp", {"qkv_proj", "context", "out_proj"}},
      {"save_dot_except_mlpwi", {"qkv_proj", "out_proj", "mlpwo"}},
      {"save_dot_except_mlp", {"qkv_proj", "out_proj"}},
      {"save_qkv_proj", {"qkv_proj"}},
      {"save_out_proj", {"out_proj"}},
  };
  return table;
}

constexpr std::array keeping_all{"none", "everything_saveable"};
constexpr std::array keeping_products{"checkpoint_dots", "dots_saveable",
                                      "checkpoint_dots_with_no_batch_dims",
                                      "dots_with_no_batch_dims_saveable"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Module {
  std::string_view name;
  bool discards_results;
  bool (*has)(const Op&);
  bool offloads_alone = false;  // Megatron moves what it reads, and computes nothing again
};

constexpr std::array modules{
    Module{"core_attn", false, [](const Op& op) { return kind_of(op) == OpKind::attention; }},
    Module{"mlp", false, [](const Op& op) { return op.module == OpModule::mlp; }},
    Module{"moe", false,
           [](const Op& op) {
             return op.module == OpModule::experts || op.module == OpModule::shared_experts;
           }},
    Module{"shared_experts", false,
           [](const Op& op) { return op.module == OpModule::shared_experts; }},
    Module{"layernorm", true,
           [](const Op& op) {
             return op.part == OpPart::input_norm || op.part == OpPart::feed_forward_norm;
           }},
    Module{"moe_act", true,
           [](const Op& op) {
             return op.part == OpPart::activation && op.module == OpModule::experts;
           }},
    Module{"mla_up_proj", true, [](const Op& op) { return op.part == OpPart::from_latents; }},
    Module{"attn_norm", false, [](const Op& op) { return op.part == OpPart::input_norm; }, true},
    Module{"mlp_norm", false, [](const Op& op) { return op.part == OpPart::feed_forward_norm; },
           true},
    Module{"qkv_linear", false,
           [](const Op& op) {
             const bool projects = op.part == OpPart::input_projection ||
                                   op.part == OpPart::query_latent || op.part == OpPart::key_latent;
             return projects && is_product(op);
           },
           true},
    Module{"attn_proj", false,
           [](const Op& op) { return op.part == OpPart::out_projection && is_product(op); }, true},
    Module{"expert_fc1", false,
           [](const Op& op) {
             return op.part == OpPart::first_product && op.module == OpModule::experts;
           },
           true},
    Module{"norm", true, [](const Op& op) { return kind_of(op) == OpKind::norm; }},
    Module{"activation", true, [](const Op& op) { return op.part == OpPart::activation; }}};

// And the policy that keeps the same on the device.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> offloading{{
    {"qkv_proj_offloaded", "save_qkv_proj"},
    {"minimal_offloaded", "minimal"},
    {"offload_dot_with_no_batch_dims", "checkpoint_dots_with_no_batch_dims"},
}};

const Module& find_module(std::string_view name) {
  const auto* found = std::find_if(modules.begin(), modules.end(),
                                   [&](const Module& module) { return module.name == name; });
  return *found;
}

}  // namespace

std::vector<std::string> saved_names() {
  std::vector<std::string> names;
  for (const SavedName& name : saved) names.emplace_back(name.name);
  return names;
}

std::optional<std::vector<TensorId>> saved_by_name(const Block& block, std::string_view name) {
  const auto* found = std::find_if(saved.begin(), saved.end(),
                                   [&](const SavedName& known) { return known.name == name; });
  if (found == saved.end()) return std::nullopt;
  return found->find(block);
}

std::vector<std::string> saving_policies() {
  std::vector<std::string> names;
  for (const NamingPolicy& known : naming_policies()) names.emplace_back(known.policy);
  names.insert(names.end(), keeping_all.begin(), keeping_all.end());
  names.insert(names.end(), keeping_products.begin(), keeping_products.end());
  names.emplace_back(every_other_product);
  return names;
}

std::vector<std::string> offloading_policies() {
  std::vector<std::string> names;
  for (const auto& [policy, same] : offloading) names.emplace_back(policy);
  return names;
}

bool is_offloading(std::string_view policy) { return on_device(policy) != policy; }

std::string_view on_device(std::string_view policy) {
  for (const auto& [known, same] : offloading) {
    if (known == policy) return same;
  }
  return policy;
}

std::vector<TensorId> saved_by_policy(const Block& block, std::string_view policy) {
  if (contains(keeping_all, policy)) return results_of(block, [](const Op&) { return true; });
  if (policy == every_other_product) return every_other(block);
  if (contains(keeping_products, policy)) {
    return results_of(block, [](const Op& op) {
      return op.function == Function::matmul || op.function == Function::linear;
    });
  }
  Tensors tensors;
  for (const NamingPolicy& known : naming_policies()) {
    if (known.policy != policy) continue;
    for (const std::string_view name : known.names) {
      const Tensors named = *saved_by_name(block, name);
      tensors.insert(tensors.end(), named.begin(), named.end());
    }
  }
  return tensors;
}

std::vector<std::string> module_names() {
  std::vector<std::string> names;
  for (const Module& module : modules) {
    if (!module.offloads_alone) names.emplace_back(module.name);
  }
  names.emplace_back("core_attention");
  return names;
}

std::vector<std::string> offload_module_names() {
  std::vector<std::string> names = module_names();
  for (const Module& module : modules) {
    if (module.offloads_alone) names.emplace_back(module.name);
  }
  return names;
}

std::string module_named(std::string_view word) {
  return std::string(word == "core_attention" ? "core_attn" : word);
}

bool is_of(const Op& op, std::string_view module) { return find_module(module).has(op); }

bool discards_results(std::string_view module) { return find_module(module).discards_results; }

}  // namespace shardsim
