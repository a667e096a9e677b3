// DeepSpeed's JSON: how a step is run, but not of what model, nor on how many devices.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "plan/read_mesh.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {
namespace deepspeed {

// What is ZeRO 3's alone, and the strategy's key for it.
constexpr std::pair<const char*, const char*> keys_of_stage_3[] = {
    {"arg.prefetch", "prefetch_bucket_elements"},
    {"arg.persistence", "persistence_threshold_elements"},
    {"arg.live", "max_live_elements"},
    {"arg.reuse", "max_reuse_distance_elements"},
    {"arg.sub_group", "sub_group_elements"},
    {"arg.hpz", "hpz"},
    {"arg.qwz", "qwz"},
    {"arg.sequential", "allgather_sequential"},
    {"arg.linear", "memory_efficient_linear"}};

std::int64_t hidden_of(const Json& model, const Facts& facts, std::string_view fact) {
  const Json config = *load_model_config(JsonReader(model, {"--model", ""}), "").json;
  for (const char* key : {"hidden_size", "n_embd", "d_model"}) {
    if (const std::int64_t hidden = integer_at(config, key, 0); hidden > 0) return hidden;
  }
  facts.fail(fact, "\"auto\" follows from the model's width, which its config.json does not say");
}

// transformers/integrations/deepspeed.py, trainer_config_finalize: hidden^2, 0.9 of it, 10 hidden.
std::int64_t filled_in(const Facts& facts, std::string_view fact, const Json& model) {
  const Json& value = facts.at(fact);
  if (value != "auto") {
    if (!value.is_number())
      facts.fail(fact, fmt::format("expected a number, not {}", value.dump()));
    return static_cast<std::int64_t>(value.get<double>());
  }
  const std::int64_t hidden = hidden_of(model, facts, fact);
  if (fact == "arg.persistence") return 10 * hidden;
  return fact == "arg.prefetch" ? 9 * hidden * hidden / 10 : hidden * hidden;
}

// 1e14, "no limit", is beyond what a strategy counts.
Json limited(std::int64_t elements) { return std::min(elements, largest_number); }

Mesh mesh_of(const Facts& facts, const LaunchOptions& options) {
  if (!options.mesh.empty()) {
    const Json text = options.mesh;
    return read_mesh(JsonReader(text, {"command line", "--mesh"}));
  }
  if (!facts.has("devices")) {
    facts.fail("devices", "does not say on how many devices: add --devices 8, or --mesh dp=4,tp=2");
  }
  const std::int64_t tp = facts.integer_or("arg.tp", 1);
  const std::int64_t dp = rest_of_devices(facts, std::max<std::int64_t>(tp, 1),
                                          "tensor_parallel.autotp_size", {"arg.tp"});
  std::vector<MeshAxis> axes;
  if (dp > 1 || tp <= 1) axes.push_back({"dp", dp});
  if (tp > 1) axes.push_back({"tp", tp});
  return Mesh(axes);
}

void read_batch(Facts& facts, std::int64_t shares, Json& workload) {
  const bool has_batch = facts.has("workload.batch"), has_size = facts.has("arg.microbatch");
  const bool has_number = facts.has("arg.microbatches");
  if (!has_batch && !has_size) {
    facts.fail("arg.microbatch",
               "says neither train_batch_size nor train_micro_batch_size_per_gpu: add "
               "train_micro_batch_size_per_gpu=4 behind the file");
  }
  const std::int64_t number = facts.integer_or("arg.microbatches", 1);
  std::int64_t size = has_size ? facts.integer("arg.microbatch") : 0;
  if (!has_size) {
    const std::int64_t batch = facts.integer("workload.batch");
    if (batch % (number * shares) != 0) {
      facts.fail("workload.batch",
                 fmt::format("a batch of {} is no multiple of {} microbatches on {} data-parallel "
                             "ranks",
                             batch, number, shares));
    }
    size = batch / (number * shares);
  }
  const BatchSize found = batch_size(facts, size, shares);
  if (has_batch && has_number && found.microbatches != number) {
    facts.fail("workload.batch",
               fmt::format("a batch of {} is not {} microbatches of {} on {} data-parallel ranks",
                           found.batch, number, size, shares));
  }
  workload["microbatches"] = has_batch ? found.microbatches : number;
  workload["batch"] = has_batch ? found.batch : found.batch * number;
}

void read_types(const Facts& facts, Json& workload) {
  const bool half = facts.flag("arg.fp16"), bf16 = facts.flag("arg.bf16");
  if (half && bf16) facts.fail("arg.fp16", "fp16 and bf16 are both enabled");
  const std::string type = bf16 ? "bf16" : half ? "fp16" : "fp32";
  Json& precision = workload["precision"];
  precision = {{"compute", type},
               {"parameters", type},
               {"gradients", facts.has("arg.gradients") ? facts.at("arg.gradients") : Json(type)},
               {"master", type == "fp32" ? "none" : "fp32"},
               {"moments", "fp32"}};
  if (facts.has("arg.reduce")) precision["reduce"] = facts.at("arg.reduce");
}

// "auto" of what follows from others, or of what transformers' own arguments have unless told
// otherwise (integrations/deepspeed.py, trainer_config_process): one microbatch, the other type.
void settle_automatic(Facts& facts, Notes& notes) {
  const auto is_auto = [&](std::string_view fact) {
    return facts.has(fact) && facts.at(fact) == "auto";
  };
  if (is_auto("workload.batch")) facts.erase("workload.batch");
  if (is_auto("arg.microbatches")) {
    facts.set("arg.microbatches", 1);
    notes.emplace_back(
        "gradient_accumulation_steps is \"auto\": taken as 1, transformers' default");
  }
  for (const auto& [fact, other] : {std::pair{"arg.fp16", "arg.bf16"}, {"arg.bf16", "arg.fp16"}}) {
    if (is_auto(fact) && facts.at(other) == true) facts.set(fact, false);
  }
  for (const char* fact : {"arg.fp16", "arg.bf16"}) {
    if (!is_auto(fact)) continue;
    facts.fail(fact,
               "\"auto\" is filled in by the program that reads the file: add "
               "bf16.enabled=true or fp16.enabled=true behind it");
  }
}

void note_overlap(const Facts& facts, std::int64_t stage, Notes& notes) {
  if (stage < 2) return;
  const bool overlaps = facts.has("arg.overlaps") ? facts.flag("arg.overlaps") : stage == 3;
  if (overlaps) return;
  notes.emplace_back(
      "without \"overlap_comm\" DeepSpeed's backward pass waits for each reduction; they are "
      "planned "
      "beside it");
}

// What buckets' calls are of, and what is computed of all gradients.
void read_gradients(const Facts& facts, std::int64_t stage, const Json& precision, Json& strategy) {
  const bool is_parted = stage == 1 || stage == 2;
  if (!facts.flag("arg.scatters")) {
    if (stage == 3) {
      facts.fail("arg.scatters",
                 "false, which all-reduces a bucket of ZeRO 3 and cuts it up, is not simulated: "
                 "leave it out");
    }
    if (is_parted) strategy["reduce_scatter"] = false;
  }
  // DeepSpeed asks of 16 bits alone whether a gradient is not finite, of bf16 unless told not to.
  const bool wide = precision["parameters"] == "fp32";
  const bool checks = precision["parameters"] != "bf16" || facts.flag("arg.checks_overflow");
  if (is_parted && (wide || !checks)) strategy["check_overflow"] = false;
  if (facts.flag("arg.norm")) return;
  if (!is_parted) facts.fail("arg.norm", "false is of ZeRO 1 and 2, as DeepSpeed has it");
  if (facts.at("arg.clip") == "auto" || facts.number("arg.clip") > 0) {
    facts.fail("arg.norm", "false needs \"gradient_clipping\": 0, as DeepSpeed has it");
  }
  strategy["clip_gradients"] = false;
}

// Parameters of so many elements in all may stay whole; none: their own threshold.
void read_whole_in_all(const Facts& facts, const Json& model, Json& strategy) {
  if (!facts.has("arg.whole_in_all")) return;
  const std::int64_t elements = filled_in(facts, "arg.whole_in_all", model);
  if (elements >= largest_number) return;
  if (elements > 0) {
    strategy["model_persistence_elements"] = elements;
  } else {
    strategy["persistence_threshold_elements"] = 0;
  }
}

void to_experiment(Facts& facts, const LaunchOptions& options, Notes& notes, Json& experiment) {
  Json& workload = experiment["workload"];
  settle_automatic(facts, notes);
  if (options.model.is_null()) {
    facts.fail("model", "says nothing of the model: add --model llama-3.1-8b, or its config.json");
  }
  if (options.sequence) workload["sequence"] = *options.sequence;
  const Mesh mesh = mesh_of(facts, options);
  const AxisRoles roles;
  std::int64_t shares = 1;
  for (const MeshAxis& axis : mesh.axes()) {
    const auto role = roles.of(axis.name);
    if (role == AxisRole::batch || role == AxisRole::shard) shares *= axis.size;
    experiment["mesh"][axis.name] = axis.size;
  }
  read_batch(facts, shares, workload);
  read_types(facts, workload);
  Json& strategy = experiment["strategy"];
  const std::int64_t stage = facts.integer("strategy.zero_stage", 0);
  note_overlap(facts, stage, notes);
  if (stage == 0 && facts.at("arg.clip") != "auto" && facts.number("arg.clip") > 0) {
    strategy["clip_gradients"] = true;
  }
  if (facts.has("arg.bucket")) {
    strategy["bucket_elements"] = limited(filled_in(facts, "arg.bucket", *options.model));
  }
  if (stage == 0 || stage == 3) strategy.erase("round_robin_gradients");
  const bool by_device =
      facts.has("arg.optimizer_device") && facts.at("arg.optimizer_device") == "cpu";
  if (by_device || facts.flag("arg.optimizer_on_host")) strategy["offload"]["optimizer"] = "cpu";
  const bool parameters_there =
      facts.flag("arg.parameters_on_host") ||
      (facts.has("arg.parameters_device") && facts.at("arg.parameters_device") == "cpu");
  if (parameters_there && stage == 3) strategy["offload"]["parameters"] = "cpu";
  read_gradients(facts, stage, workload["precision"], strategy);
  if (stage != 3) return;
  for (const auto& [fact, key] : keys_of_stage_3) {
    if (!facts.has(fact)) continue;
    strategy[key] = facts.at(fact).is_boolean() ? facts.at(fact)
                                                : limited(filled_in(facts, fact, *options.model));
  }
  read_whole_in_all(facts, *options.model, strategy);
}

void from_experiment(const Json& resolved, const Json&, const Place&, Facts& facts) {
  const Json& workload = resolved["workload"];
  const Json& strategy = resolved["strategy"];
  std::int64_t shares = 1;
  for (const Json& axis : strategy["batch_axes"]) {
    shares *= integer_at(resolved["mesh"], axis.get<std::string>(), 1);
  }
  const std::int64_t batch = workload["batch"], microbatches = workload["microbatches"];
  facts.set("workload.batch", batch);
  facts.set("arg.microbatch", batch / shares / microbatches);
  facts.set("arg.microbatches", microbatches);
  const Json& precision = workload["precision"];
  facts.set("arg.bf16", precision["parameters"] == "bf16");
  facts.set("arg.fp16", precision["parameters"] == "fp16");
  if (precision["gradients"] != precision["parameters"]) {
    facts.set("arg.gradients", precision["gradients"]);
  }
  facts.set("arg.reduce", json_at(precision, "reduce"));
  facts.set("workload.optimizer", workload["optimizer"]);
  const Json buffer = json_at(strategy, "gradient_buffer");
  const Json flat = json_at(strategy, "flat_parameters");
  const Json optimizer = json_at(strategy, "flat_optimizer");
  const std::int64_t stage = flat.is_object()                      ? 3
                             : json_at(buffer, "kept") == "shards" ? 2
                             : optimizer.is_object()               ? 1
                                                                   : 0;
  facts.set("strategy.zero_stage", stage);
  facts.set("arg.bucket", json_at(buffer, "bucket_elements"));
  if (stage == 0 && json_at(strategy, "clip_gradients") == true) facts.set("arg.clip", 1.0);
  if (stage > 0) facts.set("arg.clip", 1.0);
  if (json_at(buffer, "whole_calls") == true) facts.set("arg.scatters", false);
  if (stage == 1 || stage == 2) {
    const bool clips = json_at(strategy, "clip_gradients") == true;
    facts.set("arg.norm", clips);
    facts.set("arg.clip", clips ? 1.0 : 0.0);
    if (precision["parameters"] == "bf16" && json_at(strategy, "check_overflow") == false) {
      facts.set("arg.checks_overflow", false);
    }
  }
  if (json_at(optimizer, "deals_out") == true) facts.set("strategy.round_robin_gradients", true);
  if (json_at(json_at(strategy, "offload"), "optimizer") == "cpu") {
    facts.set("arg.optimizer_device", "cpu");
  }
  if (json_at(json_at(strategy, "offload"), "parameters") == "cpu") {
    facts.set("arg.parameters_device", "cpu");
  }
  if (stage < 3) return;
  facts.set("arg.prefetch", flat["prefetch_elements"]);
  facts.set("arg.persistence", flat["whole_elements"]);
  facts.set("arg.live", flat["live_elements"]);
  facts.set("arg.reuse", flat["reuse_elements"]);
  facts.set("arg.sub_group", json_at(optimizer, "group_elements"));
  if (integer_at(flat, "secondary_shards", 0) > 1) facts.set("arg.hpz", flat["secondary_shards"]);
  if (json_at(flat, "quantized") == true) facts.set("arg.qwz", true);
  if (json_at(flat, "one_by_one") == true) facts.set("arg.sequential", true);
  if (json_at(flat, "linear_functions") == false) facts.set("arg.linear", false);
  if (integer_at(flat, "whole_in_all", 0) > 0) {
    facts.set("arg.whole_in_all", flat["whole_in_all"]);
  }
}

}  // namespace deepspeed
}  // namespace

FrameworkFile deepspeed_file() {
  return {.name = "deepspeed",
          .file = "deepspeed.json",
          .meaning = "DeepSpeed's JSON, with --model, --devices or --mesh, and --sequence",
          .strategy = "deepspeed",
          .keys = deepspeed_keys(),
          .read = read_json_keys,
          .to_experiment = deepspeed::to_experiment,
          .from_experiment = deepspeed::from_experiment,
          .print = print_json_keys,
          .has_comments = false,
          .elsewhere = {"workload.rematerialization", "workload.dropout", "workload.trainable",
                        "workload.lora", "workload.mtp_layers", "strategy.sequence_parallel",
                        "strategy.pipeline", "strategy.kernels"}};
}

}  // namespace shardsim
