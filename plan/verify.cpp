#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string_view>

#include "plan/plan.hpp"

namespace shardsim {
namespace {

template <class... Args>
void require(bool holds, fmt::format_string<Args...> message, Args&&... args) {
  if (!holds) {
    throw std::logic_error("plan: " + fmt::format(message, std::forward<Args>(args)...));
  }
}

// A task or a buffer, to be named only where something is wrong with it: plans have many of them.
class Where {
 public:
  Where(const Program& program, std::string_view what, std::size_t number)
      : program_(program), what_(what), number_(number) {}

  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> message, Args&&... args) const {
    if (holds) return;
    throw std::logic_error(fmt::format("plan: program {}: {} {}{}", program_.name, what_, number_,
                                       fmt::format(message, std::forward<Args>(args)...)));
  }

 private:
  const Program& program_;
  std::string_view what_;
  std::size_t number_;
};

template <class Container>
bool in_range(std::int64_t index, const Container& container) {
  return index >= 0 && static_cast<std::size_t>(index) < container.size();
}

void verify_kernel(const Kernel& kernel, std::size_t i) {
  require(std::isfinite(kernel.flops.count()) && kernel.flops.count() >= 0,
          "kernel {}: impossible flops", i);
  require(kernel.bytes.count() >= 0, "kernel {}: negative bytes", i);
  if (!kernel.product) return;
  const Product& product = *kernel.product;
  require(product.batch >= 1 && product.m >= 1 && product.n >= 1 && product.k >= 1,
          "kernel {}: a product of nothing", i);
}

// No device number is reached twice: the parts are distinct digits.
void verify_axes(const Mesh& mesh, const std::vector<AxisRef>& axes, std::size_t i) {
  for (const AxisRef& part : axes) {
    require(in_range(part.axis, mesh.axes()), "collective {}: no axis {}", i, part.axis);
    const std::int64_t size = mesh.whole(part.axis).size;
    require(part.pre_size >= 1 && part.size >= 1 && size % part.pre_size == 0 &&
                size / part.pre_size % part.size == 0,
            "collective {}: a part that does not divide its axis", i);
    for (const AxisRef& other : axes) {
      if (&other == &part || other.axis != part.axis || part.pre_size > other.pre_size) continue;
      require(part.pre_size != other.pre_size && other.pre_size % (part.pre_size * part.size) == 0,
              "collective {}: axes overlap", i);
    }
  }
}

void verify_groups(const Mesh& mesh, const Collective& collective, std::size_t i) {
  std::set<std::int64_t> seen;
  for (const auto& group : collective.groups) {
    require(!group.empty() && group.size() == collective.groups[0].size(),
            "collective {}: groups of unequal size", i);
    for (std::int64_t device : group) {
      require(device >= 0 && device < mesh.devices(), "collective {}: no device {}", i, device);
      require(seen.insert(device).second, "collective {}: device {} twice", i, device);
    }
  }
}

void verify_collective(const Plan& plan, const Collective& collective, std::size_t i) {
  require(collective.payload.count() >= 0, "collective {}: negative payload", i);
  require(collective.axes.empty() || collective.groups.empty(),
          "collective {}: both axes and groups", i);
  verify_axes(plan.mesh, collective.axes, i);
  verify_groups(plan.mesh, collective, i);
  const bool permutes = collective.kind == CollectiveKind::collective_permute;
  require(permutes || collective.source_targets.empty(), "collective {}: pairs of no permute", i);
  require(permutes || !collective.axes.empty() || !collective.groups.empty(),
          "collective {}: neither axes nor groups", i);
  for (const auto& [source, target] : collective.source_targets) {
    require(
        source >= 0 && source < plan.mesh.devices() && target >= 0 && target < plan.mesh.devices(),
        "collective {}: no pair {} -> {}", i, source, target);
  }
  Bytes parts;
  for (const CollectivePart& part : collective.parts) {
    require(part.payload.count() >= 0, "collective {}: negative payload of a part", i);
    parts += part.payload;
  }
  require(collective.parts.empty() || parts == collective.payload,
          "collective {}: parts add up to {} bytes, payload is {}", i, parts.count(),
          collective.payload.count());
}

void verify_task(const Plan& plan, const Program& program, std::size_t i) {
  const Task& task = program.tasks[i];
  const Where where(program, "task", i);
  where.require(in_range(task.stream, program.streams), ": no stream {}", task.stream);
  where.require(in_range(task.name, plan.names), ": no name {}", task.name);
  where.require(task.layer >= -1 && task.microbatch >= 0, ": negative layer or microbatch");
  const bool has_work = task.kind == TaskKind::collective ? in_range(task.work, plan.collectives)
                        : task.kind == TaskKind::transfer ? in_range(task.work, plan.transfers)
                                                          : in_range(task.work, plan.kernels);
  where.require(has_work, ": no {} {}", name_of(task.kind), task.work);
  where.require(task.first_dependency <= program.dependencies.size() &&
                    task.dependency_count <= program.dependencies.size() - task.first_dependency,
                ": dependencies out of range");
  for (TaskId before : program.after(task)) {
    where.require(before >= 0 && static_cast<std::size_t>(before) < i, ": depends on task {}",
                  before);
  }
}

void verify_buffer(const Plan& plan, const Program& program, std::size_t i) {
  const Buffer& buffer = program.buffers[i];
  const Where where(program, "buffer", i);
  where.require(in_range(buffer.name, plan.names), ": no name {}", buffer.name);
  where.require(buffer.layer >= -1 && buffer.bytes.count() >= 0, ": negative layer or size");
  where.require(
      buffer.allocated_by == before_the_step || in_range(buffer.allocated_by, program.tasks),
      ": allocated by task {}", buffer.allocated_by);
  where.require(buffer.first_free <= program.frees.size() &&
                    buffer.free_count <= program.frees.size() - buffer.first_free,
                ": frees out of range");
  for (TaskId last : program.freed_after(buffer)) {
    where.require(in_range(last, program.tasks) && last >= buffer.allocated_by,
                  " ({}): allocated by task {}, freed after task {}",
                  plan.names[static_cast<std::size_t>(buffer.name)], buffer.allocated_by, last);
  }
}

void verify_program(const Plan& plan, const Program& program) {
  require(!program.streams.empty() && program.streams[0] == "compute",
          "program {}: the first stream is not \"compute\"", program.name);
  for (std::int64_t device : program.devices) {
    require(device >= 0 && device < plan.mesh.devices(), "program {}: no device {}", program.name,
            device);
  }
  for (std::size_t i = 0; i < program.tasks.size(); ++i) verify_task(plan, program, i);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) verify_buffer(plan, program, i);
}

}  // namespace

void verify(const Plan& plan) {
  std::set<std::string> names;
  for (const std::string& name : plan.names) {
    require(names.insert(name).second, "name \"{}\" twice", name);
  }
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) verify_kernel(plan.kernels[i], i);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    verify_collective(plan, plan.collectives[i], i);
  }
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    require(in_range(plan.transfers[i].peer_program, plan.programs), "transfer {}: no program {}",
            i, plan.transfers[i].peer_program);
    require(plan.transfers[i].payload.count() >= 0, "transfer {}: negative payload", i);
    const std::int32_t channel = plan.transfers[i].channel;
    require(0 <= channel && channel < most_channels, "transfer {}: no channel {}", i, channel);
  }
  for (const Program& program : plan.programs) verify_program(plan, program);
}

}  // namespace shardsim
