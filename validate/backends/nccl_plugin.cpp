#include "validate/backends/nccl_plugin.hpp"

#include "validate/backends/nccl_backend.hpp"

// What load_nccl_plugin.cpp looks for.
extern "C" const shardsim::NcclPlugin shardsim_nccl_plugin;
const shardsim::NcclPlugin shardsim_nccl_plugin = {
    shardsim::nccl_plugin_build(), shardsim::gpus_of_process, shardsim::make_nccl_backend};
