#include "sharding/cross_mesh_steps.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "sharding/cross_mesh_candidates.hpp"

namespace shardsim {
namespace {

// Bytes sent and received by device id.
class Traffic {
 public:
  void add(const Message& message) {
    if (message.source == message.target) return;
    const auto ids = static_cast<std::size_t>(std::max(message.source, message.target)) + 1;
    if (sent_.size() < ids) {
      sent_.resize(ids);
      received_.resize(ids);
    }
    sent_[static_cast<std::size_t>(message.source)] += message.bytes;
    received_[static_cast<std::size_t>(message.target)] += message.bytes;
    total_ += message.bytes;
    ++messages_;
  }

  void write_to(PlannedReshardStep& step) const {
    if (messages_ == 0) return;
    step.sent = *std::max_element(sent_.begin(), sent_.end());
    step.received = *std::max_element(received_.begin(), received_.end());
    step.total = total_;
    step.messages = messages_;
  }

 private:
  std::vector<Bytes> sent_;
  std::vector<Bytes> received_;
  Bytes total_;
  std::int64_t messages_ = 0;
};

// Messages of no machine.
class UntimedMeter final : public TransferMeter {
 public:
  void add(const Message& /*message*/) override {}
  [[nodiscard]] Seconds time() const override { return Seconds{0}; }
};

PlannedReshardStep host_step(ReshardAction action, std::vector<std::int64_t> devices, Bytes bytes,
                             const ReshardCost& cost) {
  PlannedReshardStep step;
  step.action = action;
  step.messages = static_cast<std::int64_t>(devices.size());
  (action == ReshardAction::to_host ? step.sent : step.received) = bytes;
  step.total = bytes * step.messages;
  step.time = cost.host_copies(devices, bytes);
  step.copying = std::move(devices);
  return step;
}

void add_to_host(const ReshardTask& task, const ReshardCost& cost, ReshardPlan& plan) {
  if (task.to_host == HostShards::none || plan.target_shard == Bytes{0}) return;
  std::vector<std::int64_t> devices = task.target_mesh.devices;
  if (task.to_host == HostShards::once) {
    const AxisList split = split_axes(task.target);
    devices.clear();
    for (const std::int64_t position : task.target_mesh.mesh.first_group(split)) {
      devices.push_back(task.target_mesh.devices[at(position)]);
    }
    std::sort(devices.begin(), devices.end());
  }
  PlannedReshardStep step =
      host_step(ReshardAction::to_host, std::move(devices), plan.target_shard, cost);
  step.part = ReshardPart::target;
  step.after = task.target;
  step.source_bytes = plan.given;
  if (plan.stays) {
    step.source_bytes = plan.source_shard;
  } else {
    step.target_bytes = plan.target_shard;
  }
  plan.steps.push_back(std::move(step));
}

}  // namespace

bool moves_between_memories(const PlannedReshardStep& step) {
  return step.action == ReshardAction::from_host || step.action == ReshardAction::to_host;
}

std::int64_t UnknownReshardCost::domain(std::int64_t /*device*/) const { return 0; }

std::optional<Seconds> UnknownReshardCost::collective(ReshardPart /*part*/,
                                                      const Collective& /*collective*/) const {
  return Seconds{0};
}

std::unique_ptr<TransferMeter> UnknownReshardCost::transfer() const {
  return std::make_unique<UntimedMeter>();
}

Seconds UnknownReshardCost::host_copies(const std::vector<std::int64_t>& /*devices*/,
                                        Bytes /*bytes*/) const {
  return Seconds{0};
}

Bytes bytes_of(const ReshardTask& task, const Sharding& sharding) {
  return shard_elements(task.shape, sharding) * size_of(task.dtype);
}

ReshardPlan empty_plan(const ReshardTask& task) {
  ReshardPlan plan;
  plan.source_shard = bytes_of(task, task.source);
  plan.target_shard = bytes_of(task, task.target);
  if (!task.from_host) plan.given = plan.source_shard;
  if (task.to_host == HostShards::none) plan.result = plan.target_shard;
  return plan;
}

std::optional<PlannedReshardStep> collective_step(const ReshardTask& task, const ReshardCost& cost,
                                                  ReshardPart part, const ReshardStep& step) {
  const DeviceMesh& on = part == ReshardPart::source ? task.source_mesh : task.target_mesh;
  Collective collective;
  collective.kind = step.kind;
  collective.axes = step.axes;
  collective.dtype = task.dtype;
  collective.payload = step.elements * size_of(task.dtype);
  const std::optional<Seconds> time = cost.collective(part, collective);
  if (!time) return std::nullopt;
  const std::int64_t members = Mesh::size_of(step.axes);
  PlannedReshardStep planned;
  planned.action = ReshardAction::collective;
  planned.part = part;
  planned.kind = step.kind;
  planned.axes = step.axes;
  planned.after = normalized(step.after);
  planned.sent = wire_bytes_per_device(step.kind, members, collective.payload);
  planned.received = planned.sent;
  planned.total = planned.sent * on.mesh.devices();
  planned.messages = (members - 1) * on.mesh.devices();
  planned.time = *time;
  return planned;
}

PlannedReshardStep message_step(const ReshardTask& task, const ReshardCost& cost,
                                const ShardedArray& from, const ShardedArray& to) {
  Traffic traffic;
  const std::unique_ptr<TransferMeter> meter = cost.transfer();
  for_each_message(
      task.shape, size_of(task.dtype), from, to,
      [&](std::int64_t device) { return cost.domain(device); },
      [&](const Message& message) {
        traffic.add(message);
        meter->add(message);
      });
  PlannedReshardStep step;
  traffic.write_to(step);
  if (step.messages == 0) return step;
  step.after = to.sharding;
  step.time = meter->time();
  return step;
}

void add_from_host(const ReshardTask& task, const ReshardCost& cost, ReshardPlan& plan) {
  if (!task.from_host || plan.source_shard == Bytes{0}) return;
  PlannedReshardStep step =
      host_step(ReshardAction::from_host, task.source_mesh.devices, plan.source_shard, cost);
  step.part = ReshardPart::source;
  step.after = task.source;
  step.source_bytes = plan.source_shard;
  plan.steps.push_back(std::move(step));
}

void finish(const ReshardTask& task, const ReshardCost& cost, ReshardPlan& plan) {
  plan.stays = std::all_of(plan.steps.begin(), plan.steps.end(), moves_between_memories) &&
               plan.source_shard == plan.target_shard;
  add_to_host(task, cost, plan);
  for (const PlannedReshardStep& step : plan.steps) {
    plan.time += step.time;
    if (step.action == ReshardAction::transfer) plan.crossing += step.total;
  }
  const bool shared = share_devices(task.source_mesh, task.target_mesh);
  plan.peak = fullest_device({&plan}, shared, /*donated=*/false);
  plan.donated_peak = fullest_device({&plan}, shared, /*donated=*/true);
}

Bytes fullest_device(const std::vector<const ReshardPlan*>& plans, bool shared, bool donated) {
  Bytes source;  // held of all arrays
  Bytes target;
  for (const ReshardPlan* plan : plans) source += plan->given;
  Bytes peak = source;
  const auto see = [&](Bytes on_source, Bytes on_target) {
    peak = std::max(peak, shared ? on_source + on_target : std::max(on_source, on_target));
  };
  for (const ReshardPlan* plan : plans) {
    const bool freed = donated && plan->frees_donated;
    bool first = true;
    for (const PlannedReshardStep& step : plan->steps) {
      const Bytes others = source - plan->given;
      const Bytes gone = freed && !first ? plan->given : Bytes{0};
      see(others + step.source_bytes - gone, target + step.target_bytes);
      first = false;
    }
    const bool is_kept = plan->stays && plan->given == plan->result;
    if (is_kept) continue;
    if (plan->steps.empty()) see(source, target + plan->result);
    if (freed) source -= plan->given;
    target += plan->result;
    see(source, target);
  }
  return peak;
}

}  // namespace shardsim
