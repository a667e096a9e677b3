// Intermediate shardings worth a look on the way from one mesh to another, and how to get to them.
//
// On the source, from W [fsdp, -] with fsdp=8: fewer shards, so that pieces are larger and fit
// those of the target, or shards of another dimension:
//   [fsdp:(1)4, -], [fsdp:(1)2, -], [-, -]           gather the minor part of an axis, or all of it
//   [-, fsdp], [fsdp:(1)4, fsdp:(4)2], ...           all-to-all of a minor part
// Pathways' docstring example, fsdp 8 to split 4 x replica 2, is [fsdp:(1)4, -].
//
// On the target, for W [tp, -] with dp=4, tp=2: more shards, so that every piece crosses once and
// the copies are made inside, or shards of another dimension:
//   [tp+dp, -], [tp+dp:(2)2, -], [tp, dp], ...       gathered from there
//   [-, tp]                                          all-to-all from there
//
// One dimension at a time takes more shards; any number of dimensions lose some. A dimension that
// its shards do not divide is gathered whole or not at all: chunks of ceil(size / n) do not nest.
#pragma once

#include <vector>

#include "sharding/reshard.hpp"

namespace shardsim {

// Without axes of one device, with neighbouring parts of an axis joined: two shardings that put the
// same elements on the same devices are equal.
[[nodiscard]] Sharding normalized(const Sharding& sharding);

// Both begin with the sharding itself. Shardings are normalized, distinct and free of partial sums.
[[nodiscard]] std::vector<Sharding> source_candidates(const std::vector<std::int64_t>& shape,
                                                      const Sharding& source);
[[nodiscard]] std::vector<Sharding> target_candidates(const std::vector<std::int64_t>& shape,
                                                      const Sharding& target, const Mesh& mesh);

// `reshard` for shardings that cut the same axis at different places: [x] to [x:(1)4] gathers
// x:(4)2 alone.
[[nodiscard]] std::vector<ReshardStep> reshard_parts(const std::vector<std::int64_t>& shape,
                                                     const Sharding& from, const Sharding& to);

}  // namespace shardsim
