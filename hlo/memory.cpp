#include "hlo/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "hlo/heap.hpp"
#include "plan/argument_use.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t pointer_bytes = 8;

// entry_computation_layout={(parameter, ..)->result}
struct EntryLayout {
  std::vector<HloShape> parameters;
  HloShape result;
  bool is_tpu = false;  // only TPU layouts have tiles
};

// One row of input_output_alias={ {0}: (2, {}, may-alias) }: a part of the result and the
// parameter whose place it takes.
struct Alias {
  std::vector<std::int64_t> result_path;
  std::size_t parameter = 0;
};

EntryLayout read_layout(const HloModule& module) {
  EntryLayout layout;
  const std::string_view text = without_brackets(module.header("entry_computation_layout"));
  if (text.empty()) {
    // Older text leaves it out where it says what parameters and root say.
    const HloComputation& entry = module.computation(module.entry());
    for (HloId id = entry.first; id < entry.end; ++id) {
      if (module.instruction(id).opcode == "parameter")
        layout.parameters.push_back(module.shape(id));
    }
    layout.result = module.shape(entry.root);
    return layout;
  }
  HloCursor cursor(text);
  for (const std::string_view shape : split_list(cursor.bracketed())) {
    layout.parameters.push_back(parse_shape(shape, module.source()));
  }
  cursor.skip_blanks();
  if (!cursor.accept("->")) module.source().fail(text, "expected (parameters)->result");
  layout.result = parse_shape(cursor.rest(), module.source());
  layout.is_tpu = text.find(":T(") != std::string_view::npos;
  return layout;
}

std::vector<Alias> read_aliases(const HloModule& module) {
  std::vector<Alias> aliases;
  for (const std::string_view row : split_list(module.header("input_output_alias"))) {
    HloCursor cursor(row);
    const std::string_view path = cursor.bracketed();
    const std::size_t open = cursor.rest().find('(');
    if (open == std::string_view::npos) module.source().fail(row, "expected {result}: (parameter");
    cursor.advance(open);
    const auto parts = split_list(cursor.bracketed());
    if (parts.empty()) module.source().fail(row, "expected {result}: (parameter");
    aliases.push_back({parse_integers(path, module.source()),
                       static_cast<std::size_t>(parse_integer(parts[0], module.source()))});
  }
  return aliases;
}

const HloShape& at_path(const HloShape& shape, const Alias& alias, const HloModule& module) {
  const HloShape* part = &shape;
  for (const std::int64_t index : alias.result_path) {
    if (index < 0 || static_cast<std::size_t>(index) >= part->elements.size()) {
      module.source().fail(module.header("input_output_alias"), "an alias of no result");
    }
    part = &part->elements[at(index)];
  }
  return *part;
}

// Bytes of all arrays of a shape as they are allocated; nothing that lies on the host.
Bytes allocated(const HloShape& shape, bool is_tpu) {
  Bytes total;
  for (const HloShape* array : arrays_of(shape)) {
    if (array->layout.memory_space == host_memory_space) continue;
    const std::int64_t bytes = array->bytes().count();
    total += Bytes(is_tpu ? ceil_div(bytes, tpu_alignment) * tpu_alignment : bytes);
  }
  return total;
}

Bytes pointer_table(const HloShape& shape, bool is_tpu) {
  if (!shape.is_tuple) return Bytes(0);
  const auto bytes = pointer_bytes * static_cast<std::int64_t>(shape.elements.size());
  return Bytes(is_tpu ? ceil_div(bytes, tpu_alignment) * tpu_alignment : bytes);
}

std::int32_t add_name(Plan& plan, const std::string& name) {
  std::string distinct = name;
  for (int i = 2; std::find(plan.names.begin(), plan.names.end(), distinct) != plan.names.end();) {
    distinct = fmt::format("{} ({})", name, i++);
  }
  plan.names.push_back(distinct);
  return static_cast<std::int32_t>(plan.names.size()) - 1;
}

}  // namespace

HloMemory entry_memory(const HloModule& module) {
  const EntryLayout layout = read_layout(module);
  HloMemory memory;
  for (const HloShape& shape : layout.parameters)
    memory.argument += allocated(shape, layout.is_tpu);
  memory.output =
      allocated(layout.result, layout.is_tpu) + pointer_table(layout.result, layout.is_tpu);
  for (const Alias& alias : read_aliases(module)) {
    memory.alias += allocated(at_path(layout.result, alias, module), layout.is_tpu);
  }
  return memory;
}

std::string memory_note(const HloMemory& memory) {
  return fmt::format(
      "per device {} bytes of arguments and {} of results, {} of them in the place of arguments",
      memory.argument.count(), memory.output.count(), memory.alias.count());
}

void add_entry_buffers(const HloModule& module, std::optional<Bytes> temporaries, Plan& plan,
                       Program& program) {
  const EntryLayout layout = read_layout(module);
  const std::vector<Alias> aliases = read_aliases(module);
  std::set<std::size_t> kept;
  for (const Alias& alias : aliases) kept.insert(alias.parameter);
  const HloComputation& entry = module.computation(module.entry());
  std::vector<std::string> names(layout.parameters.size());
  for (HloId id = entry.first; id < entry.end; ++id) {
    if (module.instruction(id).opcode != "parameter") continue;
    const auto number = static_cast<std::size_t>(std::max<std::int64_t>(
        0, parse_integer(module.instruction(id).arguments, module.source())));
    if (number >= names.size())
      module.source().fail(module.instruction(id).name,
                           "a parameter that entry_computation_layout lacks");
    names[number] = module.op_name(id);
    if (names[number].empty()) names[number] = module.instruction(id).name;
  }
  Buffer buffer;
  buffer.allocated_by = before_the_step;
  for (std::size_t i = 0; i < names.size(); ++i) {
    buffer.name = add_name(plan, "argument " + names[i]);
    buffer.category = use_of_argument(names[i], kept.count(i) > 0).category;
    buffer.bytes = allocated(layout.parameters[i], layout.is_tpu);
    (void)program.add_buffer(buffer, {});
  }
  const HloMemory memory = entry_memory(module);
  buffer.name = add_name(plan, "results that take no argument's place");
  buffer.category = BufferCategory::temporaries;
  buffer.bytes = memory.output - memory.alias;
  if (buffer.bytes > Bytes(0)) (void)program.add_buffer(buffer, {});
  if (!temporaries && !is_scheduled(module)) return;
  buffer.name = add_name(plan, "heap of what lies between");
  buffer.bytes = temporaries ? *temporaries : temporary_bytes(module);
  if (buffer.bytes > Bytes(0)) (void)program.add_buffer(buffer, {});
}

bool is_scheduled(const HloModule& module) { return module.header("is_scheduled") == "true"; }

}  // namespace shardsim
