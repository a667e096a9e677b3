// A model's config.json from strangers: what is accepted becomes a workload with its backward pass
// and optimizer, and, where it is small, a parameter tree that reads back as the same.
#include "tests/fuzz/fuzz.hpp"
#include "workloads/models/model_tree.hpp"
#include "workloads/step/step.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json tree;
  try {
    const ModelConfig config{"config", "config.json", OwnedJson(parse_json(text, "config.json"))};
    Step step{.batch = 2};
    if (reads_tokens(config)) step.sequence = 16;
    const Workload workload = build_step(config, step);
    std::int64_t tensors = 0;
    for (const ParameterView& parameter : parameters(workload)) tensors += parameter.instances();
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
