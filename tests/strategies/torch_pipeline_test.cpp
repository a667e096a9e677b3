// Against real PyTorch: what a rank of a pipeline sends, receives, gathers and reduces in a step,
// in order, and what it holds between steps. Cases: tests/golden/torch/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"
#include "tests/base/golden_files.hpp"

namespace shardsim::torch_pipeline_test {
namespace {

using test::compile_step;
using test::golden_files;
using test::golden_folder;
using test::usual_step;

struct Rank {
  const Json& record;
  const Json& settings;
  std::size_t number;
};

// "all-gather dp_shard 436224000", "send 33554432": of every call in issue order. Payloads are the
// whole array, on this rank's side of the call. (A record's peer is that of the first of all calls
// that are else alike.)
using Calls = std::vector<std::string>;

std::string call_text(const Json& call) {
  std::string kind = call["kind"];
  std::replace(kind.begin(), kind.end(), '_', '-');
  const std::int64_t bytes = call[kind == "all-gather" ? "bytes_out" : "bytes_in"];
  const std::string over = call.contains("peer") ? "" : call["axis"].get<std::string>() + " ";
  return kind + " " + over + std::to_string(bytes);
}

// The norm's all-reduces are not part of our step; gradients of norm weights under sequence
// parallelism are reduced over tp before the reduce-scatter, whole; we reduce the shards of a unit
// together after it.
bool is_compared(const Json& call) {
  const bool of_norms = call["kind"] == "all_reduce" && call["axis"] == "tp";
  return call["phase"] != "clip" && !of_norms;
}

Calls recorded(const Json& record) {
  Calls calls;
  const Json& distinct = record["collectives"];
  for (const Json& run : record["order"]) {
    for (int times = run[1]; times > 0; --times) {
      for (const std::size_t index : run[0]) {
        if (is_compared(distinct[index])) calls.push_back(call_text(distinct[index]));
      }
    }
  }
  return calls;
}

Calls planned(const Plan& plan, const Program& program) {
  Calls calls;
  for (const Task& task : program.tasks) {
    if (task.kind == TaskKind::transfer) {
      const Transfer& t = plan.transfers[static_cast<std::size_t>(task.work)];
      calls.push_back((t.sends ? "send " : "recv ") + std::to_string(t.payload.count()));
    }
    if (task.kind != TaskKind::collective) continue;
    const Collective& c = plan.collectives[static_cast<std::size_t>(task.work)];
    const std::string axis = plan.mesh.names_of(c.axes).at(0);
    if (c.kind == CollectiveKind::all_reduce && axis == "tp") continue;
    calls.push_back(std::string(name_of(c.kind)) + " " + axis + " " +
                    std::to_string(c.payload.count()));
  }
  return calls;
}

CompiledStep compile_record(const Rank& rank) {
  const std::map<std::string, std::string> models = {{"Llama-3.1-8B", "llama-3.1-8b"},
                                                     {"Llama-3.1-70B", "llama-3.1-70b"}};
  const Json& settings = rank.settings;
  std::vector<MeshAxis> axes;
  for (const Json& axis : rank.record["mesh"]) axes.push_back({axis[0], axis[1]});
  const bool tp = settings["tp"] > 1;
  const bool shards = settings["dp_shard"] > 1;
  Json strategy = {
      {"name", shards ? tp ? "fsdp+tp" : "fsdp"
               : tp   ? "tp"
                      : "replicate"},
      {"reshard_after_forward", settings["reshard_after_forward"]},
      {"reshard_root_after_forward", false},
      {"pipeline", {{"schedule", settings["schedule"]}, {"virtual_stages", settings["v"]}}}};
  if (tp) {
    strategy["sequence_parallel"] = true;
    // Logits are whole on every rank: the loss is not split over the vocabulary.
    strategy["activations"] = Json::array(
        {{{"pattern", "^lm_head$"}, {"spec", Json::array({"dp_shard", nullptr, nullptr})}}});
  }
  Step step = usual_step();
  step.batch = rank.record["batch"]["per_rank"].get<std::int64_t>() *
               settings["dp_shard"].get<std::int64_t>();
  step.microbatches = settings["microbatches"];
  step.sequence = rank.record["batch"]["sequence"].get<std::int64_t>();
  // Without FSDP the model itself is in bf16.
  const DType kept = shards ? DType::f32 : DType::bf16;
  step.optimizer.parameters = step.optimizer.gradients = step.optimizer.moments = kept;
  step.optimizer.master.reset();
  if (settings["ac"] == "full") {
    step.rematerialization.policy = Rematerialization::Policy::full;
  }
  return compile_step(models.at(rank.record["model"]["name"]), Mesh(axes), strategy.dump(), step);
}

std::int64_t held(const Program& program, BufferCategory category) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.category == category && buffer.free_count == 0) bytes += buffer.bytes.count();
  }
  return bytes;
}

bool same_order(const Calls& ours, const Calls& theirs, const std::string& id) {
  const auto [mine, other] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (mine == ours.end() && other == theirs.end()) return true;
  std::cout << "  " << id << ": call " << mine - ours.begin() << " of " << theirs.size() << ": "
            << (mine == ours.end() ? "nothing" : *mine) << ", PyTorch "
            << (other == theirs.end() ? "nothing" : *other) << "\n";
  return false;
}

bool agrees(const Json& record) {
  const std::string id = record["id"];
  const Json& settings = record["strategy"]["settings"];
  const Rank rank{record, settings, settings["pp_rank"].get<std::size_t>()};
  const CompiledStep step = compile_record(rank);
  const Program& program = step.plan.programs.at(rank.number);
  Calls ours = planned(step.plan, program);
  Calls theirs = recorded(record);
  // Where a forward pass is repeated PyTorch's autograd gathers the gradient that comes in before
  // that, we when the first product reads it.
  if (settings["ac"] == "full") {
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
  }
  bool same = same_order(ours, theirs, id);
  const Json& memory = record["memory"]["steps"][1]["peak"];
  const auto compare = [&](const char* what, BufferCategory category, std::int64_t theirs) {
    const std::int64_t ours = held(program, category);
    if (ours == theirs) return;
    std::cout << "  " << id << ": " << what << " " << ours << ", PyTorch " << theirs << "\n";
    same = false;
  };
  compare("parameters", BufferCategory::parameters, memory["sharded_param"]);
  // AdamW's state beside the two moments: one fp32 step count per parameter tensor.
  std::int64_t tensors = 0;
  for (const Json& p : record["params_local"]) tensors += p["count"].get<std::int64_t>();
  compare("moments", BufferCategory::optimizer,
          memory["opt_state"].get<std::int64_t>() - 4 * tensors);
  return same;
}

}  // namespace

TEST_CASE("Ranks of pipelines do what PyTorch's do, in order", "[golden]") {
  const std::filesystem::path folder = golden_folder("torch/pipeline");
  const std::vector<std::string> files = golden_files(folder, ".json");
  if (!std::filesystem::exists(folder)) return;
  CHECK(!files.empty());
  for (const std::string& file : files) {
    const bool passed = agrees(load_json(file));
    std::cout << std::filesystem::path(file).filename().string() << ": "
              << (passed ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n");
    CHECK(passed);
  }
}

}  // namespace shardsim::torch_pipeline_test
