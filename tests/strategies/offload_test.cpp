// Activations that lie on the host between forward and backward, and an optimizer there.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "model_step.hpp"

namespace shardsim::offload_test {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

struct Copies {
  std::int64_t there = 0;  // bytes
  std::int64_t back = 0;
  std::set<std::string> names;  // without the layer
  std::set<int> layers;
};

Copies copies_of(const Plan& plan) {
  Copies copies;
  const Program& program = plan.programs.front();
  std::map<std::pair<int, int>, int> on_host;  // by name and layer
  for (const Task& task : program.tasks) {
    if (!is_host_copy(task.kind)) continue;
    const bool leaves = task.kind == TaskKind::to_host;
    const std::int64_t bytes = plan.kernels[static_cast<std::size_t>(task.work)].bytes.count();
    (leaves ? copies.there : copies.back) += bytes;
    copies.names.insert(plan.names[static_cast<std::size_t>(task.name)]);
    copies.layers.insert(task.layer);
    CHECK((task.phase == Phase::forward) == leaves);
    int& count = on_host[{task.name, task.layer}];
    count += leaves ? 1 : -1;
    CHECK((count == 0 || count == 1));
  }
  return copies;
}

// Llama-3.1-8B, one sequence of 8192 tokens a device: 8192 x 4096 in bf16 are 64 MiB, keys and
// values of 8 heads of 128 a quarter of it.
Plan plan_of(const std::string& strategy, const Rematerialization& kept = {}) {
  Step step = test::usual_step();
  step.rematerialization = kept;
  return test::compile_step("llama-3.1-8b", Mesh({{"fsdp", 8}}), strategy, step).plan;
}

}  // namespace

TEST_CASE("what a step offloads goes to the host and comes back") {
  const Rematerialization kept{.policy = Rematerialization::Policy::named,
                               .offload = {"decoder_layer_input", "k"}};
  const Copies copies = copies_of(plan_of(R"({"name": "fsdp"})", kept));
  CHECK(copies.there == 32 * (64 + 16) * mebibyte);
  CHECK(copies.back == copies.there);
  CHECK(copies.layers.size() == 32);
  const Rematerialization policy{.policy = Rematerialization::Policy::of_jax,
                                 .save = {"qkv_proj_offloaded"}};
  const Copies of_policy = copies_of(plan_of(R"({"name": "fsdp"})", policy));
  CHECK(of_policy.there == 32 * (64 + 16 + 16) * mebibyte);
}

TEST_CASE("a strategy offloads layers or what modules read") {
  const Copies none = copies_of(plan_of(R"({"name": "fsdp"})"));
  CHECK(none.names.empty());
  const Copies all = copies_of(plan_of(R"({"name": "fsdp", "offload": {"activations": "cpu"}})"));
  const Copies four =
      copies_of(plan_of(R"({"name": "fsdp", "offload": {"activations": {"layers": 4}}})"));
  CHECK(four.layers == std::set<int>{0, 1, 2, 3});
  CHECK(8 * four.there == all.there);
  CHECK(four.back == four.there);
  // Queries, keys, values, what attention made, and a logsumexp in fp32 of each of 32 heads.
  const Copies attention = copies_of(
      plan_of(R"({"name": "fsdp", "offload": {"activations": {"modules": ["core_attention"]}}})"));
  CHECK(attention.there == 32 * (64 + 16 + 16 + 64 + 1) * mebibyte);
}

TEST_CASE("a device holds what two layers wait to send, and what two need back") {
  const auto most = [](const Plan& plan) {
    const Program& program = plan.programs.front();
    std::map<TaskId, std::int64_t> changes;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.category != BufferCategory::activations || buffer.layer < 0) continue;
      changes[buffer.allocated_by] += buffer.bytes.count();
      changes[program.freed_after(buffer).back() + 1] -= buffer.bytes.count();
    }
    std::int64_t now = 0;
    std::int64_t peak = 0;
    for (const auto& [task, change] : changes) peak = std::max(peak, now += change);
    return peak;
  };
  const Plan kept = plan_of(R"({"name": "fsdp"})");
  const Plan sent = plan_of(R"({"name": "fsdp", "offload": {"activations": "cpu"}})");
  CHECK(most(sent) * 10 < most(kept));  // of 32 layers
}

TEST_CASE("an optimizer on the host takes gradients in parts and gives parameters back") {
  // 8,030,261,248 parameters; 8 divides every tensor. Bytes of each on the host: gradients 2 as
  // they come and 4 in fp32, master and moments 12.
  constexpr std::int64_t part = 8'030'261'248 / 8;
  const Plan plan =
      plan_of(R"({"name": "deepspeed", "zero_stage": 3, "offload": {"optimizer": "cpu"}})");
  const Program& program = plan.programs.front();
  std::map<TaskKind, std::int64_t> copied;
  for (const Task& task : program.tasks) {
    if (!is_host_copy(task.kind)) continue;
    copied[task.kind] += plan.kernels[static_cast<std::size_t>(task.work)].bytes.count();
  }
  CHECK(copied[TaskKind::to_host] == 2 * part);
  CHECK(copied[TaskKind::from_host] == 2 * part);
  std::int64_t on_host = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.on_host) on_host += buffer.bytes.count();
    CHECK((buffer.on_host || buffer.category != BufferCategory::optimizer));
  }
  CHECK(on_host == (2 + 4 + 12) * part);
}

// Each gather's payload is of 8 parts, of which the device brings its own from the host. There: 2
// bytes of each parameter, beside what the optimizer keeps.
TEST_CASE("parameters on the host come in parts before each gather") {
  constexpr std::int64_t part = 8'030'261'248 / 8;
  for (const bool both : {false, true}) {
    const std::string offload =
        both ? R"({"parameters": "cpu", "optimizer": "cpu"})" : R"({"parameters": "cpu"})";
    const Plan plan =
        plan_of(R"({"name": "deepspeed", "zero_stage": 3, "offload": )" + offload + "}");
    const Program& program = plan.programs.front();
    std::map<TaskKind, std::int64_t> copied;
    std::int64_t gathered = 0;
    for (const Task& task : program.tasks) {
      const auto work = static_cast<std::size_t>(task.work);
      if (is_host_copy(task.kind)) copied[task.kind] += plan.kernels[work].bytes.count();
      if (task.kind != TaskKind::collective) continue;
      const Collective& collective = plan.collectives[work];
      if (collective.kind == CollectiveKind::all_gather) gathered += collective.payload.count();
    }
    CHECK(copied[TaskKind::from_host] == gathered / 8);
    CHECK(copied[TaskKind::to_host] == 2 * part);  // gradients, or parameters
    std::int64_t on_host = 0;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.on_host) on_host += buffer.bytes.count();
    }
    CHECK(on_host == (both ? 2 + 2 + 4 + 12 : 2) * part);
  }
}

// FSDP: all of a parameter is in fp32, 4 bytes of it, of its gradient and of each of two moments.
// A layer's shards come in forward and in backward, those of the root, embedding, norm and head,
// once: FSDP2 keeps it.
TEST_CASE("shards, gradients and optimizer on the host") {
  constexpr std::int64_t part = 8'030'261'248 / 8;
  constexpr std::int64_t layers = 32 * 218'112'000LL / 8;
  for (const char* name : {"fsdp1", "fsdp2"}) {
    Step step = test::usual_step();
    step.optimizer.parameters = step.optimizer.gradients = DType::f32;
    step.optimizer.master.reset();
    const std::string strategy =
        std::string(R"({"name": ")") + name + R"(", "offload": {"parameters": "cpu"}})";
    const Plan plan =
        test::compile_step("llama-3.1-8b", Mesh({{"dp_shard", 8}}), strategy, step).plan;
    const Program& program = plan.programs.front();
    std::map<TaskKind, std::int64_t> copied;
    std::int64_t updated = 0;
    for (const Task& task : program.tasks) {
      const auto work = static_cast<std::size_t>(task.work);
      if (is_host_copy(task.kind)) copied[task.kind] += plan.kernels[work].bytes.count();
      if (task.kind != TaskKind::kernel || task.phase != Phase::optimizer) continue;
      if (plan.kernels[work].op == "adamw") updated += plan.kernels[work].bytes.count();
      CHECK(plan.kernels[work].kernel_class == KernelClass::host);
    }
    CHECK(copied[TaskKind::from_host] == 4 * (part + layers));
    CHECK(copied[TaskKind::to_host] == 4 * part);
    CHECK(updated == (4 + 2 * 12) * part);  // gradients read; the rest read and written
    std::int64_t on_host = 0;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.on_host) on_host += buffer.bytes.count();
      const bool stays = buffer.category == BufferCategory::parameters ||
                         buffer.category == BufferCategory::optimizer;
      CHECK((buffer.on_host || !stays));
    }
    CHECK(on_host == 16 * part);
  }
}

// Of Megatron's buffers: half of each bucket's numbers go as fp32 gradients and come back as bf16
// parameters, and leave 12 bytes of state and 4 of gradients there.
TEST_CASE("a part of the optimizer on the host") {
  constexpr std::int64_t half = 8'030'261'248 / 16;
  Step step = test::usual_step();
  step.optimizer.gradients = DType::f32;
  const auto plan_with = [&](const std::string& offload) {
    return test::compile_step("llama-3.1-8b", Mesh({{"dp", 8}}),
                              R"({"name": "megatron", "offload": {"optimizer": )" + offload + "}}",
                              step)
        .plan;
  };
  for (const bool overlaps : {false, true}) {
    const Plan plan =
        plan_with(overlaps ? R"({"fraction": 0.5, "overlap": true})" : R"({"fraction": 0.5})");
    const Program& program = plan.programs.front();
    std::map<TaskKind, std::int64_t> copied;
    std::map<TaskKind, std::size_t> first;
    std::size_t last_update = 0;
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      const Task& task = program.tasks[i];
      const auto work = static_cast<std::size_t>(task.work);
      if (is_host_copy(task.kind)) {
        copied[task.kind] += plan.kernels[work].bytes.count();
        first.try_emplace(task.kind, i);
      } else if (task.kind == TaskKind::kernel &&
                 plan.kernels[work].kernel_class == KernelClass::host) {
        last_update = i;
      }
    }
    const auto near = [](std::int64_t bytes, std::int64_t other) {
      return std::abs(bytes - other) < mebibyte;  // padding
    };
    CHECK(near(copied[TaskKind::to_host], 4 * half));
    CHECK(near(copied[TaskKind::from_host], 2 * half));
    CHECK((first[TaskKind::from_host] > last_update) == !overlaps);
    std::int64_t on_host = 0, on_device = 0;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.on_host) on_host += buffer.bytes.count();
      if (!buffer.on_host && buffer.category == BufferCategory::optimizer) {
        on_device += buffer.bytes.count();
      }
    }
    CHECK(near(on_host, 16 * half));
    CHECK(near(on_device, 12 * half));
  }
}

}  // namespace shardsim::offload_test
