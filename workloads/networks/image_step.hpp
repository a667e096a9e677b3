// What a network over images reads in a step.
#pragma once

#include <cstdint>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct ImageStep {
  std::int64_t batch = 1;
  std::int64_t side = 0;  // height and width, in pixels or, of diffusion models, in latents
  std::int64_t text = 0;  // tokens that describe each image
};

}  // namespace shardsim::models
