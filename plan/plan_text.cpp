#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/text.hpp"
#include "plan/fold.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

using Align = TextTable::Align;

std::string axes_text(const Plan& plan, const Collective& collective) {
  if (!collective.axes.empty()) {
    return fmt::format("{}", fmt::join(plan.mesh.names_of(collective.axes), ","));
  }
  return collective.source_targets.empty() ? "groups" : "pairs";
}

std::string header_text(const Plan& plan) {
  std::string mesh;
  for (const MeshAxis& axis : plan.mesh.axes()) mesh += fmt::format(" {}={}", axis.name, axis.size);
  std::string out =
      fmt::format("Plan of {}, strategy {}\n", plan.subject.model, plan.subject.strategy);
  out += fmt::format("  mesh       {} ({} device{})\n", mesh.empty() ? "none" : mesh.substr(1),
                     format_count(plan.mesh.devices()), plan.mesh.devices() == 1 ? "" : "s");
  if (plan.subject.parameters > 0) {
    out += fmt::format("  parameters {}\n", format_count(plan.subject.parameters));
  }
  if (plan.subject.tokens_per_step > 0) {
    out += fmt::format("  tokens     {} per step\n", format_count(plan.subject.tokens_per_step));
  }
  out += fmt::format("  model work {} per step", format_flops(plan.subject.model_flops));
  if (plan.subject.model_flops_full_attention > plan.subject.model_flops) {
    out += fmt::format(", {} with full attention",
                       format_flops(plan.subject.model_flops_full_attention));
  }
  out += "\n";
  return out;
}

std::string collectives_text(const Plan& plan, std::size_t width) {
  if (plan.collectives.empty()) return "\nNo collectives\n";
  TextTable table({{"kind"},
                   {"axes"},
                   {"group", Align::right},
                   {"payload", Align::right},
                   {"dtype"},
                   {"count", Align::right},
                   {"why"}});
  const auto counts = executions(plan);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    table.add_row({std::string(name_of(collective.kind)), axes_text(plan, collective),
                   format_count(group_size(plan, collective)), format_bytes(collective.payload),
                   std::string(name_of(collective.dtype)), format_count(counts[i]),
                   collective.reason});
  }
  return "\nCollectives of one step\n" + table.text("  ", width);
}

// What the task does, over which axes, and how much.
std::array<std::string, 3> work_cells(const Plan& plan, const Task& task) {
  const auto work = static_cast<std::size_t>(task.work);
  if (task.kind == TaskKind::collective) {
    const Collective& collective = plan.collectives[work];
    return {std::string(name_of(collective.kind)), axes_text(plan, collective),
            format_bytes(collective.payload)};
  }
  if (task.kind == TaskKind::transfer) {
    const Transfer& transfer = plan.transfers[work];
    const std::string& peer = plan.programs[static_cast<std::size_t>(transfer.peer_program)].name;
    const std::string channel =
        transfer.channel == 0 ? "" : fmt::format(", channel {}", transfer.channel);
    return {transfer.sends ? "send to" : "receive from", peer + channel,
            format_bytes(transfer.payload)};
  }
  const Kernel& kernel = plan.kernels[work];
  if (is_host_copy(task.kind)) {
    return {std::string(name_of(task.kind)), "", format_bytes(kernel.bytes)};
  }
  return {kernel.op, "",
          kernel.flops.count() > 0 && kernel.kernel_class != KernelClass::memory
              ? format_flops(kernel.flops)
              : format_bytes(kernel.bytes)};
}

void add_task_row(const Plan& plan, const Program& program, TaskId id, TextTable& table) {
  const Task& task = program.tasks[static_cast<std::size_t>(id)];
  const auto [what, where, amount] = work_cells(plan, task);
  std::string phase(name_of(task.phase));
  if (task.recompute) phase += ", again";
  std::vector<std::string> after;
  for (TaskId before : program.after(task)) after.push_back(fmt::format("#{}", before));
  table.add_row({fmt::format("#{}", id), program.streams[task.stream], phase, what, where, amount,
                 plan.task_name(task), fmt::format("{}", fmt::join(after, " "))});
}

std::string repetition_text(const Program& program, const Section& section) {
  const auto last_repeat = section.first + section.length * (section.repeats - 1);
  const Task& first = program.tasks[static_cast<std::size_t>(section.first)];
  const Task& last = program.tasks[static_cast<std::size_t>(last_repeat)];
  std::string steps = first.layer == last.layer
                          ? fmt::format("microbatch {} to {}", first.microbatch, last.microbatch)
                          : fmt::format("layer {} to {}", first.layer, last.layer);
  const std::int64_t step = (last.layer - first.layer) / (section.repeats - 1);
  if (std::abs(step) > 1) steps += fmt::format(" by {}", std::abs(step));
  return fmt::format("x{}: #{} to #{}, {}", section.repeats, section.first,
                     last_repeat + section.length - 1, steps);
}

std::string schedule_text(const Plan& plan, const Program& program, std::size_t width) {
  std::string out =
      fmt::format("\nSchedule of {} ({} tasks; a repetition is printed once)\n", program.name,
                  format_count(static_cast<std::int64_t>(program.tasks.size())));
  for (const Section& section : fold(program)) {
    TextTable table({{"task", Align::right},
                     {"stream"},
                     {"phase"},
                     {"what"},
                     {"over"},
                     {"amount", Align::right},
                     {"name"},
                     {"after"}});
    for (TaskId id = section.first; id < section.first + section.length; ++id) {
      add_task_row(plan, program, id, table);
    }
    if (section.repeats > 1) out += "\n  " + repetition_text(program, section) + "\n";
    out +=
        (section.repeats > 1 ? "" : "\n") + table.text(section.repeats > 1 ? "    " : "  ", width);
  }
  return out;
}

std::string buffers_text(const Program& program) {
  struct Sum {
    std::int64_t count = 0;
    Bytes all;
    Bytes kept;  // from before the step to the next one
  };
  std::array<Sum, buffer_categories> sums;
  for (const Buffer& buffer : program.buffers) {
    Sum& sum = sums[static_cast<std::size_t>(buffer.category)];
    ++sum.count;
    sum.all += buffer.bytes;
    if (buffer.allocated_by == before_the_step && buffer.free_count == 0) sum.kept += buffer.bytes;
  }
  TextTable table({{"category"},
                   {"buffers", Align::right},
                   {"all together", Align::right},
                   {"held all step", Align::right}});
  for (int i = 0; i < buffer_categories; ++i) {
    const Sum& sum = sums[static_cast<std::size_t>(i)];
    if (sum.count == 0) continue;
    table.add_row({std::string(name_of(static_cast<BufferCategory>(i))), format_count(sum.count),
                   format_bytes(sum.all), format_bytes(sum.kept)});
  }
  return fmt::format("\nBuffers of {}, on each device\n{}", program.name, table.text("  "));
}

std::string padding_text(const Plan& plan, std::size_t width) {
  if (plan.padding.empty()) return "";
  TextTable table({{"tensor"},
                   {"dimension", Align::right},
                   {"size", Align::right},
                   {"shards", Align::right},
                   {"padded to", Align::right},
                   {"wasted per device", Align::right}});
  for (const Padding& padding : plan.padding) {
    table.add_row({padding.tensor, std::to_string(padding.dimension), format_count(padding.size),
                   format_count(padding.shards), format_count(padding.padded_size),
                   format_bytes(padding.wasted_per_device)});
  }
  return "\nPadding\n" + table.text("  ", width);
}

}  // namespace

std::string plan_to_text(const Plan& plan, std::size_t width) {
  std::string out = header_text(plan) + collectives_text(plan, width);
  for (const Program& program : plan.programs) {
    out += schedule_text(plan, program, width) + buffers_text(program);
  }
  out += padding_text(plan, width);
  if (!plan.notes.empty()) out += "\nNotes\n";
  for (const std::string& note : plan.notes) out += "  " + wrapped(note, 2, width) + "\n";
  return out;
}

}  // namespace shardsim
