#include "strategies/compile/joined_kernels.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/index.hpp"

namespace shardsim {
namespace {

bool is_kernel(const Item& item, std::string_view op) {
  return item.kind == TaskKind::kernel && item.kernel.op == op;
}

bool is_left_out(const Item& item) {
  return item.kind == TaskKind::kernel && item.kernel.launches == 0;
}

bool has(const std::vector<ValueId>& values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Bytes times(Bytes bytes, double factor) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.count()) * factor));
}

// What another kernel does as well.
void leave_to_another(Item& item) {
  item.kernel.launches = 0;
  item.kernel.bytes = Bytes(0);
  item.kernel.flops = Flops(0);
}

class KernelJoins {
 public:
  KernelJoins(std::vector<Item>& body, std::vector<Value>& values, const KernelChoice& choice)
      : body_(body), values_(values), choice_(choice) {}

  void run() {
    if (choice_.stack != "eager") join_gates();
    if (choice_.stack == "transformer-engine") {
      join_weights();
      join_weights_backward();
      join_halves();
    }
    if (choice_.fused_dropout) join_dropouts();
  }

 private:
  // act(gate) times up: the product reads both halves itself. Backward the products of the output's
  // gradient and the activation's backward are one kernel, which reads three and writes two where
  // the first product alone reads two and writes one (megatron/core/fusions/fused_bias_swiglu.py).
  void join_gates() {
    constexpr std::array activations = {"silu", "gelu", "relu", "sigmoid"};
    constexpr double backward_over_product = 5.0 / 3;
    for (const std::string_view activation : activations) {
      for (Item& item : body_) {
        if (is_kernel(item, activation) && is_read_by_one(item, "multiply")) leave_within(item);
        if (!is_kernel(item, std::string(activation) + "_backward")) continue;
        Item* const through = maker_of(item.operands, "multiply");
        Item* const other = through == nullptr ? nullptr : product_beside(*through);
        if (other == nullptr) continue;
        other->kernel.op = "multiply_backward";
        other->kernel.bytes = times(other->kernel.bytes, backward_over_product);
        leave_within(*through);
        leave_to_another(item);
      }
    }
  }

  // Its result is read where it is made. XLA keeps what it has differentiated as it is.
  void leave_within(Item& item) {
    leave_to_another(item);
    if (choice_.stack != "xla") values_[at(item.results.front())].bytes = Bytes(0);
  }

  // With the sum that reads it: that reads the mask's bytes besides, and writes them. Megatron's
  // bias_dropout_add (megatron/core/fusions/fused_bias_dropout.py).
  void join_dropouts() {
    for (Item& item : body_) {
      if (!is_kernel(item, "dropout") || !is_read_by_one(item, "add")) continue;
      Item* const sum = reader_of(item.results.front());
      sum->kernel.bytes += values_[at(item.results.back())].bytes;
      leave_within(item);
    }
  }

  Item* reader_of(ValueId value) {
    const auto is_reader = [&](const Item& item) { return has(item.operands, value); };
    const auto found = std::find_if(body_.begin(), body_.end(), is_reader);
    return found == body_.end() ? nullptr : &*found;
  }

  bool is_read_by_one(const Item& item, std::string_view op) const {
    if (item.results.empty()) return false;
    const auto is_reader = [&](const Item& other) {
      return has(other.operands, item.results.front());
    };
    const auto reader = std::find_if(body_.begin(), body_.end(), is_reader);
    return reader != body_.end() && is_kernel(*reader, op) &&
           std::none_of(reader + 1, body_.end(), is_reader);
  }

  Item* maker_of(const std::vector<ValueId>& wanted, std::string_view op) {
    for (Item& item : body_) {
      if (!is_kernel(item, op)) continue;
      for (const ValueId result : item.results) {
        if (has(wanted, result)) return &item;
      }
    }
    return nullptr;
  }

  const Item* maker_of(ValueId value) const {
    const auto found = std::find_if(body_.begin(), body_.end(),
                                    [&](const Item& item) { return has(item.results, value); });
    return found == body_.end() ? nullptr : &*found;
  }

  // Another that reads the gradient of the output, which this one multiplies with what has gone
  // through: made in this pass, and not computed again.
  Item* product_beside(const Item& product) {
    for (const ValueId operand : product.operands) {
      const Item* const maker = maker_of(operand);
      if (maker == nullptr || maker->recompute) continue;
      for (Item& item : body_) {
        if (&item != &product && is_kernel(item, "multiply") && has(item.operands, operand)) {
          return &item;
        }
      }
    }
    return nullptr;
  }

  // Experts' rows are weighted in the kernel of their gate, which reads both halves and writes one
  // (megatron/core/fusions/fused_bias_swiglu.py, weighted_swiglu).
  void join_weights() {
    for (Item& item : body_) {
      if (!is_kernel(item, "multiply") || is_left_out(item)) continue;
      Item* const product = maker_of(item.operands, "multiply");
      if (product == nullptr || !is_gate(*product) || !is_read_by_one(*product, "multiply")) {
        continue;
      }
      const Bytes half = bytes_of(product->results.front());
      item.kernel.bytes += product->kernel.bytes - 2 * half;
      leave_within(*product);
    }
  }

  // Backward (weighted_swiglu_back) one kernel reads the gradient and both halves and writes both
  // of theirs, one reads them again for the weights' gradient.
  void join_weights_backward() {
    for (Item& item : body_) {
      if (!is_kernel(item, "multiply_backward")) continue;
      Item* const weighing = maker_of(item.operands, "multiply");
      if (weighing == nullptr || is_left_out(*weighing) || is_gate(*weighing)) continue;
      const bool is_read_by_it_alone = std::all_of(body_.begin(), body_.end(), [&](Item& other) {
        return &other == &item || is_left_out(other) ||
               !has(other.operands, weighing->results.front());
      });
      if (!is_read_by_it_alone) continue;
      leave_within(*weighing);
      for (Item& again : body_) {
        if (!is_kernel(again, "multiply") || is_left_out(again) || !is_gate(again)) continue;
        if (!is_read_by_one(again, "multiply")) continue;
        reader_of(again.results.front())->kernel.bytes += bytes_of(again.results.front());
        leave_within(again);
      }
    }
  }

  // Gradients of both halves are written side by side.
  void join_halves() {
    for (Item& item : body_) {
      if (!is_kernel(item, "concatenate")) continue;
      const bool are_of_gate =
          std::all_of(item.operands.begin(), item.operands.end(), [&](ValueId half) {
            const Item* const maker = maker_of(half);
            return maker != nullptr &&
                   (is_left_out(*maker) || maker->kernel.op == "multiply_backward");
          });
      if (!are_of_gate) continue;
      for (const ValueId half : item.operands) values_[at(half)].bytes = Bytes(0);
      leave_to_another(item);
    }
  }

  // Whether it is the product of a gate and what goes through, whose activation it computes itself.
  bool is_gate(const Item& product) const {
    return std::any_of(product.operands.begin(), product.operands.end(),
                       [&](ValueId operand) { return values_[at(operand)].bytes == Bytes(0); });
  }

  [[nodiscard]] Bytes bytes_of(ValueId value) const { return values_[at(value)].bytes; }

  std::vector<Item>& body_;
  std::vector<Value>& values_;
  const KernelChoice& choice_;
};

}  // namespace

void join_kernels(std::vector<Item>& body, std::vector<Value>& values, const KernelChoice& choice) {
  KernelJoins(body, values, choice).run();
}

}  // namespace shardsim
