// Megatron-LM's arguments: pretrain_gpt.py --num-layers 32 ...
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/megatron_facts.hpp"
#include "launch/model_families.hpp"

namespace shardsim {
namespace {
namespace megatron {

// tokenizer.py: _NullTokenizer counts an end-of-document token to --vocab-size. The vocabularies of
// the others are those of the models that they are called by.
constexpr std::int64_t gpt2_vocabulary = 50257;
constexpr std::int64_t llama2_vocabulary = 32000;
constexpr std::int64_t vocabulary_multiple = 128;

void find_vocabulary(Facts& facts, Notes& notes) {
  if (facts.has("arg.padded_vocabulary")) {
    facts.set("model.vocab", facts.integer("arg.padded_vocabulary"));
  }
  const bool has_tokenizer = facts.has("arg.tokenizer");
  const bool is_null = facts.is("arg.tokenizer", "NullTokenizer");
  if (facts.has("model.vocab")) {
    if (is_null) facts.set("model.vocab", facts.integer("model.vocab") + 1);
    return;
  }
  const bool bytes = facts.is("arg.tokenizer", "GPT2BPETokenizer");
  if (bytes || (!has_tokenizer && facts.has("arg.merges"))) {
    facts.set("model.vocab", gpt2_vocabulary);
    notes.push_back(fmt::format("the vocabulary is taken as GPT-2's, {} tokens", gpt2_vocabulary));
  } else if (facts.is("arg.tokenizer", "Llama2Tokenizer")) {
    facts.set("model.vocab", llama2_vocabulary);
    notes.push_back(
        fmt::format("the vocabulary is taken as Llama 2's, {} tokens", llama2_vocabulary));
  } else {
    facts.fail(has_tokenizer ? "arg.tokenizer" : "model.vocab",
               "how many tokens there are is known to the tokenizer alone: add "
               "vocab-size=32000 behind the file");
  }
}

void find_model(Facts& facts, Notes& notes) {
  const bool latent = facts.flag("model.latent");
  const bool grouped = facts.flag("arg.grouped_query") && !latent;
  if (grouped) {
    facts.set("model.kv_heads", facts.integer_or("arg.query_groups", 1));
    if (facts.integer("model.heads") % facts.integer("model.kv_heads") != 0) {
      facts.fail("arg.query_groups",
                 fmt::format("{} groups do not divide {} heads", facts.integer("model.kv_heads"),
                             facts.integer("model.heads")));
    }
  }
  find_vocabulary(facts, notes);
  const bool clamped = facts.flag("model.clamped");  // a gate of its own
  const bool gated = clamped || facts.is("arg.activation", "swiglu");
  facts.set("model.gated", gated);
  facts.set("model.activation", gated ? Json("silu") : facts.at("arg.activation"));
  find_megatron_pattern(facts);
  if (facts.flag("model.weighs_input")) {  // Llama 4, whose arguments have all layers alike
    facts.set("model.routed_step", 1);
    facts.set("model.chunk", 0);
    facts.set("model.nope_interval", facts.integer("model.layers") + 1);
    facts.erase("model.qk_norm");
  }
  if (!facts.has("model.width") && facts.has("model.hidden")) {
    // arguments.py: two thirds of four times, in multiples of 64, of gated layers.
    const std::int64_t four = 4 * facts.integer("model.hidden");
    facts.set("model.width", gated ? four * 2 / 3 / 64 * 64 : four);
  }
  if (facts.has("arg.window")) facts.set("model.window", megatron_window(facts));
  if (latent) {
    // MLA's own defaults (arguments.py).
    const std::pair<const char*, std::int64_t> sizes[] = {{"model.kv_rank", 32},
                                                          {"model.nope_dim", 128},
                                                          {"model.rope_dim", 64},
                                                          {"model.value_dim", 128}};
    for (const auto& [name, size] : sizes) {
      if (!facts.has(name)) facts.set(name, size);
    }
    facts.erase("model.head_dim");
    facts.erase("model.qk_norm");  // of latents: norms that are always there
  }
  if (facts.has("model.experts")) {
    if (!facts.has("model.top_k")) facts.set("model.top_k", 2);
    if (!facts.has("model.expert_width")) facts.set("model.expert_width", facts.at("model.width"));
    facts.set("model.dense_layers", megatron_dense_layers(facts));
  }
}

void read_experts(Facts& facts, Json& experiment) {
  const std::int64_t parallel = facts.integer("arg.ep");
  if (!facts.has("model.experts")) {
    if (parallel > 1) facts.fail("arg.ep", "experts over devices, and the model has none");
    return;
  }
  if (facts.integer("model.experts") % parallel != 0) {
    facts.fail("arg.ep", fmt::format("{} devices do not divide {} experts", parallel,
                                     facts.integer("model.experts")));
  }
  const bool has_group = parallel > 1 || facts.integer("mesh.tp") > 1;
  // Of models with sigmoid scores the class computes in fp32, and Megatron where it is told to.
  const bool differs = facts.has("arg.router_dtype") != facts.is("model.scores", "sigmoid");
  if (!has_group && !differs && facts.flag("arg.grouped_products") && !facts.has("arg.capacity")) {
    return;
  }
  Json& experts = experiment["strategy"]["experts"];
  experts["parallel"] = parallel;
  if (facts.has("arg.etp")) experts["tensor_parallel"] = facts.integer("arg.etp");
  experts["grouped"] = facts.flag("arg.grouped_products");
  if (facts.flag("arg.shared_beside") && facts.has("model.shared_width")) {
    experts["shared_beside"] = true;
  }
  if (differs) experts["router_dtype"] = facts.has("arg.router_dtype") ? "fp32" : "bf16";
  if (parallel > 1) {
    const bool flexible = facts.is("arg.dispatch", "flex");
    experts["dispatch"] = facts.at(flexible ? "arg.flex" : "arg.dispatch");
  }
  if (!facts.has("arg.capacity")) return;
  const double capacity = facts.number("arg.capacity");
  if (capacity < 0) return;  // Megatron's own word for none
  experts["capacity_factor"] = capacity;
  if (!facts.flag("arg.pads_experts")) experts["pad_to_capacity"] = false;
}

// Sizes of groups from the inside out, of an all-to-all within a ring.
void read_context(Facts& facts, Json& experiment) {
  const std::int64_t cp = facts.integer("mesh.cp");
  if (cp == 1) return;
  Json& context = experiment["strategy"]["context"];
  context["method"] = facts.at("arg.context");
  if (!facts.is("arg.context", "ring+all-to-all")) return;
  const std::vector<std::int64_t> sizes = megatron_context_sizes(facts);
  if (sizes.size() != 2 || sizes[0] * sizes[1] != cp) {
    facts.fail(facts.has("arg.context_sizes") ? "arg.context_sizes" : "arg.context",
               fmt::format("a2a+p2p needs two sizes whose product is {}, of the groups that "
                           "exchange heads and of the rings: "
                           "--hierarchical-context-parallel-sizes 2 {}",
                           cp, std::max<std::int64_t>(cp / 2, 1)));
  }
  context["head_devices"] = sizes[0];
}

void to_experiment(Facts& facts, const LaunchOptions& options, Notes& notes, Json& experiment) {
  const std::int64_t tp = facts.integer("mesh.tp"), pp = facts.integer("mesh.pp");
  const std::int64_t cp = facts.integer("mesh.cp");
  if (!facts.has("devices")) {
    facts.fail("devices",
               "does not say how many devices it is launched on (torchrun --nproc_per_node, "
               "--nnodes): add --devices 64");
  }
  const std::int64_t dp =
      rest_of_devices(facts, tp * pp * cp, "the tensor, pipeline and context parallel sizes",
                      {"mesh.tp", "mesh.pp", "mesh.cp"});
  Json& mesh = experiment["mesh"];
  const bool data_first = facts.flag("arg.data_first");
  const std::pair<const char*, std::int64_t> axes[] = {
      {data_first ? "dp" : "pp", data_first ? dp : pp},
      {data_first ? "pp" : "dp", data_first ? pp : dp},
      {"cp", cp},
      {"tp", tp}};
  for (const auto& [name, size] : axes) {
    if (size > 1) mesh[name] = size;
  }
  Json& workload = experiment["workload"];
  const BatchSize size = batch_size(facts, facts.integer("arg.microbatch"), dp);
  workload["batch"] = size.batch;
  workload["microbatches"] = size.microbatches;
  const double dropout =
      std::max(facts.number("arg.attention_dropout"), facts.number("arg.hidden_dropout"));
  workload["dropout"] = dropout;  // else it is the model's own
  if (facts.number("arg.attention_dropout") != facts.number("arg.hidden_dropout")) {
    notes.push_back(fmt::format("dropout is taken as {} in attention and behind it", dropout));
  }
  if (facts.flag("arg.packs")) {
    notes.emplace_back(
        "documents are packed into sequences: attention is planned as if each sequence were one, "
        "unless --set workload.documents=TOKENS says how long they are");
  }
  divide_megatron_pattern(facts);
  if (options.model.is_null()) {
    find_model(facts, notes);
    workload["model"] = config_of_facts(facts);
  }
  read_megatron_types(facts, workload);
  read_megatron_recompute(facts, workload);
  Json& strategy = experiment["strategy"];
  if (facts.number("arg.clip") == 0) strategy["clip_gradients"] = false;
  if (tp == 1) strategy["sequence_parallel"] = false;
  read_context(facts, experiment);
  if (const std::int64_t multiple = facts.integer("arg.vocabulary_multiple");
      multiple != vocabulary_multiple || facts.has("arg.padded_vocabulary")) {
    strategy["vocabulary_multiple"] = facts.has("arg.padded_vocabulary") ? 1 : multiple * tp;
  }
  read_megatron_sharding(facts, notes, experiment);
  read_experts(facts, experiment);
  read_megatron_routing(facts, experiment);
  read_megatron_overlap(facts, experiment);
  read_megatron_offload(facts, experiment);
  read_megatron_stages(facts, experiment);
  read_megatron_kernels(facts, experiment);
}

void add_expert_facts(const Json& strategy, std::int64_t tp, Facts& facts) {
  if (!facts.has("model.experts")) return;
  facts.set("arg.grouped_products", true);
  const Json experts = json_at(strategy, "experts");
  Json dtype = json_at(strategy, "experts.router_dtype");
  if (dtype.is_null()) dtype = facts.is("model.scores", "sigmoid") ? "fp32" : "bf16";
  if (dtype == "fp32") facts.set("arg.router_dtype", dtype);
  add_megatron_routing_facts(experts, facts);
  if (!experts.is_object()) return;
  facts.set("arg.ep", experts["parallel"]);
  if (experts["tensor_parallel"] != tp) facts.set("arg.etp", experts["tensor_parallel"]);
  facts.set("arg.grouped_products", experts["grouped"]);
  facts.set("arg.shared_beside", experts["shared_beside"]);
  const bool flexible = experts["dispatch"] == "deepep" || experts["dispatch"] == "hybridep";
  facts.set("arg.dispatch", flexible ? Json("flex") : experts["dispatch"]);
  if (flexible) facts.set("arg.flex", experts["dispatch"]);
  if (!experts.contains("capacity_factor")) return;
  facts.set("arg.capacity", experts["capacity_factor"]);
  facts.set("arg.pads_experts", experts["pad_to_capacity"]);
}

void add_strategy_facts(const Json& strategy, std::int64_t tp, std::int64_t data, Facts& facts) {
  facts.set("strategy.sequence_parallel", strategy["sequence_parallel"]);
  add_megatron_overlap_facts(strategy, facts);
  if (json_at(strategy, "clip_gradients") == false) facts.set("arg.clip", 0.0);
  const std::int64_t multiple = integer_at(strategy, "vocabulary_multiple", 1);
  if (multiple % tp == 0) facts.set("arg.vocabulary_multiple", multiple / tp);
  facts.set("arg.context", json_at(strategy, "context.method"));
  if (const std::int64_t heads = integer_at(json_at(strategy, "context"), "head_devices", 0)) {
    facts.set("arg.context_sizes", {heads, facts.integer("mesh.cp") / heads});
  }
  add_megatron_offload_facts(strategy, facts);
  add_megatron_buffer_facts(strategy, data, facts);
  add_expert_facts(strategy, tp, facts);
  add_megatron_stage_facts(strategy, facts);
  add_megatron_kernel_facts(strategy, facts);
}

void from_experiment(const Json& resolved, const Json& config, const Place& place, Facts& facts) {
  add_mesh_facts(resolved["mesh"], json_at(resolved, "roles"),
                 {{AxisRole::stages, "mesh.pp"},
                  {AxisRole::batch, "mesh.replicas"},
                  {AxisRole::shard, "mesh.shards"},
                  {AxisRole::context, "mesh.cp"},
                  {AxisRole::model, "mesh.tp"}},
                 facts.whole(), facts);
  const std::int64_t tp = facts.integer_or("mesh.tp", 1), cp = facts.integer_or("mesh.cp", 1);
  const std::int64_t dp = facts.integer_or("mesh.replicas", 1) * facts.integer_or("mesh.shards", 1);
  const Json& workload = resolved["workload"];
  const std::int64_t batch = workload["batch"], microbatches = workload["microbatches"];
  facts.set("workload.batch", batch);
  facts.set("arg.microbatch", batch / (dp * microbatches));
  facts.set("workload.sequence", json_at(workload, "sequence"));
  facts.set("workload.mtp_layers", json_at(workload, "mtp_layers"));
  facts.set("workload.optimizer", workload["optimizer"]);
  const Json dropout = workload.contains("dropout") ? workload["dropout"] : Json(0.0);
  facts.set("arg.attention_dropout", dropout);
  facts.set("arg.hidden_dropout", dropout);
  add_megatron_model_facts(config, place, facts);
  add_megatron_type_facts(workload["precision"], facts);
  add_megatron_recompute_facts(workload["rematerialization"], facts);
  add_strategy_facts(resolved["strategy"], tp, dp * cp, facts);
  for (const char* fact : {"mesh.replicas", "mesh.shards"}) facts.erase(fact);
  std::vector<std::string> order;
  for (const auto& [axis, size] : resolved["mesh"].items()) {
    if (size != 1) order.push_back(axis);
  }
  const AxisRoles roles;
  const auto is_stages = [&](const std::string& axis) {
    return roles.of(axis) == AxisRole::stages;
  };
  const auto stages = std::find_if(order.begin(), order.end(), is_stages);
  if (stages != order.begin() && stages != order.end()) facts.set("arg.data_first", true);
}

}  // namespace megatron
}  // namespace

FrameworkFile megatron_file() {
  return {.name = "megatron",
          .file = "megatron.args",
          .meaning = "Megatron-LM's arguments: a launch script, or --key value alone",
          .strategy = "megatron",
          .keys = megatron_keys(),
          .other_programs = {{"pretrain_bert.py", "BERT"},
                             {"pretrain_t5.py", "T5"},
                             {"pretrain_ict.py", "a retriever"},
                             {"pretrain_retro.py", "a retriever"},
                             {"pretrain_vision_classify.py", "a network over images"},
                             {"pretrain_vision_dino.py", "a network over images"},
                             {"pretrain_vision_inpaint.py", "a network over images"},
                             {"pretrain_vlm.py", "a model of images and text"}},
          .to_experiment = megatron::to_experiment,
          .from_experiment = megatron::from_experiment,
          .print = print_arguments};
}

}  // namespace shardsim
