#include "stablehlo/sharding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardsim::stablehlo {
namespace {

// {"x", "y":(1)2}; "?" where `open` is given.
std::vector<AxisPart> parse_axes(Scanner& body, bool* open) {
  body.expect("{");
  std::vector<AxisPart> axes;
  bool first = true;
  while (!body.accept("}")) {
    if (!first) body.expect(",");
    first = false;
    if (open != nullptr && body.accept("?")) {
      *open = true;
      body.expect("}");
      break;
    }
    AxisPart& part = axes.emplace_back();
    part.axis = body.string_literal();
    if (!body.accept(":")) continue;
    body.expect("(");
    part.pre_size = body.integer("the pre-size of a sub-axis");
    body.expect(")");
    part.size = body.integer("the size of a sub-axis");
    if (part.pre_size < 1 || part.size < 1) body.fail("sub-axis with a size below 1");
  }
  return axes;
}

std::vector<DimensionSharding> parse_dimensions(Scanner& body) {
  constexpr std::int64_t highest_priority = 1'000'000;
  body.expect("[");
  std::vector<DimensionSharding> dimensions;
  while (!body.accept("]")) {
    if (!dimensions.empty()) body.expect(",");
    DimensionSharding& dimension = dimensions.emplace_back();
    dimension.axes = parse_axes(body, &dimension.open);
    if (body.peek() != 'p') continue;
    const std::string_view word = body.try_word();
    Scanner priority(word.substr(1), body.file(), body.line());
    const std::int64_t value = priority.integer("a priority after \"p\"");
    if (!priority.at_end() || value < 0 || value > highest_priority) {
      body.fail(fmt::format("\"{}\" is no priority", word));
    }
    dimension.priority = static_cast<int>(value);
  }
  return dimensions;
}

std::string text_of_axes(const std::vector<AxisPart>& axes, bool open) {
  std::vector<std::string> entries;
  for (const AxisPart& part : axes) entries.push_back(text_of(part));
  if (open) entries.emplace_back("?");
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

std::vector<std::int64_t> parse_numbers(Scanner& text, std::string_view open,
                                        std::string_view close) {
  text.expect(open);
  std::vector<std::int64_t> values;
  while (!text.accept(close)) {
    if (!values.empty()) text.expect(",");
    values.push_back(text.integer("a number"));
  }
  return values;
}

// `sizes` are at least 1. Fails where they multiply to more devices than a program may have.
std::int64_t count_devices(Scanner& text, const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1) text.fail("a size of less than 1");
    if (size > most_devices / count) {
      text.fail(fmt::format("more than {} devices", most_devices));
    }
    count *= size;
  }
  return count;
}

void check_each_once(Scanner& text, std::vector<std::int64_t> numbers, std::int64_t count) {
  std::sort(numbers.begin(), numbers.end());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != static_cast<std::int64_t>(i)) text.fail("not each of 0, 1, 2, ... once");
  }
  if (static_cast<std::int64_t>(numbers.size()) != count) {
    text.fail(fmt::format("{} numbers are listed, not {}", numbers.size(), count));
  }
}

void parse_tiles(Scanner& text, TileSharding& sharding) {
  sharding.kind = TileSharding::Kind::tiled;
  text.expect("=");
  sharding.tiles = parse_numbers(text, "[", "]");
  const std::int64_t count = count_devices(text, sharding.tiles);
  if (text.accept("<=")) {
    sharding.reshape = parse_numbers(text, "[", "]");
    const std::int64_t devices = count_devices(text, sharding.reshape);
    if (devices != count) text.fail(fmt::format("{} tiles for {} devices", count, devices));
    if (text.accept("T")) {
      sharding.transpose = parse_numbers(text, "(", ")");
      check_each_once(text, sharding.transpose, static_cast<std::int64_t>(sharding.reshape.size()));
    }
    return;
  }
  do {
    sharding.devices.push_back(text.integer("a device"));
  } while (text.accept(","));
  check_each_once(text, sharding.devices, count);
}

TileSharding parse_tiles_or_tuple(Scanner& text, int depth) {
  if (depth > 2) text.fail("tuples of shardings nested too deeply");
  TileSharding sharding;
  text.expect("{");
  if (text.peek() == '{') {
    sharding.kind = TileSharding::Kind::tuple;
    do {
      sharding.elements.push_back(parse_tiles_or_tuple(text, depth + 1));
    } while (text.accept(","));
    text.expect("}");
    return sharding;
  }
  while (!text.accept("}")) {
    const std::string_view word = text.word("a kind of sharding");
    if (word == "replicated") {
      sharding.kind = TileSharding::Kind::replicated;
    } else if (word == "manual") {
      sharding.kind = TileSharding::Kind::manual;
    } else if (word == "unknown") {
      sharding.kind = TileSharding::Kind::unknown;
    } else if (word == "maximal") {
      sharding.kind = TileSharding::Kind::maximal;
      if (!text.accept_word("device")) text.fail_expected("\"device=\"");
      text.expect("=");
      sharding.device = text.integer("a device");
    } else if (word == "devices") {
      parse_tiles(text, sharding);
    } else if (word == "last_tile_dim_replicate") {
      sharding.last_tile_dim_replicate = true;
    } else if (word == "last_tile_dims") {
      text.expect("=");
      text.expect("{");
      do {
        sharding.subgroups.emplace_back(text.word("a kind of subgroup"));
      } while (text.accept(","));
      text.expect("}");
    } else {
      text.fail(fmt::format("unknown kind of sharding \"{}\"", word));
    }
  }
  return sharding;
}

std::string text_of_tiles(const TileSharding& sharding) {
  std::string text = fmt::format("devices=[{}]", fmt::join(sharding.tiles, ","));
  if (!sharding.devices.empty()) {
    text += fmt::format("{}", fmt::join(sharding.devices, ","));
  } else {
    text += fmt::format("<=[{}]", fmt::join(sharding.reshape, ","));
    if (!sharding.transpose.empty()) {
      text += fmt::format("T({})", fmt::join(sharding.transpose, ","));
    }
  }
  if (sharding.last_tile_dim_replicate) text += " last_tile_dim_replicate";
  if (!sharding.subgroups.empty()) {
    text += fmt::format(" last_tile_dims={{{}}}", fmt::join(sharding.subgroups, ", "));
  }
  return text;
}

}  // namespace

std::string text_of(const AxisPart& part) {
  if (part.size == 0) return fmt::format("\"{}\"", part.axis);
  return fmt::format("\"{}\":({}){}", part.axis, part.pre_size, part.size);
}

std::string text_of(const AxisSharding& sharding) {
  std::vector<std::string> dimensions;
  for (const DimensionSharding& dimension : sharding.dimensions) {
    std::string text = text_of_axes(dimension.axes, dimension.open);
    if (dimension.priority) text += fmt::format("p{}", *dimension.priority);
    dimensions.push_back(text);
  }
  std::string text = fmt::format("<@{}, [{}]", sharding.mesh, fmt::join(dimensions, ", "));
  if (!sharding.replicated.empty()) {
    text += ", replicated=" + text_of_axes(sharding.replicated, /*open=*/false);
  }
  if (!sharding.unreduced.empty()) {
    text += ", unreduced=" + text_of_axes(sharding.unreduced, /*open=*/false);
  }
  return text + ">";
}

std::string text_of(const TileSharding& sharding) {
  using Kind = TileSharding::Kind;
  switch (sharding.kind) {
    case Kind::replicated:
      return "{replicated}";
    case Kind::manual:
      return "{manual}";
    case Kind::unknown:
      return "{unknown}";
    case Kind::maximal:
      return fmt::format("{{maximal device={}}}", sharding.device);
    case Kind::tiled:
      return fmt::format("{{{}}}", text_of_tiles(sharding));
    case Kind::tuple:
      break;
  }
  std::vector<std::string> elements;
  for (const TileSharding& element : sharding.elements) elements.push_back(text_of(element));
  return fmt::format("{{{}}}", fmt::join(elements, ", "));
}

ProgramMesh parse_mesh(Scanner& body, std::string name) {
  ProgramMesh mesh;
  mesh.name = std::move(name);
  body.expect("[");
  while (!body.accept("]")) {
    if (!mesh.axes.empty()) body.expect(",");
    ProgramAxis& axis = mesh.axes.emplace_back();
    axis.name = body.string_literal();
    body.expect("=");
    axis.size = body.integer("the size of an axis");
    if (axis.size < 1) body.fail(fmt::format("axis \"{}\" has no devices", axis.name));
  }
  if (body.accept(",")) {
    if (!body.accept_word("device_ids")) body.fail_expected("\"device_ids\"");
    body.expect("=");
    mesh.device_ids = parse_numbers(body, "[", "]");
  }
  if (!body.at_end()) body.fail_expected("\">\"");
  std::vector<std::int64_t> sizes;
  for (const ProgramAxis& axis : mesh.axes) sizes.push_back(axis.size);
  const std::int64_t count = count_devices(body, sizes);
  // Without axes and with one device: everything is on that one.
  if (!mesh.device_ids.empty() && !mesh.axes.empty()) check_each_once(body, mesh.device_ids, count);
  return mesh;
}

AxisSharding parse_axis_sharding(Scanner& body) {
  AxisSharding sharding;
  if (body.next_is_word("mesh")) {
    body.fail("sharding with a mesh written in place: name it, sdy.mesh @mesh = <...>");
  }
  sharding.mesh = body.symbol();
  body.expect(",");
  sharding.dimensions = parse_dimensions(body);
  while (body.accept(",")) {
    const std::string_view word = body.word("\"replicated\" or \"unreduced\"");
    body.expect("=");
    if (word == "replicated") {
      sharding.replicated = parse_axes(body, nullptr);
    } else if (word == "unreduced") {
      sharding.unreduced = parse_axes(body, nullptr);
    } else {
      body.fail(fmt::format("unknown part of a sharding \"{}\"", word));
    }
  }
  if (!body.at_end()) body.fail_expected("\">\"");
  return sharding;
}

std::vector<AxisSharding> parse_sharding_per_value(Scanner& body) {
  std::vector<AxisSharding> shardings;
  body.expect("[");
  while (!body.accept("]")) {
    if (!shardings.empty()) body.expect(",");
    const int line = body.line();
    Scanner inner(body.angle_body(), body.file(), line);
    shardings.push_back(parse_axis_sharding(inner));
  }
  if (!body.at_end()) body.fail_expected("\">\"");
  return shardings;
}

TileSharding parse_tile_sharding(Scanner& text) {
  TileSharding sharding = parse_tiles_or_tuple(text, 0);
  if (!text.at_end()) text.fail_expected("the end of the sharding");
  return sharding;
}

}  // namespace shardsim::stablehlo
