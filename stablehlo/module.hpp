// A StableHLO program: functions of ops over values of static type, with regions for loops,
// branches and reducers, and the shardings that the program gives.
//
//   func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = ...}, ...) -> ... {
//     %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : ...
//     return %0
//
//   values {%arg0, %arg1, %0}   ops {dot_general: operands {0, 1}, results {2}; return: {2}}
//   regions {body: arguments {0, 1}, ops {0, 1}}
//
// A function owns its values, ops and regions in flat vectors in the order of the text; ids are
// indices into them and hold within that function. A region has one block. An op inside a region
// may read values of the regions around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/index.hpp"
#include "stablehlo/attribute.hpp"
#include "stablehlo/sharding.hpp"
#include "stablehlo/tensor_type.hpp"

namespace shardsim::stablehlo {

using ValueId = int;
using OpId = int;
using RegionId = int;
inline constexpr OpId no_op = -1;

// What the program says of how one value lies; at most one of the two.
struct ValueSharding {
  std::optional<AxisSharding> axes;   // sdy.sharding
  std::optional<TileSharding> tiles;  // mhlo.sharding
};

struct Value {
  std::string name;  // without "%": "arg0", "5#1"
  TensorType type;
  OpId defined_by = no_op;  // arguments of functions and regions have none
  int result = 0;           // which result of that op; which argument of that region
  ValueSharding sharding;
};

struct Op {
  std::string name;  // "stablehlo.add", "func.call", "sdy.manual_computation"
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  AttributeList attributes;
  std::vector<RegionId> regions;
  RegionId parent = 0;
  int line = 0;
};

struct Region {
  std::vector<ValueId> arguments;
  std::vector<OpId> ops;  // the last is the terminator
  OpId owner = no_op;     // the body of a function has none
};

struct FunctionResult {
  TensorType type;
  ValueSharding sharding;
  AttributeList attributes;
};

struct Function {
  std::string name;
  bool is_public = true;
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<Region> regions;                     // [0] is the body
  std::vector<AttributeList> argument_attributes;  // jax.buffer_donor, tf.aliasing_output, ...
  std::vector<FunctionResult> results;
  AttributeList attributes;
  int line = 0;

  [[nodiscard]] const Region& body() const { return regions.front(); }
  [[nodiscard]] const TensorType& type_of(ValueId value) const { return values[at(value)].type; }
  [[nodiscard]] const Op& op(OpId id) const { return ops[at(id)]; }
  // The op that makes a value, or null for arguments.
  [[nodiscard]] const Op* definition(ValueId value) const;
};

struct Module {
  std::string name;
  std::string file;  // for messages
  AttributeList attributes;
  std::vector<ProgramMesh> meshes;
  std::vector<Function> functions;

  [[nodiscard]] const Function* find_function(std::string_view function) const;
  [[nodiscard]] const ProgramMesh* find_mesh(std::string_view mesh) const;
  [[nodiscard]] Place place_of(const Op& op) const;
  // Ops of all functions, those in regions included.
  [[nodiscard]] std::size_t op_count() const;
};

// Text as jax.jit(f).lower(...).as_text() prints it, Shardy or GSPMD annotations alike; `file` is
// for messages. Throws InputError with the line: syntax, undefined names, types that contradict
// each other, dynamic shapes, control flow between blocks.
[[nodiscard]] Module parse_module(std::string_view text, const std::string& file);
// The same of a file, which may be compressed with gzip.
[[nodiscard]] Module read_module(const std::string& path);

}  // namespace shardsim::stablehlo
