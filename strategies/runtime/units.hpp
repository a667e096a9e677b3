// Units of parameters: what one call gathers and one reduces (FSDP2's fully_shard on a module).
// Every kind of layer is one, but for UnitsOf::model; what is in no other unit belongs to the root.
// Each stage of a pipeline is a module of its own and has a root of its own.
//
//   Llama: embed_tokens; layers; norm, lm_head
//     layers                   {embed_tokens, norm, lm_head} (root), {layer} each
//     layers+ends              {embed_tokens}, {layer} each, {norm, lm_head}   (torchtitan)
//     layers+embedding+head    {norm} (root), {embed_tokens}, {layer} each, {lm_head}
//     model                    all in one
//   Mixtral, layers, experts apart:  {attention, norms, router} each, and within it {experts} each
//   two stages, layers         {embed_tokens} | {norm, lm_head}
//
//   ALBERT, layers             {embeddings, pooler, ...} (root), {the layer}, by all that run it
//
// A unit is gathered by the block of its `first` in forward, which is the first that runs: the root
// by the first that is no layer. Backward gathers it with its `last` and reduces it with its
// `first`. Where a stage's first parameters are the last's, too (tied embeddings), ends are one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "strategies/layout/stage_ranges.hpp"
#include "strategies/runtime/runtime.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct Unit {
  std::string name;  // "root", or the layer's
  std::vector<TensorId> parameters = {};
  std::size_t first = 0;  // block, in forward
  std::size_t last = 0;
  bool is_layer = false;
  // Of a module that several blocks run: these, in forward. Each gathers it, and gives it back.
  std::vector<std::size_t> runs = {};
  bool is_inner = false;      // of routed experts, within the layer's
  bool kept_as_root = false;  // Gathers::kept_root says whether forward keeps it
};

class Units {
 public:
  // `experts_apart`: a unit of their own. `deals_experts`: they are dealt out over devices.
  Units(const Workload& workload, const std::vector<StageRange>& stages, UnitsOf grain,
        bool experts_apart = false, bool deals_experts = false);

  // Roots first; what is within a unit behind it.
  [[nodiscard]] const std::vector<Unit>& all() const { return units_; }
  [[nodiscard]] const Unit& of(TensorId parameter) const;
  // Orders the parameters of one unit as its modules have registered them.
  [[nodiscard]] std::size_t place_of(TensorId parameter) const { return place_of_[at(parameter)]; }
  // Are they in one call, if they are of one unit and over the same axes? Experts that are dealt
  // out are in others, as their mesh is another (torchtitan 0.3, distributed/fsdp.py, edp_mesh).
  [[nodiscard]] bool are_together(TensorId one, TensorId other) const {
    return is_dealt_out_[at(one)] == is_dealt_out_[at(other)];
  }
  // Of a block's parameters that are updated together.
  [[nodiscard]] std::string name(std::size_t block) const;
  [[nodiscard]] bool has_stages() const { return has_stages_; }

 private:
  struct Ends {  // blocks of a stage that are no layers, in forward
    std::vector<std::size_t> blocks;
    std::size_t before = 0;  // so many of them come before the first layer
  };
  // Of a layer: its own unit, and that of its experts if they are apart.
  void add_layer(std::size_t block, bool experts_apart, std::vector<Unit>& layers) const;
  // To that of the module, or another.
  void add_run(std::size_t block, std::vector<Unit>& layers) const;
  void add_ends(const Ends& ends, UnitsOf grain);
  [[nodiscard]] bool is_read_behind(TensorId parameter, const Ends& ends) const;
  [[nodiscard]] bool is_multiplied(TensorId parameter, std::size_t block) const;
  [[nodiscard]] std::vector<TensorId> parameters_of(std::size_t block) const;

  const Workload& workload_;
  bool has_stages_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_;   // by tensor
  std::vector<std::size_t> place_of_;  // by tensor
  std::vector<bool> is_dealt_out_;     // by tensor: of routed experts
};

}  // namespace shardsim
