#include "spmd/collective_plan.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/mesh_groups.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

struct Named {
  std::string_view op;
  CollectiveKind kind;
};
constexpr std::array kinds{
    Named{"stablehlo.all_gather", CollectiveKind::all_gather},
    Named{"stablehlo.all_reduce", CollectiveKind::all_reduce},
    Named{"stablehlo.all_to_all", CollectiveKind::all_to_all},
    Named{"stablehlo.collective_permute", CollectiveKind::collective_permute},
    Named{"stablehlo.reduce_scatter", CollectiveKind::reduce_scatter}};

std::optional<CollectiveKind> kind_of(const stablehlo::Op& op) {
  for (const Named& named : kinds) {
    if (named.op == op.name) return named.kind;
  }
  return {};
}

Bytes bytes_of(const stablehlo::TensorType& type) {
  return storage_bytes(type.elements(), type.dtype.value_or(DType::f32));
}

// Rows of a list of lists, or of dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>.
Groups rows_of(const stablehlo::OpView& op, std::string_view name) {
  const stablehlo::Attribute* attribute = op.attribute({name});
  if (attribute == nullptr) op.fail("a collective without its devices");
  Groups rows;
  if (attribute->kind == stablehlo::Attribute::Kind::list) {
    for (const auto& item : attribute->items) {
      rows.push_back(stablehlo::integers_of(item, op.module().file, op.op().line));
    }
    return rows;
  }
  const std::vector<std::int64_t> all = op.integers({name});
  stablehlo::Scanner scanner(attribute->type, op.module().file, op.op().line);
  const stablehlo::TensorType type = stablehlo::parse_type(scanner);
  if (type.rank() != 2) op.fail("expected rows of devices");
  const auto width = static_cast<std::size_t>(type.dims[1]);
  for (std::size_t first = 0; first + width <= all.size() && width > 0; first += width) {
    rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(first),
                      all.begin() + static_cast<std::ptrdiff_t>(first + width));
  }
  return rows;
}

void to_positions(Groups& rows, const std::vector<std::int64_t>& positions,
                  const stablehlo::OpView& op, std::int64_t devices) {
  for (auto& row : rows) {
    for (std::int64_t& device : row) {
      if (device < 0 || device >= devices) op.fail("a device that the mesh does not have");
      if (!positions.empty()) device = positions[at(device)];
    }
  }
}

}  // namespace

ProgramDevices devices_of(const stablehlo::Module& module) {
  const stablehlo::ProgramMesh* largest = nullptr;
  std::int64_t most = 0;
  for (const stablehlo::ProgramMesh& mesh : module.meshes) {
    std::int64_t devices = 1;
    for (const auto& axis : mesh.axes) devices *= axis.size;
    if (devices > most) {
      largest = &mesh;
      most = devices;
    }
  }
  if (largest == nullptr || largest->axes.empty()) return {Mesh({{"device", 1}}), "", {}};
  ProgramDevices result;
  result.name = largest->name;
  std::vector<MeshAxis> axes;
  for (const auto& axis : largest->axes) axes.push_back({axis.name, axis.size});
  result.mesh = Mesh(std::move(axes));
  result.positions.resize(largest->device_ids.size());
  for (std::size_t i = 0; i < result.positions.size(); ++i) {
    result.positions[at(largest->device_ids[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

bool is_collective(const stablehlo::Op& op) { return kind_of(op).has_value(); }

Collective collective_of(const stablehlo::Module& module, const stablehlo::Function& function,
                         const stablehlo::Op& op, const Mesh& mesh,
                         const std::vector<std::int64_t>& positions) {
  const stablehlo::OpView view(module, function, op);
  Collective collective;
  collective.kind = *kind_of(op);
  const bool permutes = collective.kind == CollectiveKind::collective_permute;
  Groups rows = rows_of(view, permutes ? "source_target_pairs" : "replica_groups");
  to_positions(rows, positions, view, mesh.devices());
  if (permutes) {
    for (const auto& pair : rows) collective.source_targets.emplace_back(pair.at(0), pair.at(1));
  } else {
    auto axes = axes_of_groups(mesh, rows);
    if (!axes && collective.kind == CollectiveKind::all_reduce) {
      // The order within a group does not matter to a sum.
      for (auto& row : rows) std::sort(row.begin(), row.end());
      axes = axes_of_groups(mesh, rows);
    }
    if (axes && !axes->empty()) {
      collective.axes = std::move(*axes);
    } else {
      collective.groups = std::move(rows);
    }
  }
  collective.dtype = function.type_of(op.operands.at(0)).dtype.value_or(DType::f32);
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const bool gathers = collective.kind == CollectiveKind::all_gather;
    collective.payload += bytes_of(function.type_of(gathers ? op.results.at(i) : op.operands[i]));
  }
  if (const stablehlo::Attribute* reason = view.attribute({"spmd.reason"})) {
    collective.reason = reason->text;
  }
  if (const stablehlo::Attribute* remedy = view.attribute({"spmd.remedy"})) {
    collective.remedy = remedy->text;
  }
  return collective;
}

}  // namespace shardsim::spmd
