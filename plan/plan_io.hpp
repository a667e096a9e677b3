// The plan on paper: JSON that keeps everything, text that a person reads, DOT for Graphviz.
// All three are functions of the plan alone: the same plan gives the same bytes.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// "shardsim/plan/1". Everything in the plan, names spelled out:
//
//   subject, mesh {axis: size}, devices
//   collectives   plan.collectives in order, each with what follows from it: kind, axes ("model",
//                 "model:(1)2"), groups, source_target_pairs (of a permute only), dtype,
//                 payload_bytes, group_size, count (executions per step), parts, reason
//   kernels       op, class, dtype, flops, bytes, and, where it is known, product [batch, m, n, k]
//   transfers     peer_program, sends, dtype, payload_bytes, reason and, unless it is 0, channel
//   names
//   programs      tasks: kind, work (index into kernels, collectives or transfers), name, layer,
//                 microbatch, phase, recompute, stream, after; buffers: name, layer, category,
//                 bytes, allocated_by (null: before the step), freed_after (empty: never)
//   padding, notes
//
// On meshes of more than 1,024 devices, groups that follow from axes are given in the iota form of
// HLO, e.g. "[4096,4]<=[16384]" or "[4,2]<=[2,4]T(1,0)"; else as lists.
[[nodiscard]] Json plan_to_json(const Plan& plan);
// The inverse. What the document says twice (groups of axes, group_size, count, devices) must
// agree. Throws InputError with file and place.
[[nodiscard]] Plan plan_from_json(const JsonReader& document);

// [batch, m, n, k]
[[nodiscard]] Json product_to_json(const Product& product);
// Of a product's sides: two of them multiplied fit into 64 bits.
inline constexpr std::int64_t longest_side = std::int64_t{1} << 31;
// Throws InputError for what is not four numbers from 1 to longest_side.
[[nodiscard]] Product read_product(const JsonReader& json);

// For people: consecutive layers that do the same (plan/fold.hpp) are printed once, with their
// count.
[[nodiscard]] std::string plan_to_text(const Plan& plan, std::size_t width = default_text_width);
// The same tasks as a graph: a node per task of the text, an edge per dependency.
[[nodiscard]] std::string plan_to_dot(const Plan& plan);

}  // namespace shardsim
