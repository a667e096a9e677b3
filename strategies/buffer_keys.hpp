// The keys of a strategy that say how gradients lie in a buffer and who updates which part of it
// (runtime/runtime.hpp).
//
//   "gradient_buffer": {"bucket_elements": 40000000, "closes": "after", "adds_in_products": true},
//   "flat_optimizer": {"shards": 8, "gather": "next_forward"}, "clip_gradients": true
//
//   key               values                         when left out
//   gradient_buffer   an object or null              null: gradients lie each by itself
//     bucket_elements   a number; 0: one bucket      0
//     order             registered, made, listed       registered
//     kept              always, step, shards, room,    always
//                       apart, views
//     closes            after or before the          after
//                       parameter that reaches it
//     buckets_of        all_stages, first_stage      all_stages
//     shared_apart      of a parameter in two        false
//                       stages: a bucket of its own
//     parameter_multiple, bucket_multiple            1
//     adds_in_products  true, false                  false
//     behind_ddp        true, false                  false
//     collective        all-reduce, reduce-scatter   all-reduce
//     overlap           true, false                  true
//     aligns_stages     true, false                  false
//   flat_optimizer    an object or null              null: it follows the layout
//     shards            a number; 0: all devices     0
//                       that reduce a bucket
//     gather            after_step, together,        after_step
//                       next_forward
//     group_elements    a number; 0: by buckets      0
//     deals_out         true, false                  false
//   flat_parameters   an object or null              null: they follow the layout
//     prefetch_elements, whole_elements,             0
//     live_elements, reuse_elements, secondary_shards
//     quantized         true, false                  false
//   clip_gradients, check_overflow, loss_per_token   false
#pragma once

#include "base/json_reader.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {

// Of an object: over what a framework has filled in. Throws InputError: an unknown key, a flat
// optimizer without a buffer, shards that do not divide the devices of the data axes.
void read_buffer_keys(const JsonReader& strategy, const Mesh& mesh, Strategy& options);
// Nothing where the runtime has no buffer.
[[nodiscard]] Json buffer_keys_to_json(const Runtime& runtime);

// Of a step without an optimizer: gradients lie each by itself, and nobody takes their norm.
void leave_out_optimizer(Runtime& runtime);

// Devices that see different data and hold the same parameters.
[[nodiscard]] std::int64_t data_devices(const Strategy& options, const Mesh& mesh);

}  // namespace shardsim
