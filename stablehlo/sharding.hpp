// Shardings as a program writes them: Shardy's over named axes, and GSPMD's over tiles.
//
//   #sdy.sharding<@mesh, [{"x", ?}, {"y":(1)2}p1], replicated={"z"}>
//     mesh "mesh"; dimension 0 over x and open to more, dimension 1 over the major part of size 2
//     of y with user priority 1; z must stay replicated
//   mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"
//     dimension 0 in 4 tiles; the device numbers 0..7, reshaped to [2,4] and transposed, fill the
//     array [4,1,2] row by row; the 2 devices along its last dimension hold the same tile
//
// They are kept as written (the program's own meshes, axes by name), so that text_of gives back
// what was read; resolving axes and checking them against tensors is for who uses them. Sources:
// openxla/shardy docs/sharding_representation.md; openxla/xla xla/hlo/ir/hlo_sharding.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stablehlo/scanner.hpp"

namespace shardsim::stablehlo {

inline constexpr std::int64_t most_devices = std::int64_t{1} << 20;  // of a program

struct ProgramAxis {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const ProgramAxis&, const ProgramAxis&) = default;
};

// sdy.mesh @name = <["x"=2, "y"=4], device_ids=[...]>
struct ProgramMesh {
  std::string name;
  std::vector<ProgramAxis> axes;         // the last varies fastest
  std::vector<std::int64_t> device_ids;  // empty: 0, 1, 2, ...
  friend bool operator==(const ProgramMesh&, const ProgramMesh&) = default;
};

// An axis by name, or the part x:(pre_size)size of one.
struct AxisPart {
  std::string axis;
  std::int64_t pre_size = 1;
  std::int64_t size = 0;  // 0: the whole axis
  friend bool operator==(const AxisPart&, const AxisPart&) = default;
};

struct DimensionSharding {
  std::vector<AxisPart> axes;  // major to minor
  bool open = false;           // "?": propagation may add axes
  std::optional<int> priority;
  friend bool operator==(const DimensionSharding&, const DimensionSharding&) = default;
};

struct AxisSharding {
  std::string mesh;
  std::vector<DimensionSharding> dimensions;
  std::vector<AxisPart> replicated;
  std::vector<AxisPart> unreduced;
  friend bool operator==(const AxisSharding&, const AxisSharding&) = default;
};

struct TileSharding {
  enum class Kind { replicated, manual, unknown, maximal, tiled, tuple };
  Kind kind = Kind::replicated;
  std::int64_t device = 0;              // of maximal
  std::vector<std::int64_t> tiles;      // devices=[...]: tensor dimensions, then subgroups
  std::vector<std::int64_t> reshape;    // <=[...]; empty when devices are listed
  std::vector<std::int64_t> transpose;  // T(...); empty: as they are
  std::vector<std::int64_t> devices;    // listed ones
  // What the dimensions of `tiles` beyond those of the tensor are: "replicated", "manual", ...
  std::vector<std::string> subgroups;
  bool last_tile_dim_replicate = false;  // the old spelling of one subgroup that is replicated
  std::vector<TileSharding> elements;    // of a tuple
  friend bool operator==(const TileSharding&, const TileSharding&) = default;
};

[[nodiscard]] std::string text_of(const AxisPart& part);
[[nodiscard]] std::string text_of(const AxisSharding& sharding);  // <@mesh, [...]>
[[nodiscard]] std::string text_of(const TileSharding& sharding);

// The body of sdy.mesh's <...>.
[[nodiscard]] ProgramMesh parse_mesh(Scanner& body, std::string name);
// The body of #sdy.sharding<...>.
[[nodiscard]] AxisSharding parse_axis_sharding(Scanner& body);
// The body of #sdy.sharding_per_value<...>: [<...>, <...>].
[[nodiscard]] std::vector<AxisSharding> parse_sharding_per_value(Scanner& body);
// The string of mhlo.sharding.
[[nodiscard]] TileSharding parse_tile_sharding(Scanner& text);

}  // namespace shardsim::stablehlo
