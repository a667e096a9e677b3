// Units of parameters: what FSDP2 wraps. Every kind of layer is one. What is no layer belongs to
// the root; each stage of a pipeline is a module of its own and has a root of its own.
//
//   embedding, layers, head     one stage: {embedding, head}, {layers}
//                               two stages: {embedding}, {layers}, {head}
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "strategies/layout/stage_ranges.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

class Units {
 public:
  Units(const Workload& workload, const std::vector<StageRange>& stages);

  [[nodiscard]] bool is_root(std::size_t block) const;
  [[nodiscard]] bool are_one(std::size_t block, std::size_t other) const;
  // Of a root unit: does this block run first in forward, and last?
  [[nodiscard]] bool is_first(std::size_t block) const;
  [[nodiscard]] bool is_last(std::size_t block) const;
  // "root", or the layer's name.
  [[nodiscard]] std::string name(std::size_t block) const;
  // Of the model: its loss is in the last stage.
  [[nodiscard]] bool has_stages() const { return has_stages_; }

 private:
  struct Root {
    std::size_t first = 0;  // blocks
    std::size_t last = 0;
  };
  const Workload& workload_;
  bool has_stages_ = false;
  std::vector<std::size_t> stage_of_;  // of blocks that are no layers
  std::vector<Root> roots_;            // of stages
};

}  // namespace shardsim
