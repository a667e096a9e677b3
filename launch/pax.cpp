// Pax's experiments: a command that names one (--exp=tasks.lm.params.lm_cloud.LmCloudSpmd32B), or
// the Python that defines them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/pax_classes.hpp"

namespace shardsim {
namespace {
namespace pax {

// Keys of the command as main.py has them; constants that it sets, --fdl.NUM_LAYERS=4, by name.
std::vector<Entry> entries_of_command(const std::string& text, const std::string& file) {
  std::string command = text;
  constexpr std::string_view module = "-m paxml.main";
  if (const std::size_t at = command.find(module); at != std::string::npos) {
    command.replace(at, module.size(), "paxml/main.py");
  }
  std::vector<Entry> entries = read_arguments(command, file).entries;
  for (Entry& entry : entries) {
    std::replace(entry.key.begin(), entry.key.end(), '-', '_');
    entry.said = "--" + entry.key;
    if (!entry.key.starts_with("fdl.")) continue;
    entry.key.erase(0, 4);
    if (entry.value->is_string()) {
      entry.value = OwnedJson(value_of_word(entry.value->get<std::string>()));
    }
  }
  return entries;
}

KeyFile read(const std::string& text, const std::string& file) {
  KeyFile read;
  if (!is_pax_python(text)) read.entries = entries_of_command(text, file);
  return read;
}

constexpr std::int64_t largest_axis = std::int64_t{1} << 20;
constexpr std::int64_t most_layers = 10000;

// The only experiment of a file of Python, where none is named.
Entry only_experiment(const std::vector<PaxFileClass>& classes, const std::string& file) {
  std::vector<std::string> names;
  for (const PaxFileClass& one : classes) {
    if (one.registered) names.push_back(one.name);
  }
  if (names.size() == 1) return {"exp", "exp", OwnedJson(Json(names[0])), {file, names[0]}};
  throw InputError({file, ""}, names.empty()
                                   ? std::string("names no experiment: --exp=NAME")
                                   : fmt::format("has {} experiments: add exp={}", names.size(),
                                                 fmt::join(names, ", exp=")));
}

std::vector<Entry> expand(std::vector<Entry> entries, const std::string& text,
                          const std::string& file) {
  std::vector<PaxFileClass> classes;
  if (is_pax_python(text)) classes = read_pax_python(text, file);
  const auto named = [](const Entry& entry) {
    return entry.key == "exp" || entry.key == "fdl_config";
  };
  auto experiment = std::find_if(entries.begin(), entries.end(), named);
  if (experiment == entries.end()) {
    entries.push_back(only_experiment(classes, file));
    experiment = entries.end() - 1;
  }
  if (!experiment->value->is_string()) {
    throw InputError(experiment->place, "expected an experiment's name");
  }
  const std::string name = experiment->value->get<std::string>();
  for (Entry& constant : pax_constants(name, classes, experiment->place)) {
    const bool given = std::any_of(entries.begin(), entries.end(),
                                   [&](const Entry& entry) { return entry.key == constant.key; });
    if (!given) entries.push_back(std::move(constant));
  }
  return entries;
}

std::int64_t heads_of(const Facts& facts) {
  const std::int64_t hidden = facts.integer("model.hidden");
  if (!facts.has("model.head_dim")) return facts.integer("model.heads");
  const std::int64_t dim = facts.integer("model.head_dim");
  if (!facts.has("model.heads") && hidden % dim == 0) return hidden / dim;
  const std::int64_t heads = facts.integer("model.heads");
  if ((hidden % heads != 0 || hidden / heads != dim) && !facts.is("arg.model", "bert")) {
    facts.fail("model.heads",
               fmt::format("{} heads of {} do not make MODEL_DIMS, {}", heads, dim, hidden));
  }
  return heads;
}

// What task() of these classes says beyond constants: configure_gpt3_task, Llama2_7B, MoELarge.
void apply_recipe(const Facts& facts, Json& model) {
  const std::string recipe = facts.text("arg.recipe");
  if (recipe == "gpt3") {
    model["use_bias"] = true;
    model["per_dim_scale"] = model["head_bias"] = model["scaled_embedding"] = false;
    model.erase("logit_cap");
  }
  if (recipe == "llama") {  // GroupedQueryAttention has biases unless told otherwise
    model["use_bias"] = model["gated"] = true;
    model["per_dim_scale"] = model["combine_qkv"] = false;
    model["hidden_act"] = "silu";
    model["normalization"] = "rms";
    model["position_embedding"] = "rope";
    model["num_key_value_heads"] = facts.integer("model.kv_heads");
    model.erase("max_position_embeddings");
    model.erase("attention_cap");
  }
  if (recipe == "experts") model["num_experts"] = facts.integer("model.experts");
  if (recipe == "glam") facts.fail("arg.recipe", "GLaM's own layers are not simulated");
}

Json language_model(const Facts& facts) {
  const bool spmd = !facts.is("arg.parallel", "pmap");
  const std::int64_t heads = heads_of(facts), hidden = facts.integer("model.hidden");
  if (hidden % heads != 0) facts.fail("model.heads", "do not divide MODEL_DIMS");
  Json model = {{"architectures", {"TransformerLm"}},
                {"model_type", "praxis_lm"},
                {"hidden_size", hidden},
                {"intermediate_size", facts.integer("model.width")},
                {"num_hidden_layers", facts.integer("model.layers")},
                {"num_attention_heads", heads},
                {"head_dim", hidden / heads},
                {"vocab_size", facts.integer("model.vocab")},
                {"hidden_act", facts.at("model.activation")},
                {"gated", facts.flag("model.gated")},
                {"use_bias", facts.flag("model.bias")},
                {"combine_qkv", facts.has("model.combined") ? facts.flag("model.combined") : spmd},
                {"tie_word_embeddings", !facts.flag("model.apart")}};
  if (facts.is("arg.model", "bert")) {
    model["bidirectional"] = true;
    model["attention_cap"] = 50.0;  // TransformerBert*
    model["logit_cap"] = 30.0;
  }
  for (const char* cap : {"attention_cap", "logit_cap"}) {
    const double value = facts.number(fmt::format("model.{}", cap));
    if (value > 0) model[cap] = value;
  }
  if (facts.flag("model.rotary")) model["position_embedding"] = "rope";
  if (facts.flag("model.learned")) {
    model["position_embedding"] = "learned";
    model["max_position_embeddings"] = facts.integer("model.positions");
  }
  apply_recipe(facts, model);
  return model;
}

// MLPBlock, whose last layer is as wide as the softmax reads, and the softmax.
Json classifier(const Facts& facts) {
  const std::int64_t inputs = facts.integer("classifier.inputs");
  if (facts.integer("classifier.layers") > most_layers) {
    facts.fail("classifier.layers", fmt::format("are more than {}", most_layers));
  }
  Json hidden = Json::array();
  for (std::int64_t i = 1; i < facts.integer("classifier.layers"); ++i) {
    hidden.push_back(facts.integer("classifier.hidden"));
  }
  hidden.push_back(facts.integer("classifier.outputs"));
  return {{"model_type", "mlp_classifier"},
          {"inputs", inputs},
          {"hidden", hidden},
          {"classes", inputs}};
}

std::vector<std::int64_t> shape_of(const Facts& facts, const std::string& fact, std::size_t rank) {
  if (!facts.has(fact)) return std::vector<std::int64_t>(rank, 1);
  const Json& shape = facts.at(fact);
  std::vector<std::int64_t> sizes;
  for (const Json& size : shape.is_array() ? shape : Json::array()) {
    if (!size.is_number_integer() || size < 1 || size > largest_axis) break;
    sizes.push_back(size.get<std::int64_t>());
  }
  if (sizes.size() != rank || shape.size() != rank) {
    facts.fail(fact, fmt::format("expected {} sizes: [{}]", rank,
                                 rank == 4 ? "stage, replica, data, mdl" : "replica, data, mdl"));
  }
  return sizes;
}

// The number of devices.
std::int64_t read_mesh(const Facts& facts, const LaunchOptions& options, Json& experiment) {
  if (facts.is("arg.parallel", "pmap")) {
    if (!facts.has("devices")) {
      facts.fail("arg.parallel", "pmap runs on the devices that are there: add --devices 8");
    }
    experiment["mesh"]["replica"] = facts.integer("devices");
    return facts.integer("devices");
  }
  std::vector<std::string> axes = {"replica", "data", "mdl"};
  if (facts.is("arg.parallel", "pipeline")) axes.insert(axes.begin(), "stage");
  if (!facts.has("mesh.ici")) facts.fail("mesh.ici", "needed: ICI_MESH_SHAPE=[1, 4, 1]");
  const std::vector<std::int64_t> inside = shape_of(facts, "mesh.ici", axes.size());
  const std::vector<std::int64_t> across = shape_of(facts, "mesh.dcn", axes.size());
  double devices = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    experiment["mesh"][axes[i]] = inside[i] * across[i];
    set_slices(axes[i], across[i], options, experiment);
    devices *= static_cast<double>(inside[i]) * static_cast<double>(across[i]);
  }
  if (devices > static_cast<double>(largest_number)) facts.fail("mesh.ici", "is too large");
  const auto all = static_cast<std::int64_t>(devices);
  if (facts.has("devices") && facts.integer("devices") != all) {
    facts.fail("mesh.ici", fmt::format("makes {} devices, not the {} of --devices", all,
                                       facts.integer("devices")));
  }
  return all;
}

void read_batch(const Facts& facts, std::int64_t devices, Json& workload, Json& strategy) {
  const double whole = facts.number("arg.per_core") * static_cast<double>(devices) + 1e-6;
  if (!(whole < static_cast<double>(largest_number))) facts.fail("arg.per_core", "is too large");
  const auto batch = static_cast<std::int64_t>(whole);
  if (batch < 1) facts.fail("arg.per_core", "is no sequence for all devices together");
  workload["batch"] = batch;
  if (batch % devices != 0) {  // inputs are not on all devices
    strategy["batch_axes"] = Json::array({"replica", "data"});
  }
  if (!facts.is("arg.parallel", "pipeline")) return;
  if (facts.has("arg.microbatches")) {
    workload["microbatches"] = facts.integer("arg.microbatches");
    return;
  }
  const std::int64_t each = facts.integer("arg.microbatch");
  if (batch % each != 0) {
    facts.fail("arg.microbatch", fmt::format("does not divide the batch of {}", batch));
  }
  workload["microbatches"] = batch / each;
}

// layers/checkpoint_policy.py; layers that are not repeated are kept whole.
Json rematerialization(const Facts& facts) {
  const bool repeated = facts.flag("arg.repeated") || facts.is("arg.parallel", "pipeline");
  if (!repeated || !facts.has("arg.policy")) return "none";
  const std::string policy = facts.text("arg.policy");
  const std::vector<std::pair<std::string_view, Json>> known = {
      {"SAVE_NOTHING", "full"},
      {"SAVE_EVERYTHING", "none"},
      {"SAVE_DOT_ONLY", {{"policy", "checkpoint_dots"}}},
      {"SAVE_DOT_WITH_NO_BATCH_DIM", {{"policy", "checkpoint_dots_with_no_batch_dims"}}},
      {"SAVE_CONTEXT", {{"save", {"context"}}}},
      {"SAVE_OUT_PROJ", {{"save", {"out_proj"}}}},
      {"SAVE_CONTEXT_AND_OUT_PROJ", {{"save", {"context", "out_proj"}}}},
      {"SAVE_QKV_OUT_PROJ", {{"save", {"qkv_proj", "out_proj"}}}},
      {"SAVE_QKV_OUT_PROJ_SEPARATE", {{"save", {"qkv_proj", "out_proj"}}}},
      {"SAVE_DOT_FOR_MLPERF_200B", {{"save", {"qkv_proj", "context", "out_proj"}}}},
      {"SAVE_DOT_EXCEPT_LOGITS_FFN1", {{"save", {"qkv_proj", "context", "out_proj", "mlpwo"}}}},
      {"SAVE_DOT_EXCEPT_LOGITS",
       {{"save", {"qkv_proj", "context", "out_proj", "mlpwi", "mlpwo"}}}}};
  std::vector<std::string_view> names;
  for (const auto& [name, what] : known) {
    if (name == policy) return what;
    names.push_back(name);
  }
  facts.fail("arg.policy", fmt::format("\"{}\" is none of {}", policy, fmt::join(names, ", ")));
}

// Split-dims mappings of TransformerLm.set_sharding_params_v1, by the weights that the model has.
Json weights_of(const Facts& facts, const Json& model) {
  const std::vector<Json> d_n_h = {"data", "mdl", nullptr};
  Json weights = Json::array();
  const auto add = [&](const char* pattern, const std::vector<Json>& split) {
    weights.push_back(Json::array({pattern, split}));
  };
  if (model["combine_qkv"] == true) {
    add("combined_qkv/w$", {nullptr, "data", "mdl", nullptr});
    if (model["use_bias"] == true) add("combined_qkv/b$", {nullptr, "mdl", nullptr});
  } else {
    add("self_attention/(query|key|value)/w$", d_n_h);
    if (model["use_bias"] == true) add("self_attention/(query|key|value)/b$", {"mdl", nullptr});
  }
  add("self_attention/post/w$", d_n_h);
  if (model["use_bias"] == true) add("self_attention/post/b$", {"data"});
  if (model.contains("num_experts")) {
    add("ff_layer/wi(_gate)?_0$", {"data", nullptr, "mdl"});
    add("ff_layer/wo_0$", {"data", "mdl", nullptr});
  } else {
    add("ff_layer/ffn_layer1(_gate)?/linear/w$", {"data", "mdl"});
    add("ff_layer/ffn_layer2/linear/w$", {"mdl", "data"});
    add("ff_layer/ffn_layer[12](_gate)?/bias/b$", {"mdl"});
  }
  add("softmax/logits_ffn/linear/w$", {facts.at("arg.table_axes"), "mdl"});
  if (model.value("head_bias", true)) add("softmax/logits_ffn/bias/b$", {"mdl"});
  if (model["tie_word_embeddings"] == false) {
    add("embedding_lookup/emb_var$", {facts.at("arg.table_axes"), "mdl"});
  }
  if (model.contains("max_position_embeddings")) {
    add("position_emb/emb_var$", {"data", "mdl"});
  }
  return weights;
}

void read_sharding(const Facts& facts, const Json& model, const Json& mesh, Json& strategy) {
  strategy["weights"] = Json::array();
  if (facts.is("arg.model", "classifier") || facts.is("arg.parallel", "pmap")) return;
  const bool staged = facts.is("arg.parallel", "pipeline");
  strategy["weights"] = weights_of(facts, model);
  strategy["repeat_prefix"] = Json::array(
      {Json::array({"/x_layers_0/", Json::array({staged ? Json("stage") : Json(-1)})})});
  if (facts.flag("arg.splits_stream") && mesh.value("mdl", 1) > 1) {
    strategy["activations"] =
        Json::array({{{"pattern", "(_residual|o_proj|mlp|down_proj|embed_tokens|scaled)$"},
                      {"spec", Json::array({Json::array({"replica", "data"}), nullptr, "mdl"})}}});
  }
  if (!staged) return;
  strategy["pipeline"] = {{"schedule", "shifting"},
                          {"repeats", facts.integer("arg.repeats")},
                          {"stream_io", facts.flag("arg.streams")}};
  const std::int64_t stages = facts.integer("arg.stages");
  if (mesh["stage"] != stages) {
    facts.fail("arg.stages", fmt::format("are {}, the mesh has {}", stages, mesh["stage"].dump()));
  }
}

void to_experiment(Facts& facts, const LaunchOptions& options, Notes& notes, Json& experiment) {
  const std::int64_t devices =
      read_mesh(facts, options, experiment);  // adds fields: before references
  Json& workload = experiment["workload"];
  const bool classifies = facts.is("arg.model", "classifier");
  if (workload["model"].is_null()) {
    workload["model"] = classifies ? classifier(facts) : language_model(facts);
  }
  read_batch(facts, devices, workload, experiment["strategy"]);
  if (!classifies) {
    workload["sequence"] = facts.integer("arg.sequence");
    workload["view"] = "praxis";
    workload["rematerialization"] = rematerialization(facts);
  }
  const bool halves =
      facts.is("arg.model", "bert") ? facts.flag("arg.bfloat16") : facts.is("arg.type", "bf16");
  workload["precision"] = {{"compute", halves ? "bf16" : "fp32"},
                           {"parameters", "fp32"},
                           {"gradients", "fp32"},
                           {"master", "none"},
                           {"indices", "int32"}};
  const bool factored = facts.is("arg.optimizer", "adafactor") || facts.flag("arg.adafactor");
  workload["optimizer"] = factored ? "sharded_adafactor" : "adamw";
  read_sharding(facts, workload["model"], experiment["mesh"], experiment["strategy"]);
  if (facts.number("arg.clip") > 0) notes.emplace_back("clipping of gradients is left out");
  if (classifies) return;
  notes.emplace_back(
      "look-ups of tokens read rows; praxis multiplies the table by one-hot rows (lookup_style "
      "\"matmul\"), which is as much work as the logits");
  if (facts.is("arg.parallel", "pipeline")) {
    notes.emplace_back(
        "what enters each layer of a stage is kept, where praxis keeps what enters the stage");
    if (!facts.flag("arg.streams")) {
      notes.emplace_back(
          "embedding and logits are computed on the devices of every stage; Pax deals their "
          "examples out over the stages");
    }
  }
}

}  // namespace pax
}  // namespace

FrameworkFile pax_file() {
  return {.name = "pax",
          .file = "pax.sh",
          .meaning = "a command with --exp, or classes of experiments, for Pax",
          .strategy = "praxis",
          .keys = pax_keys(),
          .read = pax::read,
          .expand = pax::expand,
          .to_experiment = pax::to_experiment};
}

}  // namespace shardsim
