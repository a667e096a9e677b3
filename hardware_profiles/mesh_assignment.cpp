#include "hardware_profiles/mesh_assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <tuple>

#include "hardware_profiles/machine.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::size_t most_dimensions_at_once = 3;  // that jax gives to an axis whole

MeshAssignment nothing_assigned(const Sizes& physical, const Sizes& logical) {
  return MeshAssignment(physical.size(), Sizes(logical.size(), 1));
}

// The first set of `count` dimensions from `from` on, in lexicographic order, whose free sizes
// multiply to `wanted`. A dimension that is taken has the free size 0.
bool find_set(const Sizes& free, std::size_t from, std::size_t count, std::int64_t wanted,
              std::vector<std::size_t>& set) {
  if (count == 0) return wanted == 1;
  for (std::size_t p = from; p + count <= free.size(); ++p) {
    if (free[p] == 0 || wanted % free[p] != 0) continue;
    set.push_back(p);
    if (find_set(free, p + 1, count - 1, wanted / free[p], set)) return true;
    set.pop_back();
  }
  return false;
}

// How jax ranks the parts that one logical axis may take; greater is better.
std::tuple<std::int64_t, std::int64_t, std::int64_t, Sizes> rank(const Sizes& parts,
                                                                 const Sizes& physical,
                                                                 const Sizes& used) {
  std::int64_t whole_size = 1;
  std::int64_t whole_count = 0;
  std::int64_t shared_size = 1;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const bool whole = parts[p] == physical[p];
    if (whole) whole_size *= parts[p];
    if (whole && parts[p] > 1) ++whole_count;
    if (used[p] > 1) shared_size *= parts[p];
  }
  return {whole_size, whole_count, shared_size, parts};
}

// Completes `parts` in every way that multiplies to `wanted` and keeps the best in `best`.
void try_parts(const Sizes& physical, const Sizes& used, std::int64_t wanted, Sizes& parts,
               Sizes& best) {
  const std::size_t p = parts.size();
  if (p == physical.size()) {
    if (wanted != 1) return;
    if (best.empty() || rank(parts, physical, used) > rank(best, physical, used)) best = parts;
    return;
  }
  const std::int64_t left = physical[p] / used[p];
  for (std::int64_t part = 1; part <= left; ++part) {
    if (left % part != 0 || wanted % part != 0) continue;
    parts.push_back(part);
    try_parts(physical, used, wanted / part, parts, best);
    parts.pop_back();
  }
}

std::int64_t product(const Sizes& sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

}  // namespace

std::optional<MeshAssignment> assign_whole_axes(const Sizes& physical, const Sizes& logical) {
  MeshAssignment assignment = nothing_assigned(physical, logical);
  Sizes free = physical;
  for (std::size_t l = logical.size(); l-- > 0;) {
    std::vector<std::size_t> set;
    bool found = false;
    const std::size_t most = std::min(physical.size(), most_dimensions_at_once);
    for (std::size_t count = most; count > 0 && !found; --count) {
      found = find_set(free, 0, count, logical[l], set);
    }
    if (!found && logical[l] > 1) return std::nullopt;
    for (const std::size_t p : set) {
      assignment[p][l] = physical[p];
      free[p] = 0;
    }
  }
  return assignment;
}

MeshAssignment assign_split_axes(const Sizes& physical, const Sizes& logical) {
  assert(product(physical) == product(logical));
  MeshAssignment assignment = nothing_assigned(physical, logical);
  Sizes used(physical.size(), 1);
  for (std::size_t l = logical.size(); l-- > 0;) {
    Sizes parts;
    Sizes best;
    try_parts(physical, used, logical[l], parts, best);
    assert(!best.empty());
    for (std::size_t p = 0; p < physical.size(); ++p) {
      assignment[p][l] = best[p];
      used[p] *= best[p];
    }
  }
  return assignment;
}

std::vector<std::vector<TorusSpan>> assign_mesh(const TorusShape& torus, const Sizes& logical,
                                                const Place& place) {
  const Sizes physical = torus.device_sizes();
  std::int64_t left = product(physical);
  for (const std::int64_t size : logical) left = size > 0 && left % size == 0 ? left / size : 0;
  if (left != 1) {
    throw InputError(place,
                     fmt::format("mesh {} does not multiply to the {} devices of topology {}",
                                 shape_text(logical), product(physical), shape_text(torus.sizes)));
  }
  const auto whole = assign_whole_axes(physical, logical);
  const MeshAssignment assignment = whole ? *whole : assign_split_axes(physical, logical);
  // Along one dimension the last axis has the neighbouring devices: it is the innermost digit.
  // Along one axis the first dimension is the most significant digit.
  std::vector<std::vector<TorusSpan>> spans(logical.size());
  for (std::size_t p = 0; p < physical.size(); ++p) {
    std::int64_t stride = 1;
    for (std::size_t l = logical.size(); l-- > 0;) {
      const std::int64_t size = assignment[p][l];
      if (size > 1) spans[l].push_back({static_cast<int>(p), size, stride});
      stride *= size;
    }
  }
  return spans;
}

}  // namespace shardsim
