#include "strategies/compile/expert_biases.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Bytes a number of 16 bits, read and written.
constexpr double clamping = 8;
constexpr double clamping_backward = 10;
constexpr double biasing = 12;
constexpr double biasing_backward = 14;
constexpr double biasing_by_fp32 = 28;
constexpr double biasing_backward_by_fp32 = 38;

bool multiplies_experts(const Item& item) {
  return item.kind == TaskKind::kernel && item.kernel.kernel_class == KernelClass::matmul &&
         item.kernel.op.starts_with("grouped");
}

bool moves_rows(const Item& item) {
  return item.kind == TaskKind::collective && item.collective.kind == CollectiveKind::all_to_all;
}

class ExpertBiases {
 public:
  ExpertBiases(BlockPass& pass, std::vector<Value>& values)
      : body_(pass.body), pass_(pass), values_(values) {}

  void run() {
    const bool has_any = std::any_of(body_.begin(), body_.end(), [&](const Item& item) {
      return adds_bias(item) || makes_bias_gradient(item);
    });
    if (!has_any) return;
    const bool is_wide = std::any_of(body_.begin(), body_.end(), [](const Item& item) {
      return moves_rows(item) && item.collective.dtype == DType::f32;
    });
    std::vector<Item> listed;
    std::vector<std::size_t> place;  // in the new body, of every item of the old one
    for (std::size_t i = 0; i < body_.size(); ++i) {
      if (is_clamped_gradient(i)) {
        listed.push_back(passes(i, gradient_of(body_[i]), " clamp", clamping_backward));
      }
      place.push_back(listed.size());
      listed.push_back(body_[i]);
      if (adds_bias(body_[i])) {
        const ValueId rows = body_[i].results.front();
        listed.push_back(is_last(i) ? passes(i, rows, " bias", is_wide ? biasing_by_fp32 : biasing)
                                    : passes(i, rows, " clamp", clamping));
      } else if (makes_bias_gradient(body_[i]) && is_of_last(i)) {
        const double bytes = is_wide ? biasing_backward_by_fp32 : biasing_backward;
        listed.back().kernel.bytes = bytes_of(body_[i].operands.front(), bytes);
      }
    }
    for (Write& write : pass_.writes) {
      write.after = write.after == 0 ? 0 : place[write.after - 1] + 1;
    }
    body_ = std::move(listed);
  }

 private:
  [[nodiscard]] bool is_weight(ValueId id) const {
    const BufferCategory category = values_[at(id)].category;
    return category == BufferCategory::parameters ||
           category == BufferCategory::gathered_parameters;
  }

  // Forward, or once more in a backward pass: it reads matrices and biases.
  [[nodiscard]] bool adds_bias(const Item& item) const {
    return multiplies_experts(item) &&
           std::count_if(item.operands.begin(), item.operands.end(),
                         [&](ValueId operand) { return is_weight(operand); }) > 1;
  }

  [[nodiscard]] bool makes_bias_gradient(const Item& item) const {
    return item.kind == TaskKind::kernel && item.kernel.op == "sum" &&
           std::any_of(body_.begin(), body_.end(), [&](const Item& product) {
             return multiplies_experts(product) && product.name == item.name;
           });
  }

  // No other reads a bias before rows return.
  [[nodiscard]] bool is_last(std::size_t product) const {
    for (std::size_t i = product + 1; i < body_.size() && !moves_rows(body_[i]); ++i) {
      if (adds_bias(body_[i])) return false;
    }
    return true;
  }

  // Backward what was last comes first: no other gradient of a bias since rows have come.
  [[nodiscard]] bool is_of_last(std::size_t sum) const {
    for (std::size_t i = sum; i > 0 && !moves_rows(body_[i - 1]); --i) {
      if (makes_bias_gradient(body_[i - 1])) return false;
    }
    return true;
  }

  // The first product of a gradient that went through the clamps.
  [[nodiscard]] bool is_clamped_gradient(std::size_t product) const {
    const Item& item = body_[product];
    if (!multiplies_experts(item) || adds_bias(item)) return false;
    const auto is_its_own = [&](const Item& other) { return other.name == item.name; };
    const auto before = body_.begin() + static_cast<std::ptrdiff_t>(product);
    const bool is_first = std::none_of(body_.begin(), before, [&](const Item& other) {
      return multiplies_experts(other) && !adds_bias(other) && is_its_own(other);
    });
    if (!is_first) return false;
    for (std::size_t i = product; i < body_.size(); ++i) {
      if (makes_bias_gradient(body_[i]) && is_its_own(body_[i])) return !is_of_last(i);
    }
    return false;
  }

  [[nodiscard]] ValueId gradient_of(const Item& product) const {
    return *std::find_if(product.operands.begin(), product.operands.end(),
                         [&](ValueId operand) { return !is_weight(operand); });
  }

  [[nodiscard]] Bytes bytes_of(ValueId rows, double bytes_a_number) const {
    const Value& value = values_[at(rows)];
    const double numbers =
        static_cast<double>(value.bytes.count()) * 8 / static_cast<double>(bits_of(value.dtype));
    return Bytes(static_cast<std::int64_t>(bytes_a_number * numbers));
  }

  [[nodiscard]] Item passes(std::size_t product, ValueId rows, const std::string& what,
                            double bytes_a_number) const {
    Item item;
    item.name = body_[product].name + what;
    item.recompute = body_[product].recompute;
    item.kernel = {"copy", KernelClass::memory, values_[at(rows)].dtype, Flops(0),
                   bytes_of(rows, bytes_a_number)};
    item.kernel.implementation = "transformer-engine";
    item.operands = {rows};
    return item;
  }

  std::vector<Item>& body_;
  BlockPass& pass_;
  std::vector<Value>& values_;
};

}  // namespace

void add_expert_biases(BlockPass& pass, std::vector<Value>& values) {
  ExpertBiases(pass, values).run();
}

}  // namespace shardsim
