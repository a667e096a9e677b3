#include "sim/network/phases.hpp"

#include <algorithm>
#include <cassert>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

std::int64_t chunks_of(Bytes payload, Bytes chunk) {
  return chunk == Bytes(0) ? 1
                           : std::max<std::int64_t>(1, ceil_div(payload.count(), chunk.count()));
}

}  // namespace

std::int64_t Messages::count(Bytes payload) const { return steps * chunks_of(payload, chunk); }

Bytes Messages::bytes(Bytes payload) const {
  assert(blocks <= parts && parts < std::int64_t{1} << 31);
  const std::int64_t whole = payload.count() / parts * blocks;  // products stay below 2^62
  const std::int64_t rest = ceil_div(payload.count() % parts * blocks, parts);
  return Bytes(ceil_div(whole + rest, chunks_of(payload, chunk)));
}

Targets targets_of(const Shape& shape, const Target& target) {
  if (const auto* listed = std::get_if<Targets>(&target)) return *listed;
  const Shift shift = std::get<Shift>(target);
  const std::int64_t size = shape[shift.axis];
  assert(0 < shift.by && shift.by < size);
  std::int64_t stride = 1;
  for (std::size_t axis = shift.axis + 1; axis < shape.size(); ++axis) stride *= shape[axis];
  std::int64_t ranks = 1;
  for (const std::int64_t length : shape) ranks *= length;
  Targets targets;
  targets.reserve(at(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t coordinate = rank / stride % size;
    const std::int64_t moved = (coordinate + shift.by) % size;
    targets.push_back(static_cast<std::int32_t>(rank + (moved - coordinate) * stride));
  }
  return targets;
}

}  // namespace shardsim::network
