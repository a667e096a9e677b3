#include "validate/fit/gpu_profile.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace shardsim {

std::string shipped_profile_of(std::string_view gpu) {
  using Named = std::pair<std::string_view, std::string_view>;
  // Beginnings of names. GH200's ends with the memory of its CPU.
  constexpr std::array<Named, 12> profiles = {{{"NVIDIA H200", "dgx-h200"},
                                               {"NVIDIA H100 80GB HBM3", "dgx-h100"},
                                               {"NVIDIA A100-SXM4-80GB", "dgx-a100"},
                                               {"NVIDIA A100-SXM4-40GB", "azure-ndv4"},
                                               {"NVIDIA A100-PCIE-40GB", "pcie-a100"},
                                               {"NVIDIA B200", "dgx-b200"},
                                               {"NVIDIA B300", "dgx-b300"},
                                               {"NVIDIA GB200", "gb200-nvl72"},
                                               {"NVIDIA GB300", "gb300-nvl72"},
                                               {"NVIDIA GH200", "alps"},
                                               {"NVIDIA L40S", "pcie-l40s"},
                                               {"Tesla V100-SXM2-32GB", "dgx-1v"}}};
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const Named& named) { return gpu.starts_with(named.first); });
  return found == profiles.end() ? "" : std::string(found->second);
}

}  // namespace shardsim
