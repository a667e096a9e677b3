// Numbers of the fields that we write of MLCommons' Chakra execution traces. Facts of its public
// schema (mlcommons/chakra, schema/protobuf/et_def.proto), read 2026-11-23.
//
// A file is messages one after the other, each behind its length as a varint: one GlobalMetadata,
// then the Nodes.
#pragma once

#include <cstdint>

namespace shardsim::chakra {

inline constexpr const char* schema_version = "0.0.4";  // what GlobalMetadata.version says of it

enum class Metadata : std::uint32_t { version = 1, attributes = 2 };  // GlobalMetadata

enum class Node : std::uint32_t {
  id = 1,
  name = 2,
  type = 3,
  control_dependencies = 4,  // ctrl_deps
  data_dependencies = 5,     // data_deps
  start_time_micros = 6,
  duration_micros = 7,
  attributes = 10
};

enum class NodeType : std::int32_t {
  memory_load = 2,
  memory_store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7
};

enum class CollectiveType : std::int64_t {  // CollectiveCommType, as the attribute comm_type has it
  all_reduce = 0,
  all_gather = 2,
  broadcast = 5,
  all_to_all = 6,
  reduce_scatter = 7
};

enum class Attribute : std::uint32_t {  // AttributeProto
  name = 1,
  int32_value = 7,
  int64_value = 9,
  uint64_value = 13,
  bool_value = 27,
  string_value = 29
};

}  // namespace shardsim::chakra
