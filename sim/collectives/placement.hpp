// Where the devices and axes of a plan's mesh lie on a machine.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/collectives/collective_model.hpp"
#include "sim/collectives/device_order.hpp"

namespace shardsim {

// Where the axes of a plan's mesh lie on a machine. Build once per simulation.
//   cluster, network  devices are numbered; node = device / devices per node
//   torus             every mesh axis walks through spans of physical dimensions
// Which device is at which position: device_order.hpp. An order that no digits of torus coordinates
// describe makes all collectives ones of listed groups, routed link by link. On several slices an
// axis has an outer part over slices, which device_order.hpp says, and an inner one in each.
class Placement {
 public:
  // Throws InputError when the mesh does not fit the machine, for a model that has no word, and for
  // orders as check_device_order does.
  Placement(const Mesh& mesh, const Machine& machine, const CollectiveModel& model = {},
            const DeviceOrder& order = {});
  // On a torus with an assignment of one's own: the spans of every mesh axis.
  Placement(const Mesh& mesh, const Machine& machine, std::vector<std::vector<TorusSpan>> spans,
            const CollectiveModel& model = {});

  // Of the devices; that of the plan where `order` moves none.
  [[nodiscard]] const Mesh& mesh() const { return numbers_.mesh(); }
  [[nodiscard]] const Mesh& plan_mesh() const { return numbers_.given(); }
  // A collective of the plan, in axes and positions of mesh().
  [[nodiscard]] Collective on_devices(const Collective& collective) const {
    return numbers_.numbered(collective);
  }
  [[nodiscard]] std::int64_t device(std::int64_t position) const {
    return numbers_.device(position);
  }
  [[nodiscard]] bool moves_devices() const { return !numbers_.is_given(); }

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const CollectiveModel& model() const { return model_; }
  // For tori: over how many slices every axis of mesh() goes, its outer part.
  [[nodiscard]] const std::vector<std::int64_t>& slices_along() const { return slices_along_; }
  // For tori: spans of every axis of mesh(); on several slices of its inner part.
  [[nodiscard]] const std::vector<std::vector<TorusSpan>>& spans() const { return spans_; }
  // Networks written in place; of others nothing.
  [[nodiscard]] const NetworkDescription* network() const {
    return std::get_if<NetworkDescription>(&machine_.profile.network);
  }
  // Whether collectives are simulated as flows: such networks have no closed form.
  [[nodiscard]] bool is_by_flows() const {
    return network() != nullptr || model_.fidelity == Fidelity::flows;
  }

 private:
  void place_on_torus(const DeviceOrder& order);

  NumberedMesh numbers_;
  Machine machine_;
  std::vector<std::int64_t> slices_along_;
  std::vector<std::vector<TorusSpan>> spans_;
  CollectiveModel model_;
};

}  // namespace shardsim
