// What a program has of parameters and gradients that lie with others, while it is written.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/compile/value_buffers.hpp"
#include "strategies/runtime/buckets.hpp"
#include "strategies/runtime/module_walk.hpp"

namespace shardsim {

// A bucket of a gradient buffer and what of the optimizer belongs to it (emit_buckets.cpp).
struct OpenBucket {
  Bucket bucket;
  std::int16_t stage = 0;
  std::string name;
  std::vector<BufferIndex> gradients = {};
  BufferIndex beside = no_buffer;       // gradients that lie by themselves (BufferKept::apart)
  std::vector<BufferIndex> state = {};  // of a flat optimizer; empty: none of it on the device
  // Of the numbers that the host updates beside the device (emit_hybrid_optimizer.cpp).
  std::int64_t elements_on_host = 0;
  BufferIndex state_on_host = no_buffer;
  BufferIndex gradients_on_host = no_buffer;
  std::vector<BufferIndex> shard = {};  // of what is reduced, where no more is kept
  std::int64_t gradients_of_pass = 0;
  std::int64_t missing = 0;  // gradients, until it is reduced
  bool is_gathered = false;  // or nobody gathers it
  bool is_reduced = false;
  bool has_shard = false;  // of this step's gradients

  [[nodiscard]] bool of_experts() const { return bucket.parameters.front().of_experts; }
};
// A number that is made of all gradients, on all devices.
struct OfAllGradients {
  std::string_view op, name, reason;
  DType dtype = DType::f32;
  Bytes beside{0};  // of the largest, in the type that it is made in
};
// Gradients of which all devices of the axes have different parts.
struct Parted {
  AxisList axes;
  std::int64_t bytes = 0;
  std::vector<BufferIndex> gradients;
};
// Gradients of which a device updates a part (emit_gradient_parts.cpp).
struct OpenPart {
  std::int64_t elements = 0;  // of one part
  std::int64_t whole = 0;     // of the parameters that it has some of, where they are most
  std::set<ParameterInstance> members = {};  // these
  std::int64_t largest = 0;                  // piece of a parameter in that part
  BufferIndex kept = no_buffer;
  BufferIndex added = no_buffer;  // of a further microbatch, until that is through
  BufferIndex wide = no_buffer;   // the part in fp32, to be read by the update
  bool has_kept = false;          // of the microbatches before
};
// A parameter in parts (emit_flat_parameters.cpp).
struct FlatParameter {
  ValueId value = no_value;
  std::int32_t ordinal = 0;
  std::int64_t elements = 0;  // of the device, whole
  std::int64_t part = 0;      // elements, padded
  bool stays_whole = false;
  BufferIndex stored = no_buffer;     // the part
  BufferIndex secondary = no_buffer;  // a larger one, of what has been gathered
};
// Parameters whose parts one kernel updates (emit_update_groups.cpp).
struct UpdateGroup {
  std::vector<std::size_t> parameters = {};  // of flat_
  std::int64_t elements = 0;
  BufferIndex state = no_buffer;
};

// An update by the host (emit_host_optimizer.cpp).
struct HostUpdate {
  std::string name = {};
  std::int64_t elements = 0;
  BufferIndex state = no_buffer;
  std::vector<BufferIndex> gradients = {};
  std::vector<BufferIndex> parameters = {};  // on the device
  DType dtype = DType::bf16;                 // of these
};
// Parts that are gathered in one call (emit_flat_parameters.cpp).
struct PartsCall {
  std::string name;
  std::vector<std::size_t> parameters;
  AxisList axes;
  DType dtype = DType::bf16;
  std::vector<BufferIndex> parts = {};
  std::int64_t elements = 0;  // of all, padding included
};
// One that has brought several parameters side by side, which are not dealt out yet.
struct UndealtCall {
  PartsCall call;
  BufferIndex flat = no_buffer;
  std::vector<std::size_t> left = {};  // parameters that no module has waited for
  bool is_dealt = false;
};

}  // namespace shardsim
