// Steps of inference of every model of tests/golden/models that makes tokens: a decoding step keeps
// what the description's walk counts (walk.hpp), of 16 tokens, which no window cuts.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/json.hpp"
#include "tests/base/golden_files.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/graph/model_graph.hpp"
#include "workloads/models/walk.hpp"

namespace shardsim::test {
namespace {

std::int64_t cached_bytes(const Workload& workload) {
  std::int64_t bytes = 0;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    if (tensor.role != TensorRole::cache) continue;
    const Block& block = workload.blocks[static_cast<std::size_t>(tensor.block)];
    bytes += workload.bytes(static_cast<TensorId>(t)).count() * block.instances();
  }
  return bytes;
}

}  // namespace

TEST_CASE("A decoding step keeps what the model's description says") {
  constexpr std::int64_t batch = 2, context = 15;
  int models_seen = 0;
  for (const std::string& path : golden_files(golden_folder("models"), ".json")) {
    const Json record = load_json(path);
    if (!record.is_object() || !record.contains("config")) continue;
    const JsonReader config(record["config"], {path, "/config"});
    const models::ModelSpec spec = models::read_model(config, path);
    const bool makes_tokens = !spec.network && spec.head.kind == models::HeadKind::language;
    if (!makes_tokens || models::has_encoder(spec)) continue;
    INFO(std::filesystem::path(path).stem().string());
    const models::ModelCounts n = models::count(spec, {.batch = 1, .sequence = 1}, config.place());
    WorkloadOptions options{.batch = batch, .sequence = 1};
    options.cache = TokenCache{.context = context, .places = context + 1};
    CHECK(cached_bytes(models::build_graph(spec, options, config.place())) ==
          batch * ((context + 1) * n.cache_bytes_per_token + n.state_bytes));
    ++models_seen;
  }
  CHECK(models_seen > 70);
}

}  // namespace shardsim::test
