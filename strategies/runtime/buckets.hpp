// Buckets of a gradient buffer: the parameters of a stage, last first, cut where a bucket is full.
//
// Worked example, Llama-3-8B on 8 devices, limit 40,000,000 elements, closed after
// (Megatron-Core 0.20, megatron/core/distributed/param_and_grad_buffer.py):
//   lm_head                            525,336,576   reaches the limit alone
//   norm, down_proj of layer 31         58,724,352   the norm does not, both do
//   gate_proj and up_proj of layer 31  117,440,512
//   post_attention_layernorm, q/k/v and o_proj of layer 31  41,947,136
//   input_layernorm of layer 31, down_proj of layer 30      58,724,352   ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "sharding/sharding.hpp"
#include "strategies/runtime/registration.hpp"
#include "strategies/runtime/runtime.hpp"

namespace shardsim {

struct BufferedParameter {
  BlockInstance instance;
  RegisteredParameter tensors;
  std::int64_t elements = 0;  // of one device
  AxisList axes;              // over which its gradients are reduced
  bool is_shared = false;     // with another stage
  bool of_experts = false;    // one of those that are dealt out
};

// A call of a bucket that devices update parts of.
struct BucketPiece {
  std::int64_t elements = 0;
  bool is_joined = false;  // of parts of several devices, which are put side by side for it
};

struct Bucket {
  std::vector<BufferedParameter> parameters;
  AxisList axes;
  std::int64_t elements = 0;             // padding included
  std::vector<BucketPiece> pieces = {};  // its calls; empty: one
};

// Its elements without the padding at its end.
[[nodiscard]] std::int64_t unpadded(const Bucket& bucket);

// Of the devices that share the optimizer's state, neighbours on the axes, and the others.
struct ShardAxes {
  AxisList within;
  AxisList across;
};
// The minor part of `axes` that has so many devices, which divide theirs.
[[nodiscard]] ShardAxes split_shards(const AxisList& axes, std::int64_t shards);

// `parameters` of one stage in the order of the buffer. Those reduced over other axes, and those of
// experts, are another buffer with buckets of its own, behind; `optimizer`: whose devices share
// each bucket evenly.
// `of_first_stage`: of the pipeline, or there is none. `element`: the size of one.
[[nodiscard]] std::vector<Bucket> cut_into_buckets(const std::vector<BufferedParameter>& parameters,
                                                   const GradientBuffer& rule,
                                                   const std::optional<FlatOptimizer>& optimizer,
                                                   bool of_first_stage, Bytes element);
// Devices that share the optimizer's state of a bucket that is reduced over these axes.
[[nodiscard]] std::int64_t sharers(const FlatOptimizer& optimizer, const AxisList& axes);

// Of each bucket its pieces, which are what lies in one device's part: in a call so many that they
// are more than a bucket, which one parameter alone may be (average_tensor and
// allreduce_and_scatter of DeepSpeed's ZeRO 1 and 2). `list`: all parameters as devices share them.
//
//   525,336,576 elements that end the list, parts of 349,446,656, buckets of 50,000,000:
//   175,889,920 of the last device but one, 349,446,656 of the last
void cut_at_parts(std::vector<Bucket>& buckets, const std::vector<BufferedParameter>& list,
                  const GradientBuffer& rule, const FlatOptimizer& optimizer);

// Of `list`, as above, cut into as many parts as devices, the part that has something of most:
// elements of all these parameters, which they are, as indices of `list`, and elements of the
// largest piece that is in the part.
struct PartSize {
  std::int64_t whole = 0;
  std::vector<std::size_t> members = {};
  std::int64_t largest = 0;
};
[[nodiscard]] PartSize largest_part(const std::vector<BufferedParameter>& list,
                                    const AxisList& axes, const GradientBuffer& rule,
                                    const FlatOptimizer& optimizer);

// What of a bucket is whose, layers together, and what its padding takes. `elements` of the call's
// payload, each of so many bytes.
[[nodiscard]] std::vector<CollectivePart> parts_of(const Bucket& bucket, const Workload& workload,
                                                   Bytes element, std::int64_t elements);
// "lm_head.weight to model.layers.{}.mlp.down_proj.weight, 3 parameters".
[[nodiscard]] std::string range_of(const Bucket& bucket, const Workload& workload);

}  // namespace shardsim
