#include "array_ops.hpp"

#include <algorithm>
#include <string>

#include "base/index.hpp"
#include "spmd/ops/dot_dims.hpp"
#include "spmd/propagation/constants.hpp"

namespace shardsim::test {
namespace {

using spmd::Dims;
using spmd::Shape;
using stablehlo::OpView;
using Operand = LocalOperand;

void each_index(const Shape& shape, const std::function<void(const Dims&)>& visit) {
  if (spmd::product(shape) == 0) return;
  Dims index(shape.size(), 0);
  for (;;) {
    visit(index);
    std::size_t dim = shape.size();
    while (dim-- > 0) {
      if (++index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
    if (dim == static_cast<std::size_t>(-1)) return;
  }
}

std::int64_t scalar_of(const Array& array) { return array.elements.front(); }

std::int64_t combine(const OpView& op, std::int64_t a, std::int64_t b) {
  const std::string& name = op.op().name;
  if (name == "stablehlo.add") return sum_of(a, b);
  if (name == "stablehlo.multiply") return a == unknown || b == unknown ? unknown : a * b;
  if (name == "stablehlo.subtract") return a - b;
  if (name == "stablehlo.and") return a & b;
  if (name == "stablehlo.compare") {
    const std::string& direction = op.attribute({"comparison_direction"})->text;
    if (direction == "LT") return a < b ? 1 : 0;
    if (direction == "GE") return a >= b ? 1 : 0;
    if (direction == "EQ") return a == b ? 1 : 0;
    if (direction == "NE") return a != b ? 1 : 0;
  }
  op.fail("not evaluated");
}

Array padded(const OpView& op, const Shape& shape, const Operand& value) {
  const Dims low = op.integers({"low"});
  const Dims interior = op.integers({"interior"});
  return made_of(shape, [&](Dims index) {
    for (std::size_t i = 0; i < index.size(); ++i) {
      index[i] -= low[i];
      const bool is_padding = index[i] < 0 || index[i] % (interior[i] + 1) != 0 ||
                              index[i] / (interior[i] + 1) >= value(0).shape[i];
      if (is_padding) return scalar_of(value(1));
      index[i] /= interior[i] + 1;
    }
    return element_of(value(0), index);
  });
}

Array joined(const OpView& op, const Shape& shape, const Operand& value) {
  const std::int64_t dim = op.integer({"dim"}, 0);
  return made_of(shape, [&](Dims index) {
    std::size_t piece = 0;
    while (index[at(dim)] >= value(piece).shape[at(dim)]) {
      index[at(dim)] -= value(piece).shape[at(dim)];
      ++piece;
    }
    return element_of(value(piece), index);
  });
}

// Starts are clamped so that the slice fits, as StableHLO says.
Array at_dynamic_place(const OpView& op, const Shape& shape, const Operand& value) {
  const bool updates = op.op().name == "stablehlo.dynamic_update_slice";
  const Shape& slice = updates ? value(1).shape : shape;
  Dims starts;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t start = scalar_of(value(i + (updates ? 2 : 1)));
    starts.push_back(std::clamp<std::int64_t>(start, 0, value(0).shape[i] - slice[i]));
  }
  return made_of(shape, [&](const Dims& index) {
    Dims source = index;
    bool inside = true;
    for (std::size_t i = 0; i < index.size(); ++i) {
      source[i] += updates ? -starts[i] : starts[i];
      inside = inside && (!updates || (source[i] >= 0 && source[i] < slice[i]));
    }
    return element_of(value(updates && inside ? 1 : 0), updates && !inside ? index : source);
  });
}

// Sums over all indices of the contracting dimensions.
Array dot(const OpView& op, const Shape& shape, const Operand& value) {
  const spmd::DotDims dims = spmd::dot_dims(op);
  Shape summed;
  for (const spmd::DotDim& dim : dims.contracting) summed.push_back(value(0).shape[at(dim.lhs)]);
  return made_of(shape, [&](const Dims& index) {
    Dims left(dims.lhs_rank);
    Dims right(dims.rhs_rank);
    for (const spmd::DotDim& dim : dims.batch) {
      left[at(dim.lhs)] = right[at(dim.rhs)] = index[at(dim.output)];
    }
    for (const spmd::DotDim& dim : dims.lhs_free) left[at(dim.lhs)] = index[at(dim.output)];
    for (const spmd::DotDim& dim : dims.rhs_free) right[at(dim.rhs)] = index[at(dim.output)];
    std::int64_t sum = 0;
    each_index(summed, [&](const Dims& place) {
      for (std::size_t i = 0; i < place.size(); ++i) {
        left[at(dims.contracting[i].lhs)] = right[at(dims.contracting[i].rhs)] = place[i];
      }
      const std::int64_t a = element_of(value(0), left);
      const std::int64_t b = element_of(value(1), right);
      sum = sum_of(sum, a == unknown || b == unknown ? unknown : a * b);
    });
    return sum;
  });
}

Array reduced(const OpView& op, const Shape& shape, const Operand& value) {
  const stablehlo::Attribute* applies = op.attribute({"applies"});
  if (applies == nullptr || applies->text != "stablehlo.add") op.fail("not evaluated");
  const Dims dims = op.integers({"dimensions"});
  Array result = made_of(shape, [&](const Dims&) { return scalar_of(value(1)); });
  each_index(value(0).shape, [&](const Dims& index) {
    Dims kept;
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (!spmd::holds(dims, static_cast<std::int64_t>(i))) kept.push_back(index[i]);
    }
    std::int64_t& sum = result.elements[offset_of(shape, kept)];
    sum = sum_of(sum, element_of(value(0), index));
  });
  return result;
}

Array moved(const OpView& op, const Shape& shape, const Operand& value) {
  const std::string& name = op.op().name;
  if (name == "stablehlo.broadcast_in_dim") {
    const Dims dims = op.integers({"dims"});
    return made_of(shape, [&](const Dims& index) {
      Dims source;
      for (std::size_t i = 0; i < dims.size(); ++i) {
        source.push_back(value(0).shape[i] == 1 ? 0 : index[at(dims[i])]);
      }
      return element_of(value(0), source);
    });
  }
  if (name == "stablehlo.transpose") {
    const Dims dims = op.integers({"dims"});
    return made_of(shape, [&](const Dims& index) {
      Dims source(index.size());
      for (std::size_t i = 0; i < dims.size(); ++i) source[at(dims[i])] = index[i];
      return element_of(value(0), source);
    });
  }
  if (name == "stablehlo.reverse") {
    const Dims dims = op.integers({"dims"});
    return made_of(shape, [&](Dims index) {
      for (const std::int64_t dim : dims) index[at(dim)] = shape[at(dim)] - 1 - index[at(dim)];
      return element_of(value(0), index);
    });
  }
  if (name == "stablehlo.slice") {
    const Dims starts = op.integers({"start_indices"});
    const Dims strides = op.integers({"strides"});
    return made_of(shape, [&](Dims index) {
      for (std::size_t i = 0; i < index.size(); ++i) {
        index[i] = starts[i] + index[i] * strides[i];
      }
      return element_of(value(0), index);
    });
  }
  if (name == "stablehlo.dot_general") return dot(op, shape, value);
  if (name == "stablehlo.reduce") return reduced(op, shape, value);
  if (name == "stablehlo.pad") return padded(op, shape, value);
  if (name == "stablehlo.concatenate") return joined(op, shape, value);
  if (name == "stablehlo.dynamic_slice" || name == "stablehlo.dynamic_update_slice") {
    return at_dynamic_place(op, shape, value);
  }
  op.fail("not evaluated");
}

}  // namespace

std::size_t offset_of(const Shape& shape, const Dims& index) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) result = result * shape[i] + index[i];
  return at(result);
}

Array made_of(const Shape& shape, const std::function<std::int64_t(const Dims&)>& element) {
  Array array{shape, {}};
  array.elements.reserve(at(spmd::product(shape)));
  each_index(shape, [&](const Dims& index) { array.elements.push_back(element(index)); });
  return array;
}

std::int64_t element_of(const Array& array, const Dims& index) {
  return array.elements[offset_of(array.shape, index)];
}

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return a == unknown || b == unknown ? unknown : a + b;
}
Array evaluate_local(const OpView& view, const LocalOperand& value, int device) {
  const stablehlo::Op& op = view.op();
  const Shape& shape = view.result(0);
  if (op.name == "stablehlo.constant" || op.name == "sdy.constant") {
    const auto literal = static_cast<std::int64_t>(std::stod(*spmd::splat_text(op)));
    return made_of(shape, [&](const Dims&) { return literal; });
  }
  if (op.name == "spmd.offset") {
    return {shape, {view.attribute({"by_device"})->items.at(at(device)).integer}};
  }
  if (op.name == "stablehlo.iota") {
    const std::int64_t dim = view.integer({"dim"}, 0);
    return made_of(shape, [&](const Dims& index) { return index[at(dim)]; });
  }
  if (op.name == "stablehlo.reshape" || op.name == "spmd.copy" ||
      op.name == "sdy.sharding_constraint" || op.name == "stablehlo.convert") {
    return {shape, value(0).elements};
  }
  if (op.name == "stablehlo.select") {
    return made_of(shape, [&](const Dims& index) {
      return element_of(value(0), index) != 0 ? element_of(value(1), index)
                                              : element_of(value(2), index);
    });
  }
  if (op.operands.size() == 2 && view.operand(0) == view.operand(1) &&
      op.name != "stablehlo.concatenate" && op.name != "stablehlo.pad" &&
      op.name != "stablehlo.dot_general" && op.name != "stablehlo.reduce") {
    return made_of(shape, [&](const Dims& index) {
      return combine(view, element_of(value(0), index), element_of(value(1), index));
    });
  }
  return moved(view, shape, value);
}

}  // namespace shardsim::test
