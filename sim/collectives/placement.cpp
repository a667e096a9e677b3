#include "sim/collectives/placement.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"

namespace shardsim {
namespace {

void check_devices(const Mesh& mesh, const Machine& machine) {
  if (mesh.devices() == machine.devices) return;
  throw InputError({"", "/mesh"},
                   fmt::format("{} devices on a machine of {}", mesh.devices(), machine.devices));
}

// Of the axes in one slice.
std::vector<std::int64_t> inner_sizes(const Mesh& mesh,
                                      const std::vector<std::int64_t>& slices_along) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < slices_along.size(); ++i) {
    sizes.push_back(mesh.axes()[i].size / slices_along[i]);
  }
  return sizes;
}

}  // namespace

Placement::Placement(const Mesh& mesh, const Machine& machine, const CollectiveModel& model,
                     const DeviceOrder& order)
    : machine_(machine), model_(model) {
  check_devices(mesh, machine_);
  (void)name_of(model_);  // says what there is not
  if (network() != nullptr) check_devices(*network(), machine_.devices, {"", "/machine"});
  numbers_ = NumberedMesh(mesh, order);
  if (machine_.torus) place_on_torus(order);
}

Placement::Placement(const Mesh& mesh, const Machine& machine,
                     std::vector<std::vector<TorusSpan>> spans, const CollectiveModel& model)
    : numbers_(mesh),
      machine_(machine),
      slices_along_(mesh.axes().size(), 1),
      spans_(std::move(spans)),
      model_(model) {
  check_devices(mesh, machine_);
  (void)name_of(model_);  // says what there is not
}

void Placement::place_on_torus(const DeviceOrder& order) {
  const TorusShape& torus = *machine_.torus;
  using Kind = DeviceOrder::Kind;
  if (order.kind == Kind::automatic || order.kind == Kind::jax) {
    slices_along_ = slices_along_axes(order, mesh(), machine_.slices);
    spans_ = assign_mesh(torus, inner_sizes(mesh(), slices_along_), {"", "/mesh"});
    return;
  }
  if (machine_.slices > 1) {
    throw InputError(order.place, "on several slices a mesh lies where jax puts it");
  }
  auto spans = spans_by_number(torus, mesh());
  if (!spans || numbers_.is_listed()) {
    numbers_ = numbers_.listed_over(mesh_of_torus(torus));
    spans = spans_by_number(torus, mesh());
  }
  spans_ = std::move(*spans);
  slices_along_.assign(mesh().axes().size(), 1);
}

}  // namespace shardsim
