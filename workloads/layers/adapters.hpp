// Low-rank adapters (LoRA, arXiv:2106.09685) beside a projection of a block that several layers
// share: x W + (x A) B, A [rank, in], B [out, rank]. The block holds a pair of matrices for each of
// its layers; a layer reads its own.
//
// Example: Zamba2 1.2B, q_proj [4096, 4096] with rank 128: 2 * 128 * 4096 parameters a layer; kept
// besides x is x A, 2T * 128 bytes.
#pragma once

#include <string_view>
#include <vector>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct Adapters {
  std::int64_t rank = 0;              // 0: none
  std::vector<std::int64_t> pairs{};  // the numbers of the block's pairs in the list of modules
  std::int64_t used = 0;              // this layer's

  bool operator==(const Adapters&) const = default;
};

// `projected` and what the adapter makes of x; itself where there is none.
Value add_adapter(Eager& e, const Adapters& adapters, std::string_view list, const Value& x,
                  const Value& projected);

}  // namespace shardsim::models
