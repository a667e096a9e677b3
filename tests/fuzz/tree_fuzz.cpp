// Parameter trees from strangers: tree JSON with mesh and specs, and the headers of checkpoints.
#include <unistd.h>

#include <filesystem>

#include "base/file.hpp"
#include "strategies/specs/placed_tree.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "workloads/files/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  fuzz_reader(data, size, [](const Json& document) {
    return placed_tree_to_json(read_placed_tree(JsonReader(document, {"input.json", ""})));
  });
  // Removed by nobody: one small file of a fuzzer that ends by being stopped.
  static const std::string path =
      std::filesystem::temp_directory_path() / ("tree_fuzz-" + std::to_string(::getpid()));
  write_file(path, {reinterpret_cast<const char*>(data), size});
  try {
    static_cast<void>(read_safetensors_file(path));
  } catch (const InputError&) {
    // What it is for.
  }
  return 0;
}
