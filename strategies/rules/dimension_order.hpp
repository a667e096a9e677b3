// The order in which FSDP rules try the dimensions of an array: largest first, and of equal ones
// the later first.
//
//   {768, 3072, 768} -> 1, 2, 0        {1024, 1024} -> 1, 0
//
// This is numpy.argsort(shape)[::-1] wherever argsort is stable: numpy before 1.25 sorts up to 16
// elements by insertion. Later versions may use vector instructions that are not stable (numpy
// issues 24064, 25610, 27725); shapes of rank 3 and less come out the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardsim {

[[nodiscard]] std::vector<std::size_t> largest_dimensions_first(
    const std::vector<std::int64_t>& shape);

}  // namespace shardsim
