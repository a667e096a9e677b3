#include "spmd/tiling/tensor_sharding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"

namespace shardsim::spmd {

bool TensorSharding::splits_nothing() const {
  return std::all_of(dimensions.begin(), dimensions.end(),
                     [](const DimensionAxes& dimension) { return dimension.axes.empty(); });
}

TensorSharding open_sharding(int mesh, std::size_t rank) {
  return {mesh, std::vector<DimensionAxes>(rank), {}, {}};
}

Meshes::Meshes(const stablehlo::Module& module) : meshes_(module.meshes) {
  for (const stablehlo::ProgramMesh& mesh : meshes_) {
    const auto same =
        std::find_if(meshes_.begin(), meshes_.end(), [&](const stablehlo::ProgramMesh& other) {
          return other.axes == mesh.axes && other.device_ids == mesh.device_ids;
        });
    same_as_.push_back(static_cast<int>(same - meshes_.begin()));
  }
}

int Meshes::find(const std::string& name, const Place& place) const {
  for (std::size_t i = 0; i < meshes_.size(); ++i) {
    if (meshes_[i].name == name) return same_as_[i];
  }
  std::vector<std::string> names;
  for (const stablehlo::ProgramMesh& mesh : meshes_) names.push_back(mesh.name);
  throw InputError(place, fmt::format("unknown mesh \"{}\"", name), closest(name, names));
}

Axis Meshes::resolve(const stablehlo::AxisPart& part, int mesh, const Place& place) const {
  const std::vector<stablehlo::ProgramAxis>& axes = meshes_[at(mesh)].axes;
  const auto axis = std::find_if(axes.begin(), axes.end(), [&](const stablehlo::ProgramAxis& a) {
    return a.name == part.axis;
  });
  if (axis == axes.end()) {
    std::vector<std::string> names;
    for (const stablehlo::ProgramAxis& known : axes) names.push_back(known.name);
    throw InputError(place, fmt::format("unknown axis \"{}\"", part.axis),
                     closest(part.axis, names));
  }
  const std::int64_t size = part.size == 0 ? axis->size : part.size;
  if (part.pre_size < 1 || size < 1 || axis->size % part.pre_size != 0 ||
      axis->size / part.pre_size % size != 0) {
    throw InputError(place, fmt::format("{} is no part of an axis of size {}",
                                        stablehlo::text_of(part), axis->size));
  }
  return {static_cast<int>(axis - axes.begin()), part.pre_size, size};
}

Axes Meshes::resolve(const std::vector<stablehlo::AxisPart>& parts, int mesh, const Place& place,
                     Axes& used) const {
  Axes result;
  for (const stablehlo::AxisPart& part : parts) {
    const Axis axis = resolve(part, mesh, place);
    if (axis.size == 1) continue;
    if (std::any_of(used.begin(), used.end(), [&](const Axis& a) { return overlap(a, axis); })) {
      throw InputError(place, fmt::format("axis {} is used twice", stablehlo::text_of(part)));
    }
    used.push_back(axis);
    append(result, axis);
  }
  return result;
}

TensorSharding Meshes::resolve(const stablehlo::AxisSharding& sharding, std::size_t rank,
                               const Place& place) const {
  TensorSharding result;
  result.mesh = find(sharding.mesh, place);
  if (sharding.dimensions.size() != rank) {
    throw InputError(place, fmt::format("a sharding of {} dimensions for a tensor of {}",
                                        sharding.dimensions.size(), rank));
  }
  Axes used;
  for (const stablehlo::DimensionSharding& dimension : sharding.dimensions) {
    result.dimensions.push_back(
        {resolve(dimension.axes, result.mesh, place, used), dimension.open});
  }
  result.replicated = resolve(sharding.replicated, result.mesh, place, used);
  result.unreduced = resolve(sharding.unreduced, result.mesh, place, used);
  return result;
}

std::vector<int> Meshes::resolve_names(const std::vector<std::string>& names, int mesh,
                                       const Place& place) const {
  std::vector<int> result;
  for (const std::string& name : names) {
    const Axis axis = resolve({name, 1, 0}, mesh, place);
    if (std::find(result.begin(), result.end(), axis.index) != result.end()) {
      throw InputError(place, fmt::format("axis \"{}\" is used twice", name));
    }
    result.push_back(axis.index);
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool Meshes::is_whole(const Axis& axis, int mesh) const {
  const stablehlo::ProgramMesh& of = meshes_[at(mesh)];
  return axis.size == of.axes[at(axis.index)].size;
}

std::vector<stablehlo::AxisPart> Meshes::text_form(const Axes& axes, int mesh) const {
  std::vector<stablehlo::AxisPart> parts;
  for (const Axis& axis : axes) {
    const stablehlo::ProgramAxis& whole = meshes_[at(mesh)].axes[at(axis.index)];
    parts.push_back({whole.name, axis.pre_size, is_whole(axis, mesh) ? 0 : axis.size});
  }
  return parts;
}

stablehlo::AxisSharding Meshes::text_form(const TensorSharding& sharding) const {
  stablehlo::AxisSharding result;
  result.mesh = meshes_[at(sharding.mesh)].name;
  for (const DimensionAxes& dimension : sharding.dimensions) {
    result.dimensions.push_back({text_form(dimension.axes, sharding.mesh), false, std::nullopt});
  }
  result.replicated = text_form(sharding.replicated, sharding.mesh);
  result.unreduced = text_form(sharding.unreduced, sharding.mesh);
  return result;
}

bool Meshes::is_empty(int mesh) const { return meshes_[at(mesh)].axes.empty(); }

std::optional<int> Meshes::common(const std::vector<const TensorSharding*>& all) const {
  std::optional<int> mesh;
  for (const TensorSharding* sharding : all) {
    if (sharding == nullptr) continue;
    if (!mesh || is_empty(*mesh)) {
      mesh = sharding->mesh;
    } else if (*mesh != sharding->mesh && !is_empty(sharding->mesh)) {
      return std::nullopt;
    }
  }
  return mesh;
}

}  // namespace shardsim::spmd
