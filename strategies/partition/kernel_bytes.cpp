#include "strategies/partition/kernel_bytes.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "strategies/partition/kernel_product.hpp"

namespace shardsim {
namespace {

class MovedBytes {
 public:
  MovedBytes(const Workload& workload, const std::vector<Value>& values, const Op& op,
             const FactorAxes& factors, const Item& item)
      : workload_(workload), values_(values), op_(op), factors_(factors), item_(item) {}

  [[nodiscard]] Bytes run() const {
    if (op_.function == Function::append) return appended();
    Bytes bytes{0};
    for (std::size_t i = 0; i < item_.operands.size(); ++i) {
      if (is_read(i) && !is_part_of_another(item_.operands[i])) bytes += read(i);
    }
    for (const ValueId result : item_.results) bytes += value(result).bytes;
    return bytes;
  }

 private:
  [[nodiscard]] const Value& value(ValueId id) const { return values_[at(id)]; }

  [[nodiscard]] std::int64_t elements(ValueId id) const {
    return 8 * value(id).bytes.count() / bits_of(value(id).dtype);
  }

  [[nodiscard]] bool is_read(std::size_t operand) const {
    return std::none_of(op_.in_place.begin(), op_.in_place.end(), [&](const InPlace& place) {
      return !place.is_read && at(place.operand) == operand;
    });
  }

  [[nodiscard]] bool is_part_of_another(ValueId operand) const {
    for (ValueId whole = value(operand).storage; whole != no_value; whole = value(whole).storage) {
      if (std::count(item_.operands.begin(), item_.operands.end(), whole) > 0) return true;
    }
    return false;
  }

  [[nodiscard]] Bytes read(std::size_t operand) const {
    const Bytes whole = value(item_.operands[operand]).bytes;
    // A look-up reads a row of the table for each that it makes.
    if (op_.function == Function::embedding && operand == 1) {
      const Value& table = value(item_.operands[operand]);
      const std::int64_t rows = elements(item_.results.front()) * bits_of(table.dtype) / 8;
      return std::min(whole, Bytes(rows));
    }
    if (!op_.routing || operand == 0) return whole;
    return Bytes(std::llround(visited() * static_cast<double>(whole.count())));
  }

  // Of all experts, by the tokens whose rows are here.
  [[nodiscard]] double visited() const {
    std::vector<LabelId> labels;
    for (const Dim& dim : op_.operands.front().dims) {
      for (const LabelId label : dim) {
        const LabelRole role = workload_.labels[at(label)].role;
        if (role != LabelRole::experts && role != LabelRole::width) labels.push_back(label);
      }
    }
    const auto all = static_cast<double>(local_points(workload_, labels, {}));
    const auto here = static_cast<double>(local_points(workload_, labels, factors_));
    return 1 - std::pow(1 - op_.routing->share, op_.routing->tokens * here / all);
  }

  [[nodiscard]] Bytes appended() const {
    Bytes rows{0};
    std::int64_t given = 0;
    for (std::size_t i = 1; i < item_.operands.size(); ++i) {
      rows += value(item_.operands[i]).bytes;
      given += elements(item_.operands[i]);
    }
    const ValueId cache = item_.operands.front();
    const std::int64_t kept = std::min(given, elements(cache));
    if (kept < given) {
      const double share = static_cast<double>(kept) / static_cast<double>(given);
      rows = Bytes(std::llround(share * static_cast<double>(rows.count())));
    }
    return rows + Bytes((kept * bits_of(value(cache).dtype) + 7) / 8);
  }

  const Workload& workload_;
  const std::vector<Value>& values_;
  const Op& op_;
  const FactorAxes& factors_;
  const Item& item_;
};

}  // namespace

Bytes moved_bytes(const Workload& workload, const std::vector<Value>& values, const Op& op,
                  const FactorAxes& factors, const Item& item) {
  return MovedBytes(workload, values, op, factors, item).run();
}

}  // namespace shardsim
