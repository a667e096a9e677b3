// A model's config.json from strangers: what is accepted becomes a workload with its backward pass
// and optimizer, and, where it is small, a parameter tree that reads back as the same.
#include "tests/fuzz/fuzz.hpp"
#include "workloads/models/build.hpp"
#include "workloads/models/model_tree.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json tree;
  try {
    const ModelConfig config{"config", "config.json", OwnedJson(parse_json(text, "config.json"))};
    WorkloadOptions options;
    options.batch = 2;
    if (reads_tokens(config)) options.sequence = 16;
    Workload workload = build_workload(config, options);
    std::int64_t tensors = 0;
    for (const ParameterView& parameter : parameters(workload)) tensors += parameter.instances();
    add_backward(workload, {});
    add_optimizer(workload, {});
    constexpr std::int64_t few = 4'000;
    if (tensors > few) return 0;
    tree = parameter_tree_to_json(model_tree(config));
  } catch (const InputError&) {
    return 0;
  }
  const Json written = as_written(tree);
  const ParameterTree again = read_parameter_tree(JsonReader(written, {"tree.json", ""}));
  require_same(tree, parameter_tree_to_json(again));
  return 0;
}
