#include "hlo/buffer_assignment.hpp"

#include <algorithm>

#include "hlo/cursor.hpp"

namespace shardsim {
namespace {

constexpr std::string_view keyword = "allocation ";
constexpr std::int64_t most_buffer_bytes = std::int64_t{1} << 50;

// The next piece of "size 16, output shape is |(f32[4], s32[])|, maybe-live-out:".
std::string_view take_property(std::string_view& rest) {
  std::size_t end = 0;
  bool in_shape = false;
  while (end < rest.size() && (in_shape || (rest[end] != ',' && rest[end] != ':'))) {
    if (rest[end] == '|') in_shape = !in_shape;
    ++end;
  }
  const std::string_view property = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return property;
}

HloAllocation parse_allocation(std::string_view line, const HloSource& source) {
  constexpr std::string_view size = "size ";
  constexpr std::string_view parameter = "parameter ";
  std::string_view rest = line.substr(keyword.size());
  (void)take_property(rest);  // its number
  HloAllocation allocation;
  bool has_size = false;
  while (!rest.empty()) {
    const std::string_view property = take_property(rest);
    if (property.starts_with(size)) {
      const std::int64_t bytes = parse_integer(property.substr(size.size()), source);
      if (bytes < 0 || bytes > most_buffer_bytes) source.fail(property, "a size out of range");
      allocation.bytes = Bytes(bytes);
      has_size = true;
    }
    if (property.starts_with(parameter)) {
      allocation.parameter = parse_integer(property.substr(parameter.size()), source);
    }
    allocation.lives_on = allocation.lives_on || property == "maybe-live-out";
    allocation.is_heap = allocation.is_heap || property == "preallocated-temp";
  }
  if (!has_size) source.fail(line, "an allocation without a size");
  return allocation;
}

}  // namespace

HloMemory BufferAssignment::memory() const {
  HloMemory memory;
  for (const HloAllocation& allocation : allocations) {
    if (allocation.parameter) memory.argument += allocation.bytes;
    if (allocation.lives_on) memory.output += allocation.bytes;
    if (allocation.parameter && allocation.lives_on) memory.alias += allocation.bytes;
  }
  return memory;
}

Bytes BufferAssignment::temporaries() const {
  Bytes sum;
  for (const HloAllocation& allocation : allocations) {
    if (allocation.is_heap) sum += allocation.bytes;
  }
  return sum;
}

Bytes BufferAssignment::peak() const {
  const HloMemory all = memory();
  return all.argument + all.output - all.alias + temporaries();
}

BufferAssignment parse_buffer_assignment(std::string_view text, const std::string& file) {
  const HloSource source{text, file};
  if (!text.starts_with("BufferAssignment:")) {
    source.fail(text, "expected \"BufferAssignment:\": this is no assignment of buffers");
  }
  BufferAssignment assignment;
  Bytes sum;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with(keyword)) {
      assignment.allocations.push_back(parse_allocation(line, source));
      sum += assignment.allocations.back().bytes;
      if (sum > Bytes(most_buffer_bytes)) source.fail(line, "sizes out of range");
    }
  }
  return assignment;
}

}  // namespace shardsim
