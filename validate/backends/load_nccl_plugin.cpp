#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "validate/backends/nccl_plugin.hpp"

namespace shardsim {
namespace {

constexpr const char* module_name = "shardsim_nccl.so";

// In the build's folder it is beside the program, and where both are installed in a folder of
// libraries. Empty where it is in neither.
std::filesystem::path module_path() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {program, program / SHARDSIM_MODULE_DIR}) {
    std::filesystem::path path = folder / module_name;
    if (std::filesystem::exists(path, error)) return path;
  }
  return {};
}

NcclPlugin load() {
  const std::filesystem::path path = module_path();
  if (path.empty()) {
    throw CannotRunError(
        "this shardsim was built without CUDA and NCCL: install CUDA Toolkit 12 and NCCL 2.22, or "
        "later ones, and build it anew; --backend mpi runs plans on CPUs");
  }
  // Never closed: threads of CUDA outlive what is done with it.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw CannotRunError(fmt::format("the backend nccl: {}", dlerror()));
  const void* plugin = dlsym(module, "shardsim_nccl_plugin");
  if (plugin == nullptr) throw CannotRunError(fmt::format("the backend nccl: {}", dlerror()));
  const auto& loaded = *static_cast<const NcclPlugin*>(plugin);
  if (std::strcmp(loaded.build, nccl_plugin_build()) != 0) {
    throw CannotRunError(
        fmt::format("{} is of {}, this is {}", path.string(), loaded.build, nccl_plugin_build()));
  }
  return loaded;
}

}  // namespace

const NcclPlugin& load_nccl_plugin() {
  static const NcclPlugin plugin = load();
  return plugin;
}

}  // namespace shardsim
