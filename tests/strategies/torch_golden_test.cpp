// Against real PyTorch: the collectives of FSDP2 and HSDP steps, byte for byte, and what a rank
// holds between steps. Cases: tests/golden/torch/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "model_step.hpp"
#include "tests/base/golden_files.hpp"

#include "base/json.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

struct Totals {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const Totals&, const Totals&) = default;
};
using TotalsByKind = std::map<std::string, Totals>;  // "all-gather dp_shard"

// Why a record is beyond what is compared here; empty when it is not.
std::string skip_reason(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  const std::string type = record["model"]["model_type"];
  const std::string name = record["model"]["name"];
  if (name != "Llama-3.1-8B" && name != "Llama-3.1-70B" && name != "GPT-2")
    return "model is not shipped";
  if (settings.value("wrap", "blocks") != "blocks") return "other units than blocks";
  if (settings.value("cp", 1) != 1) return "context parallelism";
  const bool whole_tp = settings.value("sp", true) && settings.value("loss_parallel", true);
  if (settings.value("tp", 1) != 1 && !whole_tp)
    return "tensor parallelism without sequence and loss parallelism";
  if (settings.value("optimizer", "fused") != "fused") return "optimizer";
  const std::string ac = settings.value("ac", "none");
  if (ac != "none" && ac != "full") return "activation checkpointing policy";
  if (settings["param_dtype"] != "bf16") return "compute dtype";
  return "";
}

CompiledStep compile_record(const Json& record) {
  const std::map<std::string, std::string> models = {
      {"Llama-3.1-8B", "llama-3.1-8b"}, {"Llama-3.1-70B", "llama-3.1-70b"}, {"GPT-2", "gpt2"}};
  const Json& settings = record["strategy"]["settings"];
  std::vector<MeshAxis> axes;
  for (const Json& axis : record["mesh"]) axes.push_back({axis[0], axis[1]});
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : axes) ranks *= axis.size;
  const bool tp = settings.value("tp", 1) > 1;
  const bool shards = Mesh(axes).find("dp_shard").has_value();
  const std::string name = !shards ? "tp" : tp ? "fsdp+tp" : axes.size() > 1 ? "hsdp" : "fsdp";
  const Json strategy = {
      {"name", name},
      {"shard_axis", shards ? Json("dp_shard") : Json(nullptr)},
      {"sequence_parallel", tp},
      {"reshard_after_forward", settings["reshard_after_forward"]},
      {"reshard_root_after_forward", settings.value("root_reshard", false)},
      {"reduce_each_microbatch", settings.value("no_sync", false) ? "none" : "all"}};
  Step step = usual_step();
  step.batch = ranks / settings.value("tp", 1) * record["batch"]["per_rank"].get<std::int64_t>();
  step.microbatches = settings.value("microbatches", 1);
  step.batch *= step.microbatches;
  step.sequence = record["batch"]["sequence"].get<std::int64_t>();
  step.optimizer.parameters = DType::f32;
  step.optimizer.master.reset();
  step.optimizer.gradients = settings["reduce_dtype"] == "bf16" ? DType::bf16 : DType::f32;
  if (settings.value("ac", "none") == "full")
    step.rematerialization.policy = Rematerialization::Policy::full;
  return compile_step(models.at(record["model"]["name"]), Mesh(axes), strategy.dump(), step);
}

// Gradients of norm weights under sequence parallelism: PyTorch reduces each over tp before the
// reduce-scatter, whole; we the shards of a unit together after it. Bytes differ, sums do not.
bool is_norm_reduction(const Json& call) {
  return call["kind"] == "all_reduce" && call["axis"] == "tp" && call.contains("why") &&
         call["why"] == "post_backward";
}

// "dp_shard", and as the records have it "dp_shard_sub4" for four neighbours of a larger axis.
std::string recorded_name(const Mesh& mesh, const AxisRef& part) {
  const std::string name = mesh.name_of(mesh.whole(part.axis));
  return mesh.is_whole(part) ? name : name + "_sub" + std::to_string(part.size);
}

// Payload as nccl-tests counts it: the whole array on one rank's side of the call.
TotalsByKind recorded(const Json& record) {
  TotalsByKind totals;
  for (const Json& call : record["collectives"]) {
    if (call["phase"] == "clip") continue;  // the norm's all-reduce; not part of our step
    if (is_norm_reduction(call)) continue;
    std::string kind = call["kind"];
    std::replace(kind.begin(), kind.end(), '_', '-');
    const std::int64_t count = call["count"];
    const std::int64_t bytes = call[kind == "all-gather" ? "bytes_out" : "bytes_in"];
    Totals& t = totals[kind + " " + call["axis"].get<std::string>()];
    t.count += count;
    t.bytes += count * bytes;
  }
  return totals;
}

TotalsByKind planned(const Plan& plan) {
  TotalsByKind totals;
  const std::vector<std::int64_t> counts = executions(plan);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Collective& c = plan.collectives[i];
    if (c.kind == CollectiveKind::all_reduce && plan.mesh.names_of(c.axes).at(0) == "tp" &&
        c.reason.starts_with("gradients of")) {
      continue;
    }
    Totals& t = totals[std::string(name_of(c.kind)) + " " + recorded_name(plan.mesh, c.axes.at(0))];
    // Norm gradients again: over the replicas and tp in one call of their own.
    if (c.axes.size() == 1) t.count += counts[i];
    t.bytes += counts[i] * c.payload.count();
  }
  return totals;
}

std::int64_t held(const Plan& plan, BufferCategory category) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.programs[0].buffers) {
    if (buffer.category == category && buffer.free_count == 0) bytes += buffer.bytes.count();
  }
  return bytes;
}

// AdamW's state beside the two moments: one fp32 step count per parameter tensor.
std::int64_t moments(const Json& record) {
  std::int64_t tensors = 0;
  for (const Json& p : record["params_local"]) tensors += p["count"].get<std::int64_t>();
  return record["optimizer_state_bytes"].get<std::int64_t>() - 4 * tensors;
}

bool agrees(const Json& record) {
  const CompiledStep step = compile_record(record);
  const TotalsByKind ours = planned(step.plan), theirs = recorded(record);
  bool same = ours == theirs;
  for (const auto& [kind, totals] : theirs) {
    const auto found = ours.find(kind);
    const Totals mine = found == ours.end() ? Totals{} : found->second;
    if (mine == totals) continue;
    std::cout << "  " << record["id"] << ": " << kind << ": " << mine.count << " calls of "
              << mine.bytes << " bytes, PyTorch " << totals.count << " of " << totals.bytes << "\n";
  }
  const std::int64_t shard = record["memory"]["steps"][1]["peak"]["sharded_param"];
  const std::int64_t ours_shard = held(step.plan, BufferCategory::parameters);
  if (ours_shard != shard)
    std::cout << "  " << record["id"] << ": parameters " << ours_shard << ", PyTorch " << shard
              << "\n";
  const std::int64_t state = held(step.plan, BufferCategory::optimizer);
  // PyTorch keeps state for the rows that a rank owns, we for the padded shard.
  const bool padded = !record["padding"].empty();
  const bool same_state = padded ? state >= moments(record) : state == moments(record);
  if (!same_state)
    std::cout << "  " << record["id"] << ": optimizer " << state << ", PyTorch " << moments(record)
              << "\n";
  return same && ours_shard == shard && same_state;
}

}  // namespace

TEST_CASE("Collectives and state of FSDP2 and HSDP steps are PyTorch's", "[golden]") {
  const std::filesystem::path folder = golden_folder("torch/fsdp");
  const std::vector<std::string> files = golden_files(folder, ".json");
  if (!std::filesystem::exists(folder)) return;
  int compared = 0;
  for (const std::string& file : files) {
    const Json record = load_json(file);
    const std::string reason = skip_reason(record);
    if (!reason.empty()) {
      std::cout << std::filesystem::path(file).filename().string() << ": skipped (" << reason
                << ")\n";
      continue;
    }
    const bool passed = agrees(record);
    std::cout << std::filesystem::path(file).filename().string() << ": "
              << (passed ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n");
    CHECK(passed);
    ++compared;
  }
  CHECK(compared > 0);
}
