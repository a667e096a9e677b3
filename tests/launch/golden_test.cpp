// Megatron-Core's recorded steps by their arguments: what is imported sends as many messages and
// bytes of each kind as the recorded rank did. In order, group by group: megatron_golden_test.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>

#include "base/json.hpp"
#include "launch/launch.hpp"
#include "tests/base/golden_files.hpp"
#include "tests/strategies/megatron_records.hpp"

namespace shardsim::launch_golden_test {
namespace {

using test::golden_folder;

struct Sent {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const Sent&, const Sent&) = default;
};
using Totals = std::map<std::string, Sent>;

void add_flag(std::string& arguments, const char* key, const Json& given) {
  if (given == true) arguments += fmt::format(" --{}", key);
}

void add_number(std::string& arguments, const char* key, const Json& given) {
  if (!given.is_null()) arguments += fmt::format(" --{} {}", key, given.dump());
}

std::string model_arguments(const Json& record) {
  const Json& model = record["model"];
  const Json& settings = record["strategy"]["settings"];
  std::string arguments;
  const Json& layers = settings["layers"].is_null() ? model["num_layers"] : settings["layers"];
  add_number(arguments, "num-layers", layers);
  for (const auto& [key, argument] : {std::pair{"hidden_size", "hidden-size"},
                                      {"ffn_hidden_size", "ffn-hidden-size"},
                                      {"num_attention_heads", "num-attention-heads"},
                                      {"num_query_groups", "num-query-groups"},
                                      {"vocab_size", "vocab-size"},
                                      {"num_moe_experts", "num-experts"},
                                      {"moe_router_topk", "moe-router-topk"},
                                      {"moe_ffn_hidden_size", "moe-ffn-hidden-size"}}) {
    if (model.contains(key)) add_number(arguments, argument, model[key]);
  }
  if (model.contains("moe_router_dtype")) {
    arguments += " --moe-router-dtype " + model["moe_router_dtype"].get<std::string>();
  }
  if (model["normalization"] == "RMSNorm") {
    arguments +=
        " --normalization RMSNorm --position-embedding-type rope --swiglu"
        " --disable-bias-linear --group-query-attention";
  }
  if (model.contains("multi_latent_attention")) {
    arguments += " --multi-latent-attention --moe-router-score-function sigmoid";
    for (const auto& [key, argument] :
         {std::pair{"q_lora_rank", "q-lora-rank"},
          {"kv_lora_rank", "kv-lora-rank"},
          {"qk_head_dim", "qk-head-dim"},
          {"qk_pos_emb_head_dim", "qk-pos-emb-head-dim"},
          {"v_head_dim", "v-head-dim"},
          {"moe_shared_expert_intermediate_size", "moe-shared-expert-intermediate-size"}}) {
      add_number(arguments, argument, model[key]);
    }
    arguments += " --transformer-impl local";  // whose latents are split
    const Json& routed = model["moe_layer_freq"];
    const auto dense = std::count(routed.begin(), routed.end(), Json(0));
    arguments +=
        fmt::format(" --moe-layer-freq [0]*{}+[1]*{}", dense, layers.get<std::int64_t>() - dense);
  }
  const bool tied = settings["tied"] == true || model["untie"] == false;
  if (!tied) arguments += " --untie-embeddings-and-output-weights";
  arguments += fmt::format(" --max-position-embeddings {}", settings["seq"].dump());
  return arguments;
}

std::string arguments_of(const Json& record, std::int64_t data) {
  const Json& settings = record["strategy"]["settings"];
  std::string arguments = model_arguments(record);
  arguments += " --bf16 --attention-dropout 0 --hidden-dropout 0";
  const std::int64_t size = settings["mbs"];
  add_number(arguments, "micro-batch-size", size);
  add_number(arguments, "global-batch-size",
             data * size * settings["microbatches"].get<std::int64_t>());
  add_number(arguments, "seq-length", settings["seq"]);
  add_number(arguments, "tensor-model-parallel-size", settings["tp"]);
  add_number(arguments, "pipeline-model-parallel-size", settings["pp"]);
  add_number(arguments, "context-parallel-size", settings["cp"]);
  add_number(arguments, "num-virtual-stages-per-pipeline-rank", settings["vpp"]);
  add_number(arguments, "expert-model-parallel-size", settings["ep"]);
  add_number(arguments, "expert-tensor-parallel-size", settings["etp"]);
  add_number(arguments, "num-distributed-optimizer-instances", settings["instances"]);
  add_number(arguments, "ddp-bucket-size", settings["bucket_size"]);
  add_number(arguments, "decoder-first-pipeline-num-layers", settings["first"]);
  add_number(arguments, "decoder-last-pipeline-num-layers", settings["last"]);
  add_flag(arguments, "sequence-parallel", settings["sp"]);
  add_flag(arguments, "use-distributed-optimizer", settings["dist_opt"]);
  add_flag(arguments, "overlap-grad-reduce", settings["overlap_grad"]);
  add_flag(arguments, "overlap-param-gather", settings["overlap_param"]);
  add_flag(arguments, "ddp-pad-buckets-for-high-nccl-busbw", settings["busbw"]);
  add_flag(arguments, "cross-entropy-loss-fusion", settings["ce_fusion"]);
  add_flag(arguments, "calculate-per-token-loss", settings["per_token"]);
  if (settings["grad_fp32"] == false) arguments += " --grad-reduce-in-bf16";
  arguments +=
      fmt::format(" --moe-token-dispatcher-type {}", settings["dispatcher"].get<std::string>());
  add_flag(arguments, "moe-shared-expert-overlap", settings["shared_overlap"]);
  if (const Json capacity = settings.value("capacity", Json()); !capacity.is_null()) {
    add_number(arguments, "moe-expert-capacity-factor", capacity);
    arguments += " --moe-pad-expert-input-to-capacity";
  }
  if (settings["recompute"] == "full") {
    arguments += " --recompute-granularity full --recompute-method uniform";
  } else if (settings["recompute"].is_array()) {
    arguments += " --recompute-granularity selective --recompute-modules";
    for (const Json& module : settings["recompute"]) arguments += " " + module.get<std::string>();
  }
  return arguments;
}

// Of these kinds all are of the step; all-reduces are also of what is logged.
const std::map<std::string, const char*> counted = {{"all_gather", "bytes_out"},
                                                    {"reduce_scatter", "bytes_in"},
                                                    {"all_to_all", "bytes_in"},
                                                    {"send", "bytes_in"},
                                                    {"recv", "bytes_in"}};

Totals recorded(const Json& record) {
  Totals totals;
  for (const auto& [key, sent] : record["totals"].items()) {
    const std::string kind = key.substr(0, key.find('@'));
    const auto found = counted.find(kind);
    if (found == counted.end()) continue;
    totals[kind].calls += sent["count"].get<std::int64_t>();
    totals[kind].bytes += sent[found->second].get<std::int64_t>();
  }
  return totals;
}

Totals planned(const Plan& plan, const Program& program) {
  Totals totals;
  for (const Task& task : program.tasks) {
    const auto work = static_cast<std::size_t>(task.work);
    std::string kind;
    std::int64_t bytes = 0;
    if (task.kind == TaskKind::transfer) {
      kind = plan.transfers[work].sends ? "send" : "recv";
      bytes = plan.transfers[work].payload.count();
    } else if (task.kind == TaskKind::collective) {
      kind = name_of(plan.collectives[work].kind);
      bytes = plan.collectives[work].payload.count();
    }
    std::replace(kind.begin(), kind.end(), '-', '_');
    if (!counted.contains(kind)) continue;
    totals[kind].calls += 1;
    totals[kind].bytes += bytes;
  }
  return totals;
}

void compare(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  std::int64_t devices = 1, data = 1;
  for (const Json& axis : record["mesh"]) {
    devices *= axis[1].get<std::int64_t>();
    if (axis[0] == "dp") data = axis[1];
  }
  const Imported imported =
      import_launch("megatron", arguments_of(record, data), "record.args", {.devices = devices});
  const Experiment experiment = read_experiments(*imported.experiment, "record").front();
  const CompiledStep step = compile_experiment(experiment);
  const std::size_t stages = record["mesh"][0][1], rank = record["rank"];
  const std::size_t stage = settings.contains("pp_rank")
                                ? settings["pp_rank"].get<std::size_t>()
                                : rank / (record["world_size"].get<std::size_t>() / stages);
  const Totals ours = planned(step.plan, step.plan.programs.at(stage));
  for (const auto& [kind, theirs] : recorded(record)) {
    INFO(record["id"] << " " << kind);
    const auto found = ours.find(kind);
    const Sent sent = found == ours.end() ? Sent{} : found->second;
    CHECK(sent.calls == theirs.calls);
    CHECK(sent.bytes == theirs.bytes);
  }
}

}  // namespace

TEST_CASE("Imported arguments send what Megatron-Core's ranks did", "[golden]") {
  if (!std::filesystem::exists(golden_folder("megatron"))) return;
  int compared = 0;
  for (const auto& [file, record] : test::megatron_records()) {
    compare(record);
    ++compared;
  }
  CHECK(compared > 20);
}

}  // namespace shardsim::launch_golden_test
