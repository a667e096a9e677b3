// The parameters of a step as the leaves of a tree, which rule systems give specs to: each
// layer's by its own name or, where the workload has a view, the leaves of that.
//
//   view "maxtext" of Llama 3.1 8B:
//     decoder/layers/self_attention/query/kernel [4096, 32, 32, 128], of which dimension 1 is the
//     layers and 0, 2 and 3 are dimensions 0, 1 and 2 of the parameter; it holds 32 instances
//
// A second copy of a parameter (Tensor::copy_of) is no leaf.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/files/parameter_tree.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct TreeLeaf {
  struct Instance {
    TensorId tensor = no_tensor;
    std::int32_t number = 0;  // of its layer
  };
  ParameterLeaf leaf;  // name, shape, names of dimensions
  std::vector<Instance> holds;
  // Which of the tensor's dimensions each is; nothing: the layers.
  std::vector<std::optional<std::size_t>> dims;
  std::optional<std::size_t> layers_at = {};  // the dimension that layers are stacked in
};

// In order of first use.
[[nodiscard]] std::vector<TreeLeaf> tree_leaves(const Workload& workload);
// The same, sorted by path as jax does, in one dtype.
[[nodiscard]] ParameterTree parameter_tree(const Workload& workload, DType dtype,
                                           const Place& place);

}  // namespace shardsim
