// Whether a checkpoint's files are those of a model: every tensor that the model has on the hub
// (hub_names.hpp), each in its shape, and no other.
//
//   require_checkpoint_of(read_tree_file("Mixtral-8x7B-v0.1/"), config);
//
// Names of the module tree of transformers are taken as well. Of tied tensors files may hold each
// name or one. Errors: InputError at the first tensor that does not fit, with how many there are.
#pragma once

#include "workloads/files/parameter_tree.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {

void require_checkpoint_of(const ParameterTree& tree, const ModelConfig& config);

}  // namespace shardsim
