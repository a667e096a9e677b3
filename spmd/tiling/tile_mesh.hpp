// The mesh behind tile assignments, and the axes that each of them uses.
//
//   devices=[4,2]<=[2,4]T(1,0)    device = 4 a + b with a < 2, b < 4; the tiles are filled by b
//                                 first: dimension 0 is split over b, dimension 1 over a
//   devices=[8,1]<=[8]            dimension 0 over all devices in order: a, then b
//
// A tile dimension is a list of digits of the device number, each with a stride and a size. Where
// the digits of all assignments begin and end cuts the device number into axes, provided that each
// cut divides the next. Axes are named axis_0, axis_1, ..., the slowest first, as Shardy does.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "stablehlo/sharding.hpp"

namespace shardsim::spmd {

class TileMesh {
 public:
  // Each assignment is read once before axes can be asked for. Throws InputError: tiles and devices
  // that do not multiply to the same number, another number of devices than in other assignments,
  // device orders that are no product of digits.
  void add(const stablehlo::TileSharding& tiles, const Place& place);
  // No assignment splits anything: there is no mesh.
  [[nodiscard]] bool empty() const { return devices_ == 0; }
  // Fixes the axes. Throws InputError when the cuts do not divide each other.
  [[nodiscard]] stablehlo::ProgramMesh mesh(const Place& place);
  // As axes of that mesh, for a tensor of `rank`; all dimensions closed.
  [[nodiscard]] stablehlo::AxisSharding axes_of(const stablehlo::TileSharding& tiles,
                                                std::size_t rank, const Place& place) const;
  // The names of the axes over which an assignment is manual.
  [[nodiscard]] std::vector<std::string> manual_axes(const stablehlo::TileSharding& tiles,
                                                     const Place& place) const;

 private:
  struct Digit {
    std::int64_t stride = 1;
    std::int64_t size = 1;
  };
  using Digits = std::vector<Digit>;  // major to minor

  [[nodiscard]] static std::vector<Digits> digits_of(const stablehlo::TileSharding& tiles,
                                                     const Place& place);
  [[nodiscard]] static Digits device_digits(const stablehlo::TileSharding& tiles,
                                            const Place& place);
  [[nodiscard]] std::vector<stablehlo::AxisPart> parts_of(const Digits& digits) const;

  std::int64_t devices_ = 0;
  std::vector<std::int64_t> cuts_;  // sorted; afterwards axis i lies between two of them
};

}  // namespace shardsim::spmd
