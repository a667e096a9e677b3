#include "validate/fit/gpu_profile.hpp"

#include <catch2/catch.hpp>

#include "hardware_profiles/machine.hpp"

namespace shardsim {

// Names as nvidia-smi prints them.
TEST_CASE("a GPU is of a shipped profile, or of none") {
  for (const char* gpu :
       {"NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB",
        "NVIDIA A100-PCIE-40GB", "NVIDIA B200", "NVIDIA B300", "NVIDIA GB200", "NVIDIA GB300",
        "NVIDIA GH200 480GB", "NVIDIA L40S", "Tesla V100-SXM2-32GB"}) {
    CAPTURE(gpu);
    CHECK_NOTHROW(load_profile(shipped_profile_of(gpu), {"test", ""}));
  }
  CHECK(shipped_profile_of("NVIDIA H100 80GB HBM3") == "dgx-h100");
  for (const char* gpu : {"NVIDIA H100 PCIe", "NVIDIA GeForce RTX 4090", ""}) {
    CHECK(shipped_profile_of(gpu).empty());
  }
}

}  // namespace shardsim
