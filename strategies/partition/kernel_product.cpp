#include "strategies/partition/kernel_product.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/index.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t aligned_numbers = 8;  // of a row: Product::aligned

using Labels = std::set<LabelId>;

Labels labels_of(const std::vector<Dim>& dims) {
  Labels labels;
  for (const Dim& dim : dims) labels.insert(dim.begin(), dim.end());
  return labels;
}

class LocalSizes {
 public:
  LocalSizes(const Workload& workload, const FactorAxes& factors)
      : workload_(workload), factors_(factors) {}

  // Of those labels for which `is_meant` holds.
  template <class IsMeant>
  [[nodiscard]] std::int64_t of(const Labels& labels, const IsMeant& is_meant) const {
    std::vector<LabelId> meant;
    std::copy_if(labels.begin(), labels.end(), std::back_inserter(meant), is_meant);
    return local_points(workload_, meant, factors_);
  }

  // Whether a row is a multiple of 8 numbers: the last label with those before it that are of the
  // same side of the product, which lie together. One number alone is a vector's, whose stride is
  // another's.
  template <class SideOf>
  [[nodiscard]] bool is_row_aligned(const std::vector<Dim>& dims, const SideOf& side_of) const {
    std::vector<LabelId> labels;
    for (const Dim& dim : dims) labels.insert(labels.end(), dim.begin(), dim.end());
    const auto is_another = [&](LabelId l) { return side_of(l) != side_of(labels.back()); };
    const auto row = std::find_if(labels.rbegin(), labels.rend(), is_another).base();
    const std::int64_t size = local_points(workload_, {row, labels.end()}, factors_);
    return size == 1 || size % aligned_numbers == 0;
  }

 private:
  const Workload& workload_;
  const FactorAxes& factors_;
};

Product einsum_product(const Op& op, const LocalSizes& sizes) {
  const Labels first = labels_of(op.operands.at(0).dims);
  const Labels second = labels_of(op.operands.at(1).dims);
  const Labels result = labels_of(op.results.at(0).dims);
  const auto in_second = [&](LabelId label) { return second.contains(label); };
  const auto in_result = [&](LabelId label) { return result.contains(label); };
  Product product;
  product.batch = sizes.of(first, [&](LabelId l) { return in_second(l) && in_result(l); });
  product.m = sizes.of(first, [&](LabelId l) { return !in_second(l) && in_result(l); });
  product.n = sizes.of(second, [&](LabelId l) { return !first.contains(l) && in_result(l); });
  product.k = sizes.of(first, [&](LabelId l) { return !in_result(l); });
  const auto side_of = [&](LabelId l) {
    return std::tuple(first.contains(l), second.contains(l), result.contains(l));
  };
  product.aligned = sizes.is_row_aligned(op.operands[0].dims, side_of) &&
                    sizes.is_row_aligned(op.operands[1].dims, side_of) &&
                    sizes.is_row_aligned(op.results[0].dims, side_of);
  return product;
}

std::int64_t part_of(std::int64_t tokens, double documents) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(tokens) / documents));
}

// Of sequences packed of documents one product for each (varlen kernels).
//
// Backward, the output's gradient stands before queries and keys. Attention sees the sequence of
// the keys under another label than the tensor itself has, which is that of the queries.
Product attention_product(const Workload& workload, const Op& op, const LocalSizes& sizes) {
  const std::size_t first = op.function == Function::attention ? 0 : 1;
  const Operand& key_operand = op.operands.at(first + 1);
  const Labels queries = labels_of(op.operands.at(first).dims);
  const Labels keys = labels_of(key_operand.dims);
  const Labels stored = labels_of(workload.tensors[at(key_operand.tensor)].dims);
  const auto is_whole = [&](LabelId label) {
    return std::find(op.whole.begin(), op.whole.end(), label) != op.whole.end();
  };
  const auto is_row = [&](LabelId l) { return !keys.contains(l) && stored.contains(l); };
  const auto is_in_head = [&](LabelId l) { return keys.contains(l) && is_whole(l); };
  Product product;
  product.m = sizes.of(queries, is_row);
  product.n = sizes.of(keys, [&](LabelId l) { return !queries.contains(l); });
  product.k = sizes.of(queries, is_in_head);
  product.batch = sizes.of(queries, [&](LabelId l) { return !is_row(l) && !is_in_head(l); });
  if (op.documents > 1) {
    product.m = part_of(product.m, op.documents);
    product.n = part_of(product.n, op.documents);
    product.batch = std::llround(static_cast<double>(product.batch) * op.documents);
  }
  // Rows of queries and keys, and of scores.
  product.aligned = product.k % aligned_numbers == 0 && product.n % aligned_numbers == 0;
  return product;
}

}  // namespace

std::int64_t local_points(const Workload& workload, const std::vector<LabelId>& labels,
                          const FactorAxes& factors) {
  std::int64_t count = 1;
  for (const LabelId label : labels) {
    const auto found = factors.find(label);
    const std::int64_t shards = found == factors.end() ? 1 : Mesh::size_of(found->second);
    count *= ceil_div(workload.labels[at(label)].size, shards);
  }
  return count;
}

double local_operations(const Workload& workload, const Op& op, const FactorAxes& factors) {
  const auto points = [&](const std::vector<LabelId>& labels) {
    return static_cast<double>(local_points(workload, labels, factors));
  };
  if (op.work.empty()) {
    return points(shardsim::factors(op)) * flops_per_point(workload, op) * op.work_fraction;
  }
  double flops = 0;
  for (const Operations& work : op.work) flops += work.flops * points(work.over);
  return flops;
}

KernelClass class_of(const Op& op) {
  const OpKind kind = kind_of(op);
  if (kind == OpKind::einsum || kind == OpKind::chunked_scan) return KernelClass::matmul;
  if (kind == OpKind::attention) {
    return op.function == Function::attention ? KernelClass::attention
                                              : KernelClass::attention_backward;
  }
  return KernelClass::memory;
}

std::optional<Product> product_of(const Workload& workload, const Op& op,
                                  const FactorAxes& factors) {
  const LocalSizes sizes(workload, factors);
  if (kind_of(op) == OpKind::einsum) return einsum_product(op, sizes);
  if (kind_of(op) == OpKind::attention) return attention_product(workload, op, sizes);
  return std::nullopt;
}

}  // namespace shardsim
