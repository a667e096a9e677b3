#include "sharding/cross_mesh_candidates.hpp"

#include <algorithm>
#include <set>

namespace shardsim {
namespace {

// 8: 1, 2, 4, 8.
std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  for (std::int64_t i = 1; i * i <= n; ++i) {
    if (n % i != 0) continue;
    small.push_back(i);
    if (i * i != n) large.push_back(n / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

AxisRef major_part(const AxisRef& axis, std::int64_t size) {
  return {axis.axis, axis.pre_size, size};
}
AxisRef minor_part(const AxisRef& axis, std::int64_t size) {
  return {axis.axis, axis.pre_size * (axis.size / size), size};
}

// [a, b] with 2 and 4 devices: [], [a], [a, b:(1)2], [a, b].
std::vector<AxisList> prefixes(const AxisList& axes) {
  std::vector<AxisList> result{{}};
  for (const AxisRef& axis : axes) {
    const AxisList before = result.back();
    for (const std::int64_t size : divisors(axis.size)) {
      if (size == 1) continue;
      result.push_back(before);
      result.back().push_back(major_part(axis, size));
    }
  }
  return result;
}

// [a, b] with 2 and 4 devices: [b:(2)2], [b], [a, b]; not [].
std::vector<AxisList> suffixes(const AxisList& axes) {
  std::vector<AxisList> result{{}};
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const AxisList after = result.back();
    for (const std::int64_t size : divisors(axis->size)) {
      if (size == 1) continue;
      result.push_back({minor_part(*axis, size)});
      result.back().insert(result.back().end(), after.begin(), after.end());
    }
  }
  result.erase(result.begin());
  return result;
}

bool divides(const AxisList& axes, std::int64_t size) { return size % Mesh::size_of(axes) == 0; }

void add(std::vector<Sharding>& candidates, Sharding sharding) {
  sharding = normalized(sharding);
  if (std::find(candidates.begin(), candidates.end(), sharding) == candidates.end()) {
    candidates.push_back(std::move(sharding));
  }
}

// A minor part of the last axis of one dimension goes to the end of another.
void add_moves(std::vector<Sharding>& candidates, const std::vector<std::int64_t>& shape,
               const Sharding& sharding) {
  for (std::size_t from = 0; from < shape.size(); ++from) {
    const AxisList& axes = sharding.dims[from].axes;
    if (axes.empty() || !divides(axes, shape[from])) continue;
    for (const AxisList& moved : suffixes({axes.back()})) {
      for (std::size_t to = 0; to < shape.size(); ++to) {
        Sharding next = sharding;
        next.dims[to].axes.push_back(moved[0]);
        if (to == from || !divides(next.dims[to].axes, shape[to])) continue;
        const std::int64_t left = axes.back().size / moved[0].size;
        next.dims[from].axes.back() = major_part(axes.back(), left);
        add(candidates, std::move(next));
      }
    }
  }
}

// The parts of the mesh over which the array is replicated, in the order of the mesh.
AxisList free_axes(const Sharding& sharding, const Mesh& mesh) {
  AxisList used = split_axes(sharding);
  std::sort(used.begin(), used.end());
  AxisList free;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    const std::int64_t size = mesh.whole(axis).size;
    std::int64_t at = 1;  // pre_size of what comes next
    for (const AxisRef& part : used) {
      if (part.axis != axis) continue;
      if (part.pre_size > at) free.push_back({axis, at, part.pre_size / at});
      at = part.pre_size * part.size;
    }
    if (size > at) free.push_back({axis, at, size / at});
  }
  return free;
}

// Where parts of an axis begin and end, as pre-sizes.
std::set<std::int64_t> cuts(int axis, const Sharding& a, const Sharding& b) {
  std::set<std::int64_t> result;
  for (const Sharding* sharding : {&a, &b}) {
    for (const AxisRef& part : split_axes(*sharding)) {
      if (part.axis == axis) result.insert({part.pre_size, part.pre_size * part.size});
    }
  }
  return result;
}

Sharding cut(const Sharding& sharding, const Sharding& other) {
  Sharding result = sharding;
  for (DimSharding& dim : result.dims) {
    AxisList parts;
    for (const AxisRef& axis : dim.axes) {
      AxisRef rest = axis;
      for (const std::int64_t at : cuts(axis.axis, sharding, other)) {
        if (at <= rest.pre_size || at >= rest.pre_size * rest.size || at % rest.pre_size != 0 ||
            rest.pre_size * rest.size % at != 0) {
          continue;
        }
        const std::int64_t size = at / rest.pre_size;
        parts.push_back(major_part(rest, size));
        rest = minor_part(rest, rest.size / size);
      }
      parts.push_back(rest);
    }
    dim.axes = std::move(parts);
  }
  return result;
}

}  // namespace

Sharding normalized(const Sharding& sharding) {
  Sharding result = sharding;
  for (DimSharding& dim : result.dims) {
    std::erase_if(dim.axes, [](const AxisRef& axis) { return axis.size == 1; });
    dim.axes = merged(dim.axes);
  }
  return result;
}

std::vector<Sharding> source_candidates(const std::vector<std::int64_t>& shape,
                                        const Sharding& source) {
  const Sharding whole = normalized(source);
  std::vector<Sharding> partial{whole};  // dimensions before d have been shortened
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<AxisList> shorter = prefixes(whole.dims[d].axes);
    std::reverse(shorter.begin(), shorter.end());  // the sharding itself comes first
    if (!divides(whole.dims[d].axes, shape[d])) shorter = {whole.dims[d].axes, {}};
    std::vector<Sharding> next;
    for (const Sharding& sharding : partial) {
      for (const AxisList& axes : shorter) {
        next.push_back(sharding);
        next.back().dims[d].axes = axes;
      }
    }
    partial = std::move(next);
  }
  std::vector<Sharding> candidates = std::move(partial);
  add_moves(candidates, shape, whole);
  return candidates;
}

std::vector<Sharding> target_candidates(const std::vector<std::int64_t>& shape,
                                        const Sharding& target, const Mesh& mesh) {
  const Sharding whole = normalized(target);
  std::vector<Sharding> candidates{whole};
  for (const AxisList& more : suffixes(free_axes(whole, mesh))) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      Sharding finer = whole;
      AxisList& axes = finer.dims[d].axes;
      axes.insert(axes.end(), more.begin(), more.end());
      if (divides(axes, shape[d])) add(candidates, std::move(finer));
    }
  }
  add_moves(candidates, shape, whole);
  return candidates;
}

std::vector<ReshardStep> reshard_parts(const std::vector<std::int64_t>& shape, const Sharding& from,
                                       const Sharding& to) {
  return reshard(shape, cut(from, to), cut(to, from));
}

}  // namespace shardsim
