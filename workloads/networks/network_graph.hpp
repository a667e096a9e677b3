// Op graphs of networks over images: units that FSDP wraps are stages, levels and blocks. Each
// hands the loss; what a network reads of images and text are inputs of the step.
#pragma once

#include "workloads/networks/image_graph.hpp"
#include "workloads/networks/network.hpp"

namespace shardsim::models {

// The loss of a step over images of `side` pixels or latents a side.
TensorId add(NetworkGraph& n, const ResNet& net, std::int64_t side);
TensorId add(NetworkGraph& n, const ConvNext& net, std::int64_t side);
TensorId add(NetworkGraph& n, const Swin& net, std::int64_t side);
TensorId add(NetworkGraph& n, const UNet& net, std::int64_t side);
TensorId add(NetworkGraph& n, const Autoencoder& net, std::int64_t side);
TensorId add(NetworkGraph& n, const Blueprint& net, std::int64_t side);

}  // namespace shardsim::models
