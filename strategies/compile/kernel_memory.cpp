#include "strategies/compile/kernel_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/index.hpp"

namespace shardsim {
namespace {

class ResultPlaces {
 public:
  ResultPlaces(SpmdStep& step, const KernelChoice& choice) : step_(step), choice_(choice) {}

  void run() {
    for (auto& block : step_.blocks) {
      for (BlockPass* pass : {&block.forward, &block.backward}) {
        if (choice_.joint_projections) join_projections(pass->body);
        if (choice_.casting_routers) cast_in_routers(pass->body);
        if (choice_.fused_loss) join_loss_sums(pass->body);
        if (choice_.loss_in_place) place_loss(pass->body);
        if (choice_.compiled_loss) compile_loss(pass->body);
        if (choice_.attention == "unfused") keep_scores(pass->body);
      }
    }
  }

 private:
  Value& value(ValueId id) { return step_.values[at(id)]; }

  static Item* maker_of(std::vector<Item>& body, ValueId result) {
    const auto found = std::find_if(body.begin(), body.end(), [&](const Item& item) {
      return std::find(item.results.begin(), item.results.end(), result) != item.results.end();
    });
    return found == body.end() ? nullptr : &*found;
  }

  static bool is_kernel(const Item& item, std::string_view op) {
    return item.kind == TaskKind::kernel && item.kernel.op == op;
  }

  // The product that a head's vectors come of, through rotation and norms.
  static const Item* projection_of(std::vector<Item>& body, ValueId vectors) {
    const Item* item = maker_of(body, vectors);
    while (item != nullptr && item->kernel.kernel_class != KernelClass::matmul) {
      item = item->operands.empty() ? nullptr : maker_of(body, item->operands.front());
    }
    return item;
  }

  // Megatron's linear_qkv: queries and keys are copied where they are rotated, values are a part of
  // the whole, which lives as long as they do (megatron/core/transformer/attention.py,
  // get_query_key_value_tensors).
  void join_projections(std::vector<Item>& body) {
    for (const Item& item : body) {
      if (!is_kernel(item, "attention") || item.operands.size() < 3) continue;
      std::vector<ValueId> parts;
      ValueId read = no_value;
      for (std::size_t i = 0; i < 3; ++i) {
        const Item* product = projection_of(body, item.operands[i]);
        if (product == nullptr || (i > 0 && product->operands.front() != read)) break;
        read = product->operands.front();
        parts.push_back(product->results.front());
      }
      if (parts.size() == 3 && parts[1] != parts[2]) put_together(parts);
      copy_values(body, item.operands[2]);
    }
  }

  // Values of latent attention, a part of what the latent is projected to, are copied out of it
  // (multi_latent_attention.py, value.contiguous()), here with their product: the copy's time is
  // left out.
  void copy_values(std::vector<Item>& body, ValueId values) {
    const ValueId whole = value(values).storage;
    Item* const product = whole == no_value ? nullptr : maker_of(body, whole);
    if (product == nullptr || value(whole).bytes <= value(values).bytes) return;
    if (maker_of(body, values) != nullptr) return;
    value(values).storage = no_value;
    value(values).category = value(whole).category;
    product->results.push_back(values);
  }

  // router_gating_linear (megatron/core/transformer/moe/moe_utils.py) reads and saves its input in
  // the type that it comes in.
  void cast_in_routers(std::vector<Item>& body) {
    for (const Item& item : body) {
      if (!is_kernel(item, "cast") || item.results.empty()) continue;  // of 8 bits: none
      const ValueId wide = item.results.front();
      if (value(wide).dtype != DType::f32 || value(wide).persistent) continue;
      const auto reads_it = [&](const Item& reader) {
        return std::find(reader.operands.begin(), reader.operands.end(), wide) !=
               reader.operands.end();
      };
      const auto reader = std::find_if(body.begin(), body.end(), reads_it);
      if (reader == body.end() || reader->kernel.kernel_class != KernelClass::matmul) continue;
      value(wide).bytes = Bytes(0);
    }
  }

  // Into the first of them: it is written first and read last.
  void put_together(const std::vector<ValueId>& parts) {
    Value& whole = value(parts.front());
    for (const ValueId id : parts) {
      Value& part = value(id);
      if (&part == &whole || part.storage != no_value || whole.storage != no_value) continue;
      whole.bytes += part.bytes;
      part.storage = parts.front();
    }
    const Value& values = value(parts.back());
    if (values.storage == parts.front()) whole.category = values.category;
  }

  // megatron/core/tensor_parallel/cross_entropy.py: in place the maximum is subtracted, the
  // exponential taken and divided; backward subtracts one at the target and scales, in place.
  void place_loss(std::vector<Item>& body) {
    for (Item& item : body) {
      if (is_kernel(item, "log_softmax")) {
        const ValueId probabilities = item.results.front();
        Value& logits = value(item.operands.front());
        if (logits.dtype != DType::f32 || logits.persistent) continue;
        // torch.compile makes the functions that --cross-entropy-loss-fusion has it compile
        // functional: their exponentials are a tensor of their own.
        if (choice_.fused_loss) continue;
        value(probabilities).storage = item.operands.front();
        logits.category = value(probabilities).category;
      } else if (is_kernel(item, "nll_loss_backward")) {
        value(item.results.front()).bytes = Bytes(0);
      } else if (is_kernel(item, "log_softmax_backward")) {
        value(item.results.front()).storage = item.operands.back();  // the probabilities
      }
    }
  }

  // A split vocabulary's sums are calls between kernels: there the loss stays as it is.
  void compile_loss(std::vector<Item>& body) {
    for (Item& item : body) {
      if (is_kernel(item, "log_softmax") && item.operands.size() == 1) {
        const Item* const cast = maker_of(body, item.operands.front());
        ValueId logits = item.operands.front();
        if (cast != nullptr && is_kernel(*cast, "cast")) {
          value(logits).storage = cast->operands.front();
          logits = cast->operands.front();
        }
        if (value(logits).storage != no_value || value(logits).persistent) continue;
        value(logits).category = value(item.results.front()).category;
        value(item.results.front()).storage = logits;
        in_one_kernel_ = true;
      } else if (in_one_kernel_ && (is_kernel(item, "nll_loss_backward") ||
                                    is_kernel(item, "log_softmax_backward"))) {
        value(item.results.front()).bytes = Bytes(0);
      }
    }
  }

  // megatron/core/fusions/fused_cross_entropy.py: the logits at the targets and the sums of
  // exponentials go in one call, the second after that of the maxima.
  void join_loss_sums(std::vector<Item>& body) {
    const auto find = [&](std::string_view op) {
      return std::find_if(body.begin(), body.end(),
                          [&](const Item& item) { return is_kernel(item, op); });
    };
    const auto softmax = find("log_softmax"), loss = find("nll_loss");
    if (softmax == body.end() || loss == body.end()) return;
    Item* const sums = sum_before(body, softmax->operands.back());
    Item* const picked = sum_before(body, loss->operands.back());
    if (sums == nullptr || picked == nullptr) return;  // the vocabulary is whole
    sums->collective.payload += picked->collective.payload;
    sums->collective.parts.insert(sums->collective.parts.end(), picked->collective.parts.begin(),
                                  picked->collective.parts.end());
    value(sums->results.front()).bytes += value(picked->results.front()).bytes;
    loss->operands.back() = sums->results.front();
    body.erase(body.begin() + (picked - body.data()));
  }

  static Item* sum_before(std::vector<Item>& body, ValueId operand) {
    Item* const maker = maker_of(body, operand);
    return maker != nullptr && maker->kind == TaskKind::collective ? maker : nullptr;
  }

  // Probabilities in the type of the operands, and in fp32 besides where softmax is PyTorch's own
  // of fp32 scores; where some are dropped a byte for each, and what is left of them. Backward has
  // the gradient of probabilities and that of scores at a time.
  void keep_scores(std::vector<Item>& body) {
    for (Item& item : body) {
      if (item.kind != TaskKind::kernel || !item.kernel.product) continue;
      const bool forward = item.kernel.kernel_class == KernelClass::attention;
      if (!forward && item.kernel.kernel_class != KernelClass::attention_backward) continue;
      const Product& product = *item.kernel.product;
      const std::int64_t scores = product.batch * product.m * product.n;
      const std::int64_t bytes = scores * size_of(item.kernel.dtype).count();
      if (forward && item.results.size() > 1) {
        Value& kept = value(item.results[1]);
        const std::int64_t wide = choice_.fused_softmax ? 0 : scores * size_of(DType::f32).count();
        kept.bytes = Bytes(bytes + wide + (item.drops ? bytes + scores : 0));
        continue;
      }
      Value gradient;
      gradient.name = item.name + ".scores.grad";
      gradient.dtype = item.kernel.dtype;
      gradient.bytes = Bytes(2 * bytes);
      // Where the other gradients lie: of a layer of multi-token prediction with the head.
      gradient.block = value(item.results.front()).block;
      gradient.shared = value(item.results.front()).shared;
      item.results.push_back(static_cast<ValueId>(step_.values.size()));
      step_.values.push_back(gradient);
    }
  }

  SpmdStep& step_;
  const KernelChoice& choice_;
  bool in_one_kernel_ = false;  // the loss
};

}  // namespace

void place_results(SpmdStep& step, const KernelChoice& choice) { ResultPlaces(step, choice).run(); }

void spread_split_loss(SpmdStep& step) {
  const auto is_of_loss = [](std::string_view op) {
    return [op](const Item& item) { return item.kernel.op == op; };
  };
  bool is_split = false;
  for (BlockProgram& block : step.blocks) {
    const std::vector<Item>& forward = block.forward.body;
    const auto softmax = std::find_if(forward.begin(), forward.end(), is_of_loss("log_softmax"));
    if (softmax != forward.end()) is_split = softmax->operands.size() > 1;
    for (BlockPass* pass : {&block.forward, &block.backward}) {  // chunks go back at once
      for (Item& item : pass->body) {
        if (!is_split || item.kernel.op != "log_softmax_backward") continue;
        Value ones = step.values[at(item.results.front())];
        ones.name += ".ones";
        ones.tensor = no_tensor;
        ones.storage = no_value;
        ones.category = BufferCategory::temporaries;
        item.results.push_back(static_cast<ValueId>(step.values.size()));
        step.values.push_back(std::move(ones));
      }
    }
  }
}

void keep_outputs(SpmdStep& step) {
  for (BlockProgram& block : step.blocks) {
    const std::vector<Item>& body = block.forward.body;
    const auto makes = [&](ValueId result) {
      return std::find_if(body.begin(), body.end(), [&](const Item& item) {
        return std::count(item.results.begin(), item.results.end(), result) > 0;
      });
    };
    const auto loss = std::find_if(
        body.begin(), body.end(), [](const Item& item) { return item.kernel.op == "log_softmax"; });
    if (loss == body.end()) continue;
    ValueId logits = loss->operands.front();
    const auto cast = makes(logits);
    if (cast != body.end() && cast->kernel.op == "cast") logits = cast->operands.front();
    while (step.values[at(logits)].storage != no_value) logits = step.values[at(logits)].storage;
    step.values[at(logits)].to_end = true;
    step.values[at(logits)].category = BufferCategory::activations;
  }
}

void make_whole_tables(SpmdStep& step) {
  for (BlockProgram& block : step.blocks) {
    for (Item& item : block.backward.body) {
      if (item.kernel.op != "embedding_backward") continue;
      Value whole = step.values[at(item.results.front())];
      std::int64_t parts = 1;
      for (const AxisRef& axis : split_axes(whole.sharding)) parts *= axis.size;
      if (parts == 1) continue;
      item.kernel.bytes += (parts + 1) * whole.bytes;  // written whole, a part read again
      whole.name += ".whole";
      whole.tensor = no_tensor;
      whole.storage = no_value;
      whole.category = BufferCategory::temporaries;
      whole.bytes = parts * whole.bytes;
      item.results.push_back(static_cast<ValueId>(step.values.size()));
      step.values.push_back(std::move(whole));
    }
  }
}

}  // namespace shardsim
