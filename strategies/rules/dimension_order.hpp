// The order in which FSDP rules try the dimensions of an array: largest first, and of equal ones
// the later first.
//
//   {768, 3072, 768} -> 1, 2, 0        {1024, 1024} -> 1, 0
//
// This is numpy.argsort(shape)[::-1] wherever argsort is stable: numpy before 1.25 sorts up to 16
// elements by insertion. Since then it sorts with vector instructions where the processor has them
// (AVX-512 from 1.25, AVX2 from 2.0; numpy issues 24064, 25610, 27725): a bitonic network of 8
// lanes, which is not stable. Shapes of rank 3 and less come out the same; of rank 4
//
//   {72, 72, 3, 12} -> 1, 0, 3, 2 stable      0, 1, 3, 2 by the network
//
// Both agree with numpy 2.4.6, run on AVX-512, on AVX2 and without: tests/golden/rules,
// dimension_order.json. Which of them a program sees depends on where it runs. eformer's
// auto_partition_spec sorts numpy.argsort(-shape), where of equal dimensions the first comes first,
// or whatever the network makes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/json_reader.hpp"

namespace shardsim {

enum class EqualDimensions : std::uint8_t {
  stable,  // the later first
  simd     // as numpy's bitonic network leaves them
};

// "stable" or "simd".
[[nodiscard]] EqualDimensions read_equal_dimensions(const JsonReader& json);

// numpy.argsort(values). simd: of 8 values at most, which is what one register takes; more throws
// RuleError (NotImplementedError) at `place`.
[[nodiscard]] std::vector<std::size_t> argsort(const std::vector<std::int64_t>& values,
                                               EqualDimensions ties = EqualDimensions::stable,
                                               const Place& place = {});
[[nodiscard]] std::vector<std::size_t> largest_dimensions_first(
    const std::vector<std::int64_t>& shape, EqualDimensions ties = EqualDimensions::stable,
    const Place& place = {});

}  // namespace shardsim
