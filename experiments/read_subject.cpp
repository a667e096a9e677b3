#include "experiments/read_subject.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/json.hpp"
#include "base/overloaded.hpp"
#include "experiments/missing_key.hpp"
#include "experiments/read_step.hpp"
#include "plan/read_mesh.hpp"
#include "strategies/buffer_keys.hpp"
#include "strategies/frameworks/framework.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/specs/placed_tree.hpp"

namespace shardsim {
namespace {

// What a parameter tree says of mesh and specs, as the sections that the experiment leaves out.
Json recorded_placement(const Sections& sections, const JsonReader& tree,
                        const std::string& directory) {
  Json recorded = Json::object();
  if (sections.find("mesh") && sections.find("strategy")) return recorded;
  const PlacedTree placed = read_placed_tree(tree, directory);
  if (!placed.mesh) return recorded;
  recorded["mesh"] = mesh_to_json(*placed.mesh);
  Json specs = Json::object();
  for (std::size_t i = 0; i < placed.specs.size(); ++i) {
    if (placed.specs[i]) specs[placed.tree.leaves[i].name] = to_json(*placed.specs[i]);
  }
  recorded["strategy"] = {{"name", "specs"}, {"specs", specs}, {"default", Json::array()}};
  return recorded;
}

// A mesh as big_vision's configurations write it, as an object with sizes: [["data", -1]] of
// "devices": 8 is {"data": 8}. -1 is what the other axes leave of the devices, as numpy's reshape
// has it.
Json mesh_with_sizes(const JsonReader& mesh, const std::optional<JsonReader>& devices) {
  Json sizes = mesh.json();
  if (mesh.is_array() && !sizes.empty()) {
    sizes = Json::object();
    for (const JsonReader& pair : mesh.elements()) {
      const bool is_pair = pair.is_array() && pair.json().size() == 2 && pair.json()[0].is_string();
      if (!is_pair) return mesh.json();  // an error of read_mesh
      const auto name = pair.json()[0].get<std::string>();
      if (sizes.contains(name)) pair.fail(fmt::format("axis \"{}\" is given twice", name));
      sizes[name] = pair.json()[1];
    }
  }
  if (!sizes.is_object()) return sizes;
  std::string open;
  std::int64_t others = 1;
  for (const auto& [name, size] : sizes.items()) {
    if (!size.is_number_integer()) return sizes;
    if (size == -1 && open.empty()) {
      open = name;
    } else if (size < 1 || size > most_devices / others) {
      return sizes;  // an error of read_mesh
    } else {
      others *= size.get<std::int64_t>();
    }
  }
  if (open.empty()) return sizes;
  if (!devices) {
    mesh.fail(
        fmt::format("axis \"{}\" of size -1 takes what the others leave of \"devices\", which "
                    "is not given",
                    open));
  }
  const std::int64_t all = devices->integer(1, most_devices);
  if (all % others != 0) {
    devices->fail(fmt::format("{} devices are no multiple of the {} of the axes beside \"{}\"", all,
                              others, open));
  }
  sizes[open] = all / others;
  return sizes;
}

// `recorded`: sections that the experiment may leave out.
Partitioning read_partitioning(const Sections& sections, const JsonReader& recorded) {
  const auto section = [&](const std::string& key) {
    const auto given = sections.find(key);
    if (given || !recorded.json().contains(key)) return given ? *given : sections.at(key);
    return JsonReader(recorded.json()[key], recorded.place());
  };
  Partitioning partitioning;
  const JsonReader given_mesh = section("mesh");
  const Json sizes = mesh_with_sizes(given_mesh, sections.find("devices"));
  partitioning.mesh = read_mesh(JsonReader(sizes, given_mesh.place()));
  const Mesh& mesh = partitioning.mesh;
  if (const auto roles = sections.find("roles")) partitioning.roles = AxisRoles(*roles, mesh);
  if (const auto devices = sections.find("devices")) {
    const std::int64_t expected = devices->integer(1, most_devices);
    if (expected != mesh.devices()) {
      devices->fail(
          fmt::format("mesh {} has {} devices, not {}", describe(mesh), mesh.devices(), expected));
    }
  }
  partitioning.strategy = read_strategy(section("strategy"), mesh, partitioning.roles);
  if (const auto uneven = sections.find("allow_uneven")) {
    partitioning.allow_uneven = uneven->boolean();
  }
  return partitioning;
}

// A program says itself what is computed and how it is split.
ProgramStep read_program_step(const Sections& sections, const JsonReader& program,
                              const std::string& directory) {
  for (const char* other : {"workload", "strategy", "roles", "devices", "allow_uneven"}) {
    if (const auto given = sections.find(other)) {
      given->fail(fmt::format("a program has its own {}: leave one of them out", other));
    }
  }
  const std::filesystem::path path(program.string());
  if (path.empty()) program.fail("names no file");
  ProgramStep subject;
  subject.path = (std::filesystem::path(directory) / path).string();
  if (const auto like = sections.find("like")) subject.like_xla = like->choice({"xla"}) == "xla";
  if (const auto mesh = sections.find("mesh")) {
    Mesh axes = read_mesh(*mesh);
    if (!axes.axes().empty()) subject.mesh = std::move(axes);
  }
  return subject;
}

TreeSubject read_tree_subject(const Sections& sections, const JsonReader& tree,
                              const std::string& directory) {
  const Json recorded = recorded_placement(sections, tree, directory);
  return {OwnedJson(tree.json()), read_partitioning(sections, JsonReader(recorded, tree.place()))};
}

// What of a model or a tree is computed, and how it lies.
Json partitioned_sections(Json workload, const Partitioning& partitioning) {
  Json sections;
  sections["workload"] = std::move(workload);
  sections["strategy"] = strategy_to_json(partitioning.strategy);
  sections["mesh"] = mesh_to_json(partitioning.mesh);  // without axes, too: one device
  if (partitioning.allow_uneven) sections["allow_uneven"] = true;
  for (const auto& [axis, role] : partitioning.roles.given()) {
    sections["roles"][axis] = name_of(role);
  }
  return sections;
}

// How many microbatches of so many sequences a device's part of the batch makes.
std::int64_t microbatches_of(const JsonReader& size, const JsonReader& workload,
                             const ModelStep& subject) {
  if (workload.find("microbatches")) {
    size.fail("\"microbatch\" is the size of one, \"microbatches\" their number: say one of them");
  }
  const auto& [mesh, roles, strategy, _] = subject.partitioning;
  std::int64_t shares = 1;
  for (const std::string& axis : strategy.batch_axes) shares *= mesh.whole(*mesh.find(axis)).size;
  const std::int64_t batch = subject.step.batch;
  const std::int64_t at_once = size.integer(1, batch) * shares;
  if (batch % at_once != 0) {
    size.fail(
        fmt::format("{} sequences on each of {} devices that split the batch are {} at once, "
                    "which do not divide the batch of {}",
                    size.integer(1, batch), shares, at_once, batch));
  }
  return batch / at_once;
}

// How many microbatches keep the stages of a step of inference busy, as servers with pipelines have
// it (FasterTransformer's local batch, TensorRT-LLM's micro batches, vLLM's virtual engines): one a
// stage, or as many fewer as divide a device's part of the batch.
std::int64_t microbatches_of_stages(const ModelStep& subject) {
  const auto& [mesh, roles, strategy, _] = subject.partitioning;
  std::int64_t sequences = subject.step.batch;
  for (const std::string& axis : strategy.batch_axes) {
    const std::int64_t size = mesh.whole(*mesh.find(axis)).size;
    if (sequences % size != 0) return 1;  // refused, or padded, elsewhere
    sequences /= size;
  }
  std::int64_t count = mesh.whole(*mesh.find(strategy.pipeline->axis)).size;
  while (sequences % count != 0) --count;
  return count;
}

// Of rule systems alone; of those that go by names of dimensions by default one that has such.
void find_view(const JsonReader& workload, ModelStep& subject) {
  const Strategy& strategy = subject.partitioning.strategy;
  const RuleSystem* system = find_rule_system(strategy.name);
  const auto given = workload.find("view");
  if (given && system == nullptr) {
    given->fail(
        fmt::format("is for the rules of other systems; strategy \"{}\" sees the parameters "
                    "as they are",
                    strategy.name));
  }
  if (given || system == nullptr) return;
  subject.step.view = system->view_of == nullptr
                          ? system->view
                          : system->view_of(JsonReader(*strategy.system, strategy.place));
}

}  // namespace

ExperimentSubject read_subject(const Sections& sections, const std::string& directory,
                               Written& written) {
  if (const auto program = sections.find("program")) {
    written.subject = program->place();
    return read_program_step(sections, *program, directory);
  }
  if (const auto like = sections.find("like")) like->fail("is for a \"program\"");
  const JsonReader workload = sections.at("workload");
  workload.only_keys({"model",      "tree",
                      "step",       "batch",
                      "microbatch", "microbatches",
                      "sequence",   "target_sequence",
                      "documents",  "metrics",
                      "outputs",    "precision",
                      "optimizer",  "gradient_clipping",
                      "donate",     "rematerialization",
                      "trainable",  "lora",
                      "dropout",    "layer",
                      "mtp_layers", "context",
                      "generate",   "block_size",
                      "view"});
  if (const auto tree = workload.find("tree")) {
    workload.only_keys({"tree"});
    written.subject = tree->place();
    return read_tree_subject(sections, *tree, directory);
  }
  const auto model = workload.find("model");
  if (!model) workload.fail(missing_key("model"));
  ModelStep subject;
  *subject.model = model->json();
  written.subject = model->place();
  written.step = workload.place();
  const Json nothing = Json::object();
  subject.partitioning = read_partitioning(sections, JsonReader(nothing, {}));
  const Json defaulted = with_framework_defaults(workload, subject.partitioning.strategy.name);
  subject.step = read_step(JsonReader(defaulted, workload.place()));
  Runtime& runtime = subject.partitioning.strategy.runtime;
  if (subject.step.kind == StepKind::layer && subject.step.optimizer.kind == "none" &&
      !runtime.flat_parameters) {
    leave_out_optimizer(runtime);
  }
  find_view(workload, subject);
  if (const auto size = workload.find("microbatch")) {
    subject.step.microbatches = microbatches_of(*size, workload, subject);
  } else if (!workload.find("microbatches") && is_inference(subject.step.kind) &&
             subject.partitioning.strategy.pipeline) {
    subject.step.microbatches = microbatches_of_stages(subject);
  }
  return subject;
}

void require_served_axes(const Sections& sections, const ExperimentSubject& subject) {
  const auto* model = std::get_if<ModelStep>(&subject);
  if (model == nullptr) return;
  const auto& [mesh, roles, strategy, _] = model->partitioning;
  const JsonReader given = sections.at("mesh");
  const Json sizes = mesh_with_sizes(given, sections.find("devices"));
  require_served_axes(strategy, mesh, roles, JsonReader(sizes, given.place()));
}

Json subject_sections(const ExperimentSubject& subject, const Sections& sections) {
  return std::visit(
      Overloaded{[](const ModelStep& model) {
                   Json workload = {{"model", *model.model}};
                   workload.update(step_to_json(model.step));
                   return partitioned_sections(std::move(workload), model.partitioning);
                 },
                 [&](const ProgramStep& program) {
                   Json json;
                   json["program"] = sections.at("program").json();
                   if (program.like_xla) json["like"] = "xla";
                   if (program.mesh) json["mesh"] = mesh_to_json(*program.mesh);
                   return json;
                 },
                 [](const TreeSubject& tree) {
                   Json workload = {{"tree", *tree.tree}};
                   return partitioned_sections(std::move(workload), tree.partitioning);
                 }},
      subject);
}

}  // namespace shardsim
