// torchtitan's TOML files.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/torchtitan_models.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {
namespace torchtitan {

constexpr std::string_view float8_converters[] = {"quantize.linear.float8", "float8",
                                                  "quantize.dense.float8"};
constexpr std::string_view mx_converters[] = {"quantize.linear.mx", "mx"};
// What selective_ac_option = "op" saves (workloads/step/saved_names.hpp).
constexpr std::string_view saved_products = "every_other_product";

std::int64_t layers_of(const Json& model) {
  const Json config = *load_model_config(JsonReader(model, {"torchtitan", "/model"}), "").json;
  return integer_at(config, "num_hidden_layers", 0);
}

// Stages as pipeline_parallel.py makes them: the embedding and the head count as layers, the first
// stages have one more where it does not come out.
std::vector<std::int64_t> usual_stages(std::int64_t layers, std::int64_t stages, std::int64_t first,
                                       std::int64_t last) {
  const std::int64_t all = layers + first + last;
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < stages; ++i) {
    std::int64_t count = all / stages + (i < all % stages ? 1 : 0);
    if (i == 0) count -= first;
    if (i == stages - 1) count -= last;
    counts.push_back(count);
  }
  return counts;
}

std::vector<std::int64_t> written_stages(const Facts& facts) {
  std::vector<std::int64_t> counts;
  for (const JsonReader& part :
       JsonReader(facts.at("arg.modules"), facts.place("arg.modules")).elements()) {
    std::int64_t count = 0;
    for (const JsonReader& module : part.elements())
      count += module.string().starts_with("layers.");
    counts.push_back(count);
  }
  return counts;
}

bool has_one_stage(const std::string& schedule) {
  return schedule == "1f1b" || schedule == "gpipe";
}

void read_pipeline(const Facts& facts, const Json& model, Json& strategy) {
  const std::int64_t ranks = facts.integer("mesh.pp");
  if (ranks == 1) return;
  Json& pipeline = strategy["pipeline"];
  const std::string schedule = facts.text("arg.schedule");
  pipeline["schedule"] = schedule;
  if (!facts.text("arg.schedule_file").empty()) {
    pipeline["schedule"] = {{"actions", facts.text("arg.schedule_file")}};
  }
  const std::int64_t first = facts.integer("arg.first_less", 0);
  const std::int64_t last = facts.integer("arg.last_less", 0);
  const std::int64_t layers = layers_of(model);
  std::int64_t stages = ranks * (has_one_stage(schedule) ? 1 : 2);
  std::vector<std::int64_t> counts;
  if (facts.has("arg.modules")) {
    counts = written_stages(facts);
    stages = static_cast<std::int64_t>(counts.size());
  } else {
    if (facts.has("arg.layers_of_stage")) {
      const std::int64_t each = facts.integer("arg.layers_of_stage");
      stages = (layers + first + last + each - 1) / each;
    }
    counts = usual_stages(layers, stages, first, last);
  }
  const auto where = facts.has("arg.modules") ? "arg.modules" : "arg.layers_of_stage";
  if (stages % ranks != 0) {
    facts.fail(where, fmt::format("{} stages are no multiple of {} ranks", stages, ranks));
  }
  if (*std::min_element(counts.begin(), counts.end()) < 0 ||
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != layers) {
    facts.fail(where, fmt::format("{} stages cannot share {} layers", stages, layers));
  }
  pipeline["virtual_stages"] = stages / ranks;
  pipeline["layers"] = counts;
}

// A list, or one name, as older files have it.
std::vector<std::string> converters_of(const Facts& facts) {
  const JsonReader given(facts.at("arg.converters"), facts.place("arg.converters"));
  if (given.is_string()) return {given.string()};
  std::vector<std::string> names;
  for (const JsonReader& one : given.elements()) names.push_back(one.string());
  return names;
}

bool is_among(const std::string& name, const auto& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool converts(const Facts& facts, const auto& names) {
  const std::vector<std::string> converters = converters_of(facts);
  return std::any_of(converters.begin(), converters.end(),
                     [&](const std::string& one) { return is_among(one, names); });
}

void read_types(const Facts& facts, Json& workload) {
  Json& precision = workload["precision"];
  const Json& stored = facts.at("arg.type");
  precision["compute"] = stored == "bf16" ? stored : facts.at("arg.compute");
  precision["parameters"] = stored;
  precision["gradients"] = stored;
  precision["master"] = "none";
  precision["moments"] = stored;
  if (facts.at("arg.reduce") != stored) precision["reduce"] = facts.at("arg.reduce");
  for (const std::string& name : converters_of(facts)) {
    if (!is_among(name, float8_converters) && !is_among(name, mx_converters)) {
      facts.fail("arg.converters",
                 fmt::format("converter \"{}\" is not simulated; \"quantize.linear.float8\" and "
                             "\"quantize.linear.mx\" are",
                             name));
    }
  }
  if (converts(facts, float8_converters) || facts.flag("arg.float8")) {
    precision["compute"] = "fp8";
    precision["scaling"] = facts.at("arg.float8_recipe");
    if (facts.flag("arg.float8_gather")) precision["gather"] = "fp8";
  } else if (converts(facts, mx_converters)) {
    precision["compute"] = "mxfp8";
  }
}

void read_checkpoints(const Facts& facts, Json& workload) {
  const std::string mode = facts.text("arg.checkpoints");
  if (mode == "memory_budget") {
    facts.fail("arg.checkpoints",
               "what torch.compile chooses to compute again is not known; \"full\", \"none\" and "
               "\"selective\" are");
  }
  if (mode != "selective") {
    workload["rematerialization"] = mode;
    return;
  }
  const std::string every = facts.text("arg.every");
  if (every == "op") {
    workload["rematerialization"] = {{"policy", saved_products}};
    return;
  }
  std::int64_t layers = 0;
  const auto [end, error] = std::from_chars(every.data(), every.data() + every.size(), layers);
  if (error != std::errc() || end != every.data() + every.size() || layers < 1) {
    facts.fail("arg.every", fmt::format("expected \"op\" or a number, not \"{}\"", every));
  }
  workload["rematerialization"] = layers == 1 ? Json("full") : Json{{"every", layers}};
}

// Of a rank's batch a pipeline makes microbatches; without one a batch is computed at once.
void read_batch(const Facts& facts, std::int64_t data, Json& workload) {
  const std::int64_t local = facts.integer("arg.local_batch");
  const std::int64_t global = facts.at("arg.global_batch").get<std::int64_t>();
  const std::int64_t batch = global > 0 ? global : local * data;
  if (batch % (local * data) != 0) {
    facts.fail("arg.global_batch",
               fmt::format("a batch of {} is no multiple of the {} that {} data-parallel ranks "
                           "compute at once",
                           batch, local * data, data));
  }
  const std::int64_t times = batch / (local * data);
  workload["batch"] = batch;
  if (facts.integer("mesh.pp") == 1) {
    workload["microbatches"] = times;
    return;
  }
  if (times > 1) {
    facts.fail("arg.global_batch",
               "gradients added up over several runs of a pipeline are not simulated; a larger "
               "training.local_batch_size has more microbatches");
  }
  std::int64_t size = facts.integer("arg.microbatch");
  if (facts.has("arg.microbatches"))
    size = std::max<std::int64_t>(1, local / facts.integer("arg.microbatches"));
  if (local % size != 0) {
    facts.fail("arg.microbatch",
               fmt::format("microbatches of {} do not divide a local batch of {}", size, local));
  }
  workload["microbatches"] = local / size;
}

void read_experts(const Facts& facts, Json& strategy) {
  const std::int64_t ep = facts.integer("arg.ep");
  if (ep == 1) return;
  strategy["experts"] = {{"parallel", ep}, {"tensor_parallel", facts.integer("arg.etp")}};
  if (!facts.is("arg.dispatch", "all-to-all")) {
    strategy["experts"]["dispatch"] = facts.at("arg.dispatch");
  }
  if (facts.is("arg.schedule", "dualpipev") && facts.integer("mesh.pp") > 1 &&
      facts.flag("arg.overlaps_exchange")) {
    facts.fail("arg.overlaps_exchange",
               "exchanges of experts beside another microbatch's passes are not simulated where "
               "parameters lie in shards");
  }
}

void to_experiment(Facts& facts, const LaunchOptions&, Notes& notes, Json& experiment) {
  const std::int64_t replicas = facts.integer("mesh.dp_replicate");
  const std::int64_t tp = facts.integer("mesh.tp"), pp = facts.integer("mesh.pp");
  const std::int64_t cp = facts.integer("mesh.cp");
  std::int64_t shards = facts.at("mesh.dp_shard").get<std::int64_t>();
  const std::int64_t others = replicas * tp * pp * cp;
  if (shards < 1) {
    if (!facts.has("devices")) {
      facts.fail("mesh.dp_shard",
                 "takes what the other degrees leave of the devices: add --devices 64");
    }
    shards = rest_of_devices(facts, others, "the other degrees",
                             {"mesh.tp", "mesh.pp", "mesh.cp", "mesh.dp_replicate"});
  } else if (facts.has("devices") && facts.integer("devices") != shards * others) {
    facts.fail("mesh.dp_shard", fmt::format("the degrees are of {} devices, not of {}",
                                            shards * others, facts.integer("devices")));
  }
  const std::pair<const char*, std::int64_t> axes[] = {
      {"pp", pp}, {"dp_replicate", replicas}, {"dp_shard", shards}, {"cp", cp}, {"tp", tp}};
  for (const auto& [name, size] : axes) {
    if (size > 1) experiment["mesh"][name] = size;
  }
  Json& workload = experiment["workload"];
  if (workload["model"].is_null()) workload["model"] = torchtitan_model(facts, notes);
  const Json model = workload["model"];
  read_batch(facts, replicas * shards, workload);
  read_types(facts, workload);
  read_checkpoints(facts, workload);
  Json& strategy = experiment["strategy"];
  if (!facts.is("arg.reshard", "default")) {
    strategy["reshard_after_forward"] = facts.is("arg.reshard", "always");
  }
  if (tp == 1) strategy.erase("loss_parallel");
  if (facts.flag("arg.on_host")) strategy["offload"]["parameters"] = "cpu";
  if (cp > 1) {
    strategy["context"] = {{"method", facts.at("arg.rotates")},
                           {"balanced", facts.flag("arg.balanced")}};
  }
  read_experts(facts, strategy);
  read_pipeline(facts, model, strategy);
  const Json& parts = facts.at("arg.compiled_parts");
  const bool compiles_model = std::find(parts.begin(), parts.end(), "model") != parts.end();
  strategy["kernels"] = facts.flag("arg.compiled") && compiles_model ? "compiled" : "eager";
}

void add_pipeline_facts(const Json& resolved, std::int64_t layers, Facts& facts) {
  const Json pipeline = json_at(resolved, "strategy.pipeline");
  if (!pipeline.is_object()) return;
  if (!pipeline["schedule"].is_string()) {
    facts.fail("arg.schedule", "actions that are written out have no place in such a file");
  }
  facts.set("arg.schedule", pipeline["schedule"]);
  const std::int64_t stages =
      facts.integer("mesh.pp") * pipeline["virtual_stages"].get<std::int64_t>();
  std::vector<std::int64_t> counts;
  const Json written = json_at(pipeline, "layers");
  if (written.is_array()) {
    counts = written.get<std::vector<std::int64_t>>();
  } else {
    counts = usual_stages(layers, stages, 0, 0);
  }
  const bool usual_number =
      stages == facts.integer("mesh.pp") * (has_one_stage(pipeline["schedule"]) ? 1 : 2);
  if (usual_number && counts == usual_stages(layers, stages, 1, 1)) return;
  Json parts = Json::array();
  std::int64_t layer = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Json part = Json::array();
    if (i == 0) part.push_back("tok_embeddings");
    for (std::int64_t n = 0; n < counts[i]; ++n) part.push_back(fmt::format("layers.{}", layer++));
    if (i + 1 == counts.size()) part.insert(part.end(), {"norm", "output"});
    parts.push_back(std::move(part));
  }
  facts.set("arg.modules", parts);
}

void add_type_facts(const Json& precision, Facts& facts) {
  facts.set("arg.type", precision["parameters"]);
  const std::string compute = precision["compute"];
  if (compute == "fp8" || compute == "mxfp8") {
    facts.set("arg.converters",
              Json::array({compute == "fp8" ? float8_converters[0] : mx_converters[0]}));
    if (precision.contains("scaling")) facts.set("arg.float8_recipe", precision["scaling"]);
    facts.set("arg.float8_gather", precision.contains("gather"));
  } else if (precision["parameters"] != "bf16") {
    facts.set("arg.compute", compute);
  }
  facts.set("arg.reduce",
            precision.contains("reduce") ? precision["reduce"] : precision["gradients"]);
}

void add_checkpoint_facts(const Json& policy, Facts& facts) {
  facts.set("arg.checkpoints", "selective");
  if (policy == "none" || policy == "full") {
    facts.set("arg.checkpoints", policy);
  } else if (policy.is_object() && policy.contains("every")) {
    facts.set("arg.every", std::to_string(policy["every"].get<std::int64_t>()));
  } else if (policy == Json{{"policy", saved_products}}) {
    facts.set("arg.every", "op");
  } else {
    facts.fail("arg.checkpoints",
               fmt::format("torchtitan has no rematerialization {}", policy.dump()));
  }
}

void from_experiment(const Json& resolved, const Json& config, const Place& place, Facts& facts) {
  add_mesh_facts(resolved["mesh"], json_at(resolved, "roles"),
                 {{AxisRole::stages, "mesh.pp"},
                  {AxisRole::batch, "mesh.dp_replicate"},
                  {AxisRole::shard, "mesh.dp_shard"},
                  {AxisRole::context, "mesh.cp"},
                  {AxisRole::model, "mesh.tp"}},
                 facts.whole(), facts);
  const std::int64_t data =
      facts.integer_or("mesh.dp_replicate", 1) * facts.integer_or("mesh.dp_shard", 1);
  if (!facts.has("mesh.dp_shard")) facts.set("mesh.dp_shard", 1);
  const Json& workload = resolved["workload"];
  const Json& strategy = resolved["strategy"];
  const std::int64_t batch = workload["batch"], microbatches = workload["microbatches"];
  const bool staged = facts.has("mesh.pp");
  facts.set("arg.local_batch", staged ? batch / data : batch / data / microbatches);
  if (staged) facts.set("arg.microbatch", batch / data / microbatches);
  if (!staged && microbatches > 1) facts.set("arg.global_batch", batch);
  facts.set("workload.sequence", json_at(workload, "sequence"));
  facts.set("workload.optimizer", workload["optimizer"]);
  add_torchtitan_flavor(config, place, facts);
  add_type_facts(workload["precision"], facts);
  add_checkpoint_facts(workload["rematerialization"], facts);
  if (json_at(strategy, "product_overlap") == "asynchronous") facts.set("strategy.async_tp", true);
  if (json_at(strategy, "checkpointed_calls") == "repeated") {
    facts.set("strategy.spmd_backend", "spmd_types");
  }
  if (facts.has("mesh.tp")) facts.set("strategy.loss_parallel", strategy["loss_parallel"]);
  if (json_at(strategy, "offload.parameters") == "cpu") facts.set("arg.on_host", true);
  const bool reshards = strategy.value("reshard_after_forward", Json(!staged)) == true;
  if (reshards == staged) facts.set("arg.reshard", reshards ? "always" : "never");
  if (facts.has("mesh.cp")) {
    facts.set("arg.rotates", json_at(strategy, "context.method"));
    facts.set("arg.balanced", json_at(strategy, "context.balanced"));
  }
  facts.set("arg.dispatch", json_at(strategy, "experts.dispatch"));
  facts.set("arg.ep", integer_at(strategy, "experts.parallel", 1));
  facts.set("arg.etp", integer_at(strategy, "experts.tensor_parallel", 1));
  add_pipeline_facts(resolved, integer_at(config, "num_hidden_layers", 0), facts);
  const Json kernels = json_at(strategy, "kernels");
  facts.set("arg.compiled", kernels == "compiled" || json_at(kernels, "base") == "compiled");
}

// Since 0.3.0 configurations are functions of config_registry.py.
KeyFile read_file(const std::string& text, const std::string& file) {
  if (!file.ends_with(".py")) return read_toml(text, file);
  throw InputError({file, ""},
                   "is a program, which is not run: write what it comes to as TOML, [model] with "
                   "name and flavor, [training], [parallelism] and what differs from their "
                   "defaults");
}

}  // namespace torchtitan
}  // namespace

FrameworkFile torchtitan_file() {
  return {.name = "torchtitan",
          .file = "torchtitan.toml",
          .meaning = "torchtitan's TOML",
          .strategy = "torchtitan",
          .keys = torchtitan_keys(),
          .read = torchtitan::read_file,
          .to_experiment = torchtitan::to_experiment,
          .from_experiment = torchtitan::from_experiment,
          .print = print_toml};
}

}  // namespace shardsim
