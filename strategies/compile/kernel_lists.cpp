#include "strategies/compile/kernel_lists.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "base/index.hpp"
#include "base/json.hpp"
#include "strategies/compile/expert_biases.hpp"
#include "strategies/compile/joined_kernels.hpp"
#include "strategies/compile/kernel_memory.hpp"
#include "strategies/compile/padded_rows.hpp"

namespace shardsim {
namespace {

constexpr std::string_view eager = "eager";
constexpr std::string_view transformer_engine = "transformer-engine";
constexpr std::string_view unfused = "unfused";

// What of an op a stack does in several kernels, each of which reads and writes memory.
struct Pattern {
  std::string_view stack;
  std::string_view op;
  double bytes;  // over what one kernel must
  std::int32_t launches;
};

// Counted from what autograd runs, in bytes a number with activations of 2 bytes:
//   rms_norm      to fp32 2+4, square 4+4, mean 4, times 4+4, to bf16 4+2, weight 2+2: 36 of 4
//   its backward  weight 4 and 8, to fp32 6, times 8, 12 and 4, square 8 and 8, add 12, to bf16 6:
//                 76 of 6                (torch 2.6 aten/src/ATen/native/layer_norm.cpp, rms_norm)
//   rope          times cosine 2+2, halves turned 2 and 4, times sine 2+2, add 4+2: 20 of 4
//                                        (transformers 4.46 models/llama, apply_rotary_pos_emb)
//   relu_squared  two kernels forward, three backward
constexpr std::array patterns = {
    Pattern{eager, "rms_norm", 36.0 / 4, 8}, Pattern{eager, "rms_norm_backward", 76.0 / 6, 12},
    Pattern{eager, "rope", 20.0 / 4, 5},     Pattern{eager, "rope_backward", 20.0 / 4, 5},
    Pattern{eager, "relu_squared", 2, 2},    Pattern{eager, "relu_squared_backward", 14.0 / 6, 3},
};

bool reads(const Item& item, ValueId value) {
  return std::find(item.operands.begin(), item.operands.end(), value) != item.operands.end();
}

Bytes times(Bytes bytes, double factor) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.count()) * factor));
}

// The scores of unfused attention lie in memory, whole: nothing is spared by a causal mask. Passes
// over them in numbers read or written, of operands' size: the product writes them, softmax reads
// and writes (with its mask and scale where it is one kernel, else these read and write once more),
// the product with values reads; backward its two products write and read, softmax reads two and
// writes one, products for queries and keys read it, that for values reads the probabilities
// (megatron/legacy/model/fused_softmax.py, CoreAttention). Dropout reads, writes and has a mask of
// a byte a number, in both directions.
void unfuse(Kernel& kernel, bool fused_softmax, bool drops) {
  const Product& product = *kernel.product;
  const double scores = static_cast<double>(product.batch) * static_cast<double>(product.m) *
                        static_cast<double>(product.n);
  const bool forward = kernel.kernel_class == KernelClass::attention;
  const double products = forward ? 2 : 4;
  const double passes = (forward ? 4.0 : 7.0) + (fused_softmax ? 0 : 2);
  const auto width = static_cast<double>(size_of(kernel.dtype).count());
  const double dropout = drops ? 2 * width + 1 : 0;
  kernel.flops = Flops(2 * products * scores * static_cast<double>(product.k));
  kernel.bytes += Bytes(static_cast<std::int64_t>(scores * (passes * width + dropout)));
  kernel.launches = (forward ? 3 : 5) + (drops ? 1 : 0);
}

class Listing {
 public:
  // `saved`: what an earlier pass has made.
  Listing(BlockPass& pass, const KernelChoice& choice, std::vector<Value>& values,
          const std::set<ValueId>& saved)
      : body_(pass.body), pass_(pass), choice_(choice), values_(values), saved_(saved) {}

  void run() {
    for (Item& item : body_) {
      if (item.kind == TaskKind::kernel) rewrite(item.kernel, item.drops);
    }
    join_kernels(body_, values_, choice_);
    if (choice_.stack == transformer_engine || choice_.stack == "compiled") add_casts();
    if (choice_.experts_in_turn) {
      add_expert_biases(pass_, values_);
      pad_rows(pass_, values_);
    }
  }

 private:
  void rewrite(Kernel& kernel, bool drops) const {
    if (kernel.kernel_class == KernelClass::memory) {
      kernel.implementation = choice_.stack;
      for (const Pattern& pattern : patterns) {
        if (pattern.stack != choice_.stack || pattern.op != kernel.op) continue;
        kernel.bytes = times(kernel.bytes, pattern.bytes);
        kernel.launches = pattern.launches;
      }
    } else if (kernel.kernel_class != KernelClass::matmul) {
      kernel.implementation = choice_.attention;
      if (choice_.attention == unfused && kernel.product) {
        unfuse(kernel, choice_.fused_softmax, drops);
      }
    } else if (!kernel.product) {
      kernel.implementation = choice_.stack;
    } else {
      // torch/_inductor/fx_passes/pad_mm.py; XLA's cublas_pad_for_gemms.cc
      if (choice_.stack == "compiled" || choice_.stack == "xla") kernel.product->aligned = true;
      if (kernel.op.starts_with("grouped") && choice_.experts_in_turn) {
        kernel.implementation = choice_.stack;
      }
    }
  }

  // Before a product of 8 or 4 bits each activation or gradient that it reads is quantized, once,
  // as it lies and transposed for the product of the backward pass: 2 bytes read, 1 and 1 written
  // (Transformer Engine 2.0 cast_transpose; torchao float8 reads once more for the largest number).
  // Under "tensorwise" scaling experts' rows are read once more for the largest number of each
  // expert's, too (quantizer.cpp, Float8CurrentScalingQuantizer); what is no mixture has norms and
  // activations that find theirs. Weights are quantized once a step, which is left out.
  void add_casts() {
    std::set<ValueId> quantized;
    std::vector<Item> listed;
    std::vector<std::size_t> place;  // in the new body, of every item of the old one
    for (Item& item : body_) {
      if (is_product_of_few_bits(item)) {
        for (const ValueId operand : item.operands) add_cast(operand, item, quantized, listed);
      } else if (const Item* product = product_behind(item)) {
        listed.push_back(quantize_gathered(item, *product));
      }
      place.push_back(listed.size());
      listed.push_back(std::move(item));
    }
    place.push_back(listed.size());
    for (Write& write : pass_.writes) {
      write.after = write.after == 0 ? 0 : place[write.after - 1] + 1;
    }
    body_ = std::move(listed);
  }

  static bool is_product_of_few_bits(const Item& item) {
    return item.kind == TaskKind::kernel && item.kernel.kernel_class == KernelClass::matmul &&
           bits_of(item.kernel.dtype) <= 8;
  }

  [[nodiscard]] bool is_weight(ValueId id) const {
    const BufferCategory category = values_[at(id)].category;
    return category == BufferCategory::parameters ||
           category == BufferCategory::gathered_parameters;
  }

  void add_cast(ValueId operand, const Item& product, std::set<ValueId>& quantized,
                std::vector<Item>& listed) const {
    constexpr double transposing = 2;
    const Value& value = values_[at(operand)];
    if (is_weight(operand) || saved_.contains(operand)) return;
    const bool is_gathered = gathered_.contains(operand);
    if (!is_gathered && bits_of(value.dtype) <= 8) return;
    const bool makes_weights = std::none_of(product.operands.begin(), product.operands.end(),
                                            [&](ValueId other) { return is_weight(other); });
    if (is_gathered && !makes_weights) return;
    if (!quantized.insert(operand).second) return;
    const bool reads_twice =
        choice_.stack == "compiled" || (choice_.scales_tensors && choice_.experts_in_turn &&
                                        product.kernel.op.starts_with("grouped"));
    const double of_stack = reads_twice ? 6 : 4;
    listed.push_back(cast_of(operand, product, is_gathered ? transposing : of_stack));
    if (product.kernel.op.starts_with("grouped") && choice_.casts_of_expert > 0) {
      const auto experts = static_cast<std::int32_t>(product.kernel.product->batch);
      listed.back().kernel.launches = choice_.casts_of_expert * experts;
    }
  }

  // `passes`: bytes read and written for each of its numbers.
  [[nodiscard]] Item cast_of(ValueId operand, const Item& product, double passes) const {
    const Value& value = values_[at(operand)];
    const double numbers =
        static_cast<double>(value.bytes.count()) * 8 / static_cast<double>(bits_of(value.dtype));
    Item cast;
    cast.name = product.name + " cast";
    cast.recompute = product.recompute;
    cast.kernel = {"cast", KernelClass::memory, value.dtype, Flops(0),
                   Bytes(static_cast<std::int64_t>(passes * numbers))};
    cast.kernel.implementation = choice_.stack;
    cast.operands = {operand};
    return cast;
  }

  // Of a gather whose result products of few bits alone read: the first of them.
  [[nodiscard]] const Item* product_behind(const Item& item) const {
    const bool is_gather =
        choice_.stack == transformer_engine && item.kind == TaskKind::collective &&
        item.stream == Stream::activations && item.collective.kind == CollectiveKind::all_gather;
    if (!is_gather || bits_of(values_[at(item.results.front())].dtype) <= 8) return nullptr;
    const Item* first = nullptr;
    for (const Item& reader : body_) {
      if (!reads(reader, item.results.front())) continue;
      if (!is_product_of_few_bits(reader)) return nullptr;
      if (first == nullptr) first = &reader;
    }
    return first;
  }

  // What is gathered for such products is quantized where it lies in parts, travels so, and is
  // transposed for the weights' gradient once it is whole (transformer_engine/pytorch/module/
  // layernorm_linear.py of 2.0, gather_along_first_dim of a quantized input).
  Item quantize_gathered(Item& gather, const Item& product) {
    const DType narrow = product.kernel.dtype;
    Item cast = cast_of(gather.operands.front(), product, 3);
    Value& whole = values_[at(gather.results.front())];
    const auto narrowed = [&](Bytes bytes) {
      return Bytes(bytes.count() * bits_of(narrow) / bits_of(whole.dtype));
    };
    gather.collective.payload = narrowed(gather.collective.payload);
    for (CollectivePart& one : gather.collective.parts) one.payload = narrowed(one.payload);
    gather.collective.dtype = narrow;
    whole.bytes = narrowed(whole.bytes);
    whole.dtype = narrow;
    gathered_.insert(gather.results.front());
    return cast;
  }

  std::vector<Item>& body_;
  BlockPass& pass_;
  const KernelChoice& choice_;
  std::vector<Value>& values_;
  const std::set<ValueId>& saved_;
  std::set<ValueId> gathered_;  // in few bits
};

void add_results(const BlockPass& pass, std::set<ValueId>& values) {
  for (const Item& item : pass.body) values.insert(item.results.begin(), item.results.end());
}

}  // namespace

const std::vector<std::string>& fusions() {
  static const std::vector<std::string> names = {
      "bias_dropout_add", "bias_gelu", "bias_swiglu", "cross_entropy",
      "layer_norm",       "optimizer", "permute",     "qkv",
      "rms_norm",         "rope",      "router",      "scaled_masked_softmax",
      "squared_relu",     "swiglu"};
  return names;
}

bool acts(const std::string& fusion) {
  constexpr std::array acting = {"bias_dropout_add", "qkv", "router", "scaled_masked_softmax"};
  return std::find(acting.begin(), acting.end(), fusion) != acting.end();
}

KernelChoice kernel_choice(const Json& kernels) {
  const Json said = kernels.is_string() ? Json{{"base", kernels}} : kernels;
  KernelChoice choice;
  choice.stack = said.value("base", std::string(eager));
  // What each calls where it is not told: Transformer Engine cuDNN's kernel, PyTorch's scaled
  // dot-product attention FlashAttention-2.
  const bool is_torch = choice.stack == eager || choice.stack == "compiled";
  choice.attention = said.value("attention", choice.stack == transformer_engine ? "cudnn"
                                             : is_torch                         ? "flash-2"
                                                                                : "");
  if (said.contains("fused")) {
    for (const Json& name : said.at("fused")) {
      if (name == "scaled_masked_softmax") choice.fused_softmax = true;
      if (name == "bias_dropout_add") choice.fused_dropout = true;
      if (name == "qkv") choice.joint_projections = true;
      if (name == "router") choice.casting_routers = true;
    }
  }
  const std::string loss = said.value("loss", choice.stack == "compiled" ? "compiled" : "plain");
  choice.loss_in_place = loss == "parallel" || loss == "fused";
  choice.fused_loss = loss == "fused";
  choice.compiled_loss = loss == "compiled";
  if (choice.stack == transformer_engine) choice.fused_softmax = choice.fused_dropout = true;
  if (choice.stack == "compiled" || choice.stack == "xla") choice.fused_dropout = true;
  return choice;
}

SpmdStep with_padded_products(SpmdStep step) {
  const auto pad = [](std::vector<Item>& items) {
    for (Item& item : items) {
      if (item.kernel.product) item.kernel.product->aligned = true;
    }
  };
  for (BlockProgram& block : step.blocks) {
    pad(block.forward.body);
    pad(block.backward.body);
  }
  return step;
}

std::string issuer(const Json& kernels) {
  if (kernels.is_null()) return "";
  if (kernels.is_object() && kernels.value("graphs", Json()) == "full-iteration") return "";
  return kernel_choice(kernels).stack;
}

SpmdStep list_kernels(SpmdStep step, const KernelChoice& choice) {
  std::set<ValueId> saved;
  for (BlockProgram& block : step.blocks) Listing(block.forward, choice, step.values, saved).run();
  for (const BlockProgram& block : step.blocks) add_results(block.forward, saved);
  for (BlockProgram& block : step.blocks) Listing(block.backward, choice, step.values, saved).run();
  place_results(step, choice);
  return step;
}

}  // namespace shardsim
