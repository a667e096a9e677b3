#include "strategies/rules/uneven_padding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

std::int64_t partitions(const SpecEntry& entry, const Mesh& mesh, const Place& place) {
  if (entry.unconstrained) {
    throw RuleError("TypeError", place, "UNCONSTRAINED has no number of partitions to pad for");
  }
  std::int64_t product = 1;
  for (const std::string& name : entry.axes) {
    const std::optional<int> axis = mesh.find(name);
    if (!axis) {
      std::vector<std::string> known;
      for (const MeshAxis& candidate : mesh.axes()) known.push_back(candidate.name);
      throw RuleError(
          "KeyError", place,
          fmt::format("axis \"{}\" is not in the mesh ({})", name, fmt::join(known, ", ")),
          closest(name, known));
    }
    product *= mesh.axes()[static_cast<std::size_t>(*axis)].size;
  }
  return product;
}

}  // namespace

TensorShape uneven_paddings(const PartitionSpec& spec, const TensorShape& shape, const Mesh& mesh,
                            const Place& place) {
  TensorShape paddings;
  for (std::size_t d = 0; d < std::min(spec.size(), shape.size()); ++d) {
    const std::int64_t parts = partitions(spec[d], mesh, place);
    paddings.push_back((parts - shape[d] % parts) % parts);
  }
  return paddings;
}

TensorShape padded_shape(const TensorShape& shape, const TensorShape& paddings) {
  TensorShape padded = shape;
  for (std::size_t d = 0; d < paddings.size(); ++d) padded[d] += paddings[d];
  return padded;
}

TensorShape padded_state_shape(const TensorShape& shape, const TensorShape& paddings) {
  TensorShape padded = padded_shape(shape, paddings);
  padded.resize(paddings.size());
  return padded;
}

TensorShape sliced_shape(const TensorShape& padded, const TensorShape& unpadded,
                         const Place& place) {
  const bool fits =
      padded.size() == unpadded.size() &&
      std::equal(unpadded.begin(), unpadded.end(), padded.begin(),
                 [](std::int64_t small, std::int64_t large) { return small <= large; });
  if (!fits) {
    throw RuleError("TypeError", place,
                    fmt::format("[{}] cannot be cut out of [{}]", fmt::join(unpadded, ", "),
                                fmt::join(padded, ", ")));
  }
  return unpadded;
}

}  // namespace shardsim
