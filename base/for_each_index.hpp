// Calls function(i) for every i below `count`, on as many threads as the machine has, this one
// among them. What is called writes to places of its own, so that the outcome is the same at any
// number of threads.
//
//   std::vector<double> squares(n);
//   for_each_index(n, [&](std::size_t i) { squares[i] = values[i] * values[i]; });
//
// Of calls that throw, the exception of the smallest i is thrown when all are done.
#pragma once

#include <cstddef>
#include <functional>

namespace shardsim {

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& function);

}  // namespace shardsim
