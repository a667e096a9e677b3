// Which device stands at which position of a mesh, and a mesh seen from the devices.
//
// Devices are numbered node after node on a cluster, as written on a network; on a torus those of a
// chip first, then along x, y and z.
//
//   automatic  as jax on a torus, row-major elsewhere
//   jax        mesh_utils.create_device_mesh: on a torus as assign_mesh says, elsewhere row-major
//              (jax-ml/jax @01a6442: what is no TPU is reshaped as it is numbered)
//   row_major  device = position, the last axis fastest: torch's init_device_mesh
//   axes       named from the fastest axis to the slowest, as Megatron-LM's order string
//              "tp-cp-ep-dp-pp" (NVIDIA/Megatron-LM @00caa53 megatron/core/parallel_state.py,
//              RankGenerator: rank = tp + cp * tp_size + ...)
//   listed     the device of every position, by number
//
// Megatron-LM's five names stand for the axis of that name, else for all axes that mean it, of
// which the last is the fastest; a name of theirs that the mesh has no axis for counts as one of
// size 1, as there. tp: tensor, model. cp: context. ep: expert. dp: data, fsdp, replica. pp: pipe,
// pipeline, stage.
//
// Several slices of a torus are the outer parts of axes, as mesh_utils.create_hybrid_device_mesh
// has them (its dcn_mesh_shape): of the axes that are named, else of the first axes, each as many
// as divide it. Example: 4 slices, mesh data=2, fsdp=16: data over 2, fsdp over 2 and 8 in each
// slice.
//
// Example: 16 devices, mesh dp=2, pp=4, tp=2, order tp-cp-ep-dp-pp. dp steps over 2 devices, pp
// over 4: groups of dp are {0 2} {1 3} {4 6} ..., of pp {0 4 8 12} {1 5 9 13} ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct DeviceOrder {
  enum class Kind : std::uint8_t { automatic, jax, row_major, axes, listed };
  Kind kind = Kind::automatic;
  std::vector<std::string> axes;      // fastest first
  std::vector<std::int64_t> devices;  // by position
  Place place;                        // where errors about it point to
  std::vector<MeshAxis> slices = {};  // over which axes they lie; empty: over the first
  Place slices_place = {};
};

// Over how many slices each axis goes. Throws InputError where the axes do not divide so.
[[nodiscard]] std::vector<std::int64_t> slices_along_axes(const DeviceOrder& order,
                                                          const Mesh& mesh, std::int64_t slices);

// Megatron-LM's default order, in its names.
[[nodiscard]] const std::vector<std::string>& megatron_order();

// Throws InputError for axes that the mesh has not, with a suggestion, that are named twice or
// missing, and for lists that are no permutation of the mesh's devices.
void check_device_order(const DeviceOrder& order, const Mesh& mesh);

// A mesh whose positions are device numbers, and what collectives of the other mesh are on it: over
// axes where the order is one of axes, over listed groups where it is any other.
class NumberedMesh {
 public:
  NumberedMesh() = default;
  explicit NumberedMesh(const Mesh& mesh) : mesh_(mesh), given_(mesh) {}  // row-major
  // Of a row-major order, one of axes, or a list, which is found to be one of axes if it is.
  NumberedMesh(const Mesh& given, const DeviceOrder& order);

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const Mesh& given() const { return given_; }
  [[nodiscard]] bool is_given() const { return axis_of_.empty() && device_of_.empty(); }
  [[nodiscard]] bool is_listed() const { return !device_of_.empty(); }

  [[nodiscard]] std::int64_t device(std::int64_t position) const;
  // Cost: O(1) of a collective over axes where the order is one of axes, else O(devices).
  [[nodiscard]] Collective numbered(const Collective& collective) const;

  // The same order as a list, over other axes that are numbered row-major.
  [[nodiscard]] NumberedMesh listed_over(const Mesh& devices) const;

 private:
  void order_axes(const std::vector<int>& slowest_first);

  Mesh mesh_;
  Mesh given_;
  std::vector<int> axis_of_;             // axis of mesh_, by axis of given_
  std::vector<std::int64_t> device_of_;  // by position of given_; empty: by axes
};

// The digits of torus coordinates that axes are which step through devices by number; nothing where
// one is no such digits. Example: 4x4, axes 2, 8: {y 2, stride 2} and {y 2, x 4}.
[[nodiscard]] std::optional<std::vector<std::vector<TorusSpan>>> spans_by_number(
    const TorusShape& torus, const Mesh& numbered);

// One axis for every dimension, slowest first: z, y, x, and of chips that are several devices
// "chip". Positions are device numbers.
[[nodiscard]] Mesh mesh_of_torus(const TorusShape& torus);

}  // namespace shardsim
