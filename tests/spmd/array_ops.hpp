// The ops of one device on small arrays of integers, exactly.
//
// `unknown` is padding that nobody may rely on: it survives moves, and whatever is computed with it
// is unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "spmd/tiling/tiling.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::test {

inline constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

struct Array {
  spmd::Shape shape;
  std::vector<std::int64_t> elements;  // row-major
};

// An array of which every element is asked for by its index.
[[nodiscard]] Array made_of(const spmd::Shape& shape,
                            const std::function<std::int64_t(const spmd::Dims&)>& element);
[[nodiscard]] std::int64_t element_of(const Array& array, const spmd::Dims& index);
[[nodiscard]] std::size_t offset_of(const spmd::Shape& shape, const spmd::Dims& index);
[[nodiscard]] std::int64_t sum_of(std::int64_t a, std::int64_t b);

using LocalOperand = std::function<const Array&(std::size_t)>;
// The result of an op on one device. Throws InputError for ops that are not known here.
[[nodiscard]] Array evaluate_local(const stablehlo::OpView& view, const LocalOperand& value,
                                   int device);

}  // namespace shardsim::test
