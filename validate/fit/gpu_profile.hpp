// Which shipped profile a GPU is of.
#pragma once

#include <string>
#include <string_view>

namespace shardsim {

// By its name as CUDA tells it: "NVIDIA H100 80GB HBM3" is a "dgx-h100". Empty for one that no
// profile has. What joins several is not in the name: the profile is that of NVIDIA's own machine,
// or of the one there is.
[[nodiscard]] std::string shipped_profile_of(std::string_view gpu);

}  // namespace shardsim
