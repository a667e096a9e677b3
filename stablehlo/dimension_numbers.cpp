#include "stablehlo/dimension_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/index.hpp"
#include "stablehlo/rules.hpp"

namespace shardsim::stablehlo {
namespace {

std::vector<int> all_checked(const OpView& op, const Shape& shape,
                             const std::vector<std::int64_t>& values) {
  std::vector<int> result;
  for (const std::int64_t value : values) {
    const int dim = checked(op, shape, value);
    if (std::find(result.begin(), result.end(), dim) != result.end()) {
      op.fail(fmt::format("dimension {} given twice", dim));
    }
    result.push_back(dim);
  }
  return result;
}

// [0, 2] x [1, 2] as two lists of one length, each of dimensions of its operand.
void read_pair(const OpView& op, const Attribute* pair, std::vector<int>& lhs,
               std::vector<int>& rhs) {
  if (pair == nullptr) return;
  if (pair->kind != Attribute::Kind::list || pair->items.size() != 2) {
    op.fail("expected [...] x [...]");
  }
  const std::string& file = op.module().file;
  lhs = all_checked(op, op.operand(0), integers_of(pair->items[0], file, op.op().line));
  rhs = all_checked(op, op.operand(1), integers_of(pair->items[1], file, op.op().line));
}

void expect_equal_sizes(const OpView& op, const std::vector<int>& lhs,
                        const std::vector<int>& rhs) {
  if (lhs.size() != rhs.size()) op.fail("operands pair up different numbers of dimensions");
  for (std::size_t i = 0; i < lhs.size(); ++i) {
    if (op.size(op.operand(0), lhs[i]) != op.size(op.operand(1), rhs[i])) {
      op.fail(fmt::format("dimensions {} and {} of the operands differ in size", lhs[i], rhs[i]));
    }
  }
}

// [b, 0, 1, f]: the positions of two letters and of the spatial numbers.
void read_layout(const OpView& op, const Attribute& layout, std::string_view first, int& first_dim,
                 std::string_view second, int& second_dim, std::vector<int>& spatial) {
  const std::size_t rank = layout.items.size();
  if (layout.kind != Attribute::Kind::list || rank < 2) op.fail("expected a list of dimensions");
  first_dim = second_dim = RuleBuilder::no_dimension;
  spatial.assign(rank - 2, RuleBuilder::no_dimension);
  for (std::size_t i = 0; i < rank; ++i) {
    const Attribute& item = layout.items[i];
    const int dim = static_cast<int>(i);
    int* target = nullptr;
    if (item.kind == Attribute::Kind::word) {
      target = item.text == first ? &first_dim : item.text == second ? &second_dim : nullptr;
    } else if (item.kind == Attribute::Kind::integer && item.integer >= 0 &&
               static_cast<std::size_t>(item.integer) < spatial.size()) {
      target = &spatial[at(item.integer)];
    }
    if (target == nullptr || *target != RuleBuilder::no_dimension) {
      op.fail(fmt::format("dimension \"{}\" is unknown or given twice", item.text));
    }
    *target = dim;
  }
}

}  // namespace

DotDimensions dot_dimensions(const OpView& op) {
  op.expect_counts(2, 1);
  DotDimensions result;
  if (op.attribute({"dot_dimension_numbers"}) != nullptr) {
    const AttributeList numbers = op.fields({"dot_dimension_numbers"});
    const auto read = [&](const Shape& shape, std::string_view name) {
      return all_checked(op, shape, op.integers(numbers, name));
    };
    result.lhs_batching = read(op.operand(0), "lhs_batching_dimensions");
    result.rhs_batching = read(op.operand(1), "rhs_batching_dimensions");
    result.lhs_contracting = read(op.operand(0), "lhs_contracting_dimensions");
    result.rhs_contracting = read(op.operand(1), "rhs_contracting_dimensions");
  } else {
    read_pair(op, op.attribute({"batching_dims"}), result.lhs_batching, result.rhs_batching);
    read_pair(op, op.attribute({"contracting_dims"}), result.lhs_contracting,
              result.rhs_contracting);
  }
  expect_equal_sizes(op, result.lhs_batching, result.rhs_batching);
  expect_equal_sizes(op, result.lhs_contracting, result.rhs_contracting);
  return result;
}

DotSizes dot_sizes(const OpView& op) {
  DotDimensions dims;
  if (op.op().name == "stablehlo.dot_general") {
    dims = dot_dimensions(op);
  } else if (!op.operand(0).empty()) {
    dims.lhs_contracting = {static_cast<int>(op.operand(0).size()) - 1};
  }
  const auto extent = [](const Shape& shape, const std::vector<int>& listed) {
    std::int64_t count = 1;
    for (const int dim : listed) count *= shape[at(dim)];
    return count;
  };
  const std::int64_t batch = extent(op.operand(0), dims.lhs_batching);
  const std::int64_t k = extent(op.operand(0), dims.lhs_contracting);
  const auto rest = [&](const Shape& shape) {
    const std::int64_t all =
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    return batch * k == 0 ? 0 : all / (batch * k);
  };
  return {batch, rest(op.operand(0)), rest(op.operand(1)), k};
}

ConvolutionDimensions convolution_dimensions(const OpView& op) {
  op.expect_counts(2, 1);
  const Attribute* layouts = op.attribute({"dim_numbers"});
  Attribute parsed;
  if (layouts == nullptr) {
    const Attribute* numbers = op.attribute({"dimension_numbers"});
    if (numbers == nullptr) op.fail("attribute \"dim_numbers\" is missing");
    Scanner body(numbers->text, op.module().file, op.op().line);
    parsed = parse_clause_value(body);
    layouts = &parsed;
  }
  if (layouts->items.size() != 3) op.fail("expected [...]x[...]->[...]");
  ConvolutionDimensions result;
  read_layout(op, layouts->items[0], "b", result.input_batch, "f", result.input_feature,
              result.input_spatial);
  read_layout(op, layouts->items[1], "i", result.kernel_input, "o", result.kernel_output,
              result.kernel_spatial);
  read_layout(op, layouts->items[2], "b", result.output_batch, "f", result.output_feature,
              result.output_spatial);
  const std::size_t rank = layouts->items[0].items.size();
  if (op.operand(0).size() != rank || op.operand(1).size() != rank || op.result(0).size() != rank ||
      layouts->items[1].items.size() != rank || layouts->items[2].items.size() != rank) {
    op.fail("dimension numbers do not fit the operands");
  }
  result.feature_groups = op.integer({"feature_group_count"}, 1);
  result.batch_groups = op.integer({"batch_group_count"}, 1);
  constexpr std::int64_t most_groups = std::int64_t{1} << 31;
  for (const std::int64_t groups : {result.feature_groups, result.batch_groups}) {
    if (groups < 1 || groups > most_groups) op.fail("unlikely number of groups");
  }
  return result;
}

IndexedDimensions indexed_dimensions(const OpView& op) {
  IndexedDimensions read;
  const bool is_scatter = op.op().name == "stablehlo.scatter";
  const std::size_t inputs = is_scatter ? op.op().operands.size() / 2 : 1;
  op.expect_counts(is_scatter ? 2 * inputs + 1 : 2, inputs);
  if (inputs == 0) op.fail("nothing to scatter into");
  read.is_scatter = is_scatter;
  read.inputs = inputs;
  read.input = op.operand(0);
  read.indices = op.operand(inputs);
  read.slices = is_scatter ? op.operand(inputs + 1) : op.result(0);
  const AttributeList numbers =
      op.fields({is_scatter ? "scatter_dimension_numbers" : "dimension_numbers"});
  const auto dims = [&](std::string_view of_gather, std::string_view of_scatter) {
    return op.integers(numbers, is_scatter ? of_scatter : of_gather);
  };
  read.window = dims("offset_dims", "update_window_dims");
  read.collapsed = dims("collapsed_slice_dims", "inserted_window_dims");
  read.input_batching = dims("operand_batching_dims", "input_batching_dims");
  read.indices_batching = dims("start_indices_batching_dims", "scatter_indices_batching_dims");
  read.index_map = dims("start_index_map", "scatter_dims_to_operand_dims");
  const std::vector<std::int64_t> vector_dim = op.integers(numbers, "index_vector_dim");
  if (!vector_dim.empty()) read.vector_dim = vector_dim.front();  // not printed when it is 0
  return read;
}

std::int64_t sorted_dim(const OpView& op) {
  const auto rank = static_cast<std::int64_t>(op.operand(0).size());
  const std::int64_t written = op.integer({"dimension"}, -1);
  return written < 0 ? written + rank : written;
}

}  // namespace shardsim::stablehlo
