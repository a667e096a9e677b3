#include "base/json.hpp"
#include "base/version.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_devices_listed = 1024;

Json groups_to_json(const Mesh& mesh, const Collective& collective) {
  if (collective.axes.empty()) return collective.groups;
  if (mesh.devices() > most_devices_listed) return mesh.iota_groups(collective.axes);
  return mesh.groups(collective.axes);
}

Json collective_to_json(const Plan& plan, const Collective& collective, std::int64_t count) {
  Json json;
  json["kind"] = name_of(collective.kind);
  json["axes"] = plan.mesh.names_of(collective.axes);
  json["groups"] = groups_to_json(plan.mesh, collective);
  if (collective.kind == CollectiveKind::collective_permute) {
    json["source_target_pairs"] = Json::array();
    for (const auto& [source, target] : collective.source_targets) {
      json["source_target_pairs"].push_back(Json::array({source, target}));
    }
  }
  json["dtype"] = name_of(collective.dtype);
  json["payload_bytes"] = collective.payload.count();
  json["group_size"] = group_size(plan, collective);
  json["count"] = count;
  json["parts"] = Json::array();
  for (const CollectivePart& part : collective.parts) {
    json["parts"].push_back({{"tensor", part.tensor}, {"payload_bytes", part.payload.count()}});
  }
  json["reason"] = collective.reason;
  if (!collective.remedy.empty()) json["remedy"] = collective.remedy;
  if (collective.parallelism != Parallelism::unknown) {
    json["parallelism"] = name_of(collective.parallelism);
  }
  if (collective.contracted > 0) json["contracted"] = collective.contracted;
  if (collective.awaited) json["awaited"] = true;
  if (const auto& visits = collective.visits) {
    json["visits"] = {{"places", visits->places},
                      {"visited", visits->visited},
                      {"multiprocessors", visits->multiprocessors},
                      {"kernels", name_of(visits->kernels)},
                      {"combines", visits->combines},
                      {"row_bytes", visits->row.count()}};
  }
  return json;
}

Json kernel_to_json(const Kernel& kernel) {
  Json json = {{"op", kernel.op},
               {"class", name_of(kernel.kernel_class)},
               {"dtype", name_of(kernel.dtype)},
               {"flops", kernel.flops.count()},
               {"bytes", kernel.bytes.count()}};
  if (kernel.product) {
    json["product"] = product_to_json(*kernel.product);
    if (!kernel.product->aligned) json["aligned"] = false;
  }
  if (!kernel.implementation.empty()) json["implementation"] = kernel.implementation;
  if (kernel.launches != 1) json["launches"] = kernel.launches;
  if (kernel.added.count() > 0) json["added_bytes"] = kernel.added.count();
  return json;
}

Json transfer_to_json(const Transfer& transfer) {
  Json json{{"peer_program", transfer.peer_program},
            {"sends", transfer.sends},
            {"dtype", name_of(transfer.dtype)},
            {"payload_bytes", transfer.payload.count()},
            {"reason", transfer.reason}};
  if (transfer.channel != 0) json["channel"] = transfer.channel;
  return json;
}

Json task_to_json(const Plan& plan, const Program& program, const Task& task) {
  Json json;
  json["kind"] = name_of(task.kind);
  json["work"] = task.work;
  json["name"] = plan.names.at(static_cast<std::size_t>(task.name));
  json["layer"] = task.layer;
  json["microbatch"] = task.microbatch;
  json["phase"] = name_of(task.phase);
  json["recompute"] = task.recompute;
  json["stream"] = task.stream;
  json["after"] = program.after(task);
  return json;
}

Json buffer_to_json(const Plan& plan, const Program& program, const Buffer& buffer) {
  Json json;
  json["name"] = plan.names.at(static_cast<std::size_t>(buffer.name));
  json["layer"] = buffer.layer;
  json["category"] = name_of(buffer.category);
  if (buffer.on_host) json["on_host"] = true;
  json["bytes"] = buffer.bytes.count();
  json["allocated_by"] =
      buffer.allocated_by == before_the_step ? Json(nullptr) : Json(buffer.allocated_by);
  json["freed_after"] = program.freed_after(buffer);
  return json;
}

Json program_to_json(const Plan& plan, const Program& program) {
  Json json;
  json["name"] = program.name;
  json["devices"] = program.devices;
  json["streams"] = program.streams;
  json["tasks"] = Json::array();
  for (const Task& task : program.tasks) {
    json["tasks"].push_back(task_to_json(plan, program, task));
  }
  json["buffers"] = Json::array();
  for (const Buffer& buffer : program.buffers) {
    json["buffers"].push_back(buffer_to_json(plan, program, buffer));
  }
  return json;
}

Json padding_to_json(const Padding& padding) {
  return {{"tensor", padding.tensor},
          {"dimension", padding.dimension},
          {"size", padding.size},
          {"shards", padding.shards},
          {"padded_size", padding.padded_size},
          {"instances", padding.instances},
          {"wasted_bytes_per_device", padding.wasted_per_device.count()}};
}

Json subject_to_json(const PlanSubject& subject) {
  return {{"model", subject.model},
          {"strategy", subject.strategy},
          {"parameters", subject.parameters},
          {"tokens_per_step", subject.tokens_per_step},
          {"model_flops", subject.model_flops.count()},
          {"model_flops_full_attention", subject.model_flops_full_attention.count()}};
}

}  // namespace

Json product_to_json(const Product& product) {
  return {product.batch, product.m, product.n, product.k};
}

Json plan_to_json(const Plan& plan) {
  Json json;
  json["schema"] = "shardsim/plan/1";
  json["shardsim"] = program_version;
  json["subject"] = subject_to_json(plan.subject);
  json["mesh"] = Json::object();
  for (const MeshAxis& axis : plan.mesh.axes()) json["mesh"][axis.name] = axis.size;
  json["devices"] = plan.mesh.devices();
  if (!plan.issued_by.empty()) json["issued_by"] = plan.issued_by;
  if (plan.layers_are_graphs) json["layers_are_graphs"] = true;
  if (plan.parts_are_graphs) json["parts_are_graphs"] = true;
  if (plan.awaits_messages) json["awaits_messages"] = true;
  json["collectives"] = Json::array();
  const std::vector<std::int64_t> counts = executions(plan);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    json["collectives"].push_back(collective_to_json(plan, plan.collectives[i], counts[i]));
  }
  json["kernels"] = Json::array();
  for (const Kernel& kernel : plan.kernels) json["kernels"].push_back(kernel_to_json(kernel));
  json["transfers"] = Json::array();
  for (const Transfer& transfer : plan.transfers) {
    json["transfers"].push_back(transfer_to_json(transfer));
  }
  json["names"] = plan.names;
  json["programs"] = Json::array();
  for (const Program& program : plan.programs) {
    json["programs"].push_back(program_to_json(plan, program));
  }
  json["padding"] = Json::array();
  for (const Padding& padding : plan.padding) json["padding"].push_back(padding_to_json(padding));
  json["notes"] = plan.notes;
  return json;
}

}  // namespace shardsim
