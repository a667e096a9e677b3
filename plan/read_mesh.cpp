#include "plan/read_mesh.hpp"

#include "base/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardsim {
namespace {

bool is_identifier(const std::string& name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

// "data=2,fsdp=4" as the object it stands for. Sizes are read as JSON numbers, so that both ways of
// writing them get the same checks.
Json object_from_text(const JsonReader& json) {
  Json object = Json::object();
  const std::string text = json.string();
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      json.fail(
          fmt::format("\"{}\" is not AXIS=SIZE, expected for example \"data=2,fsdp=4\"", part));
    }
    const std::string name = part.substr(0, equals);
    const std::string size = part.substr(equals + 1);
    if (object.contains(name)) json.fail(fmt::format("axis \"{}\" is given twice", name));
    const Json number = Json::parse(size, nullptr, /*allow_exceptions=*/false);
    if (!number.is_number()) {
      json.fail(fmt::format("\"{}\" is no size for axis \"{}\"", size, name));
    }
    object[name] = number;
  }
  return object;
}

}  // namespace

Mesh read_mesh(const JsonReader& json) {
  if (json.is_string()) {
    const Json object = object_from_text(json);
    return read_mesh(JsonReader(object, json.place()));
  }
  if (!json.is_object()) {
    json.fail("expected axes and their sizes, for example {\"data\": 2, \"fsdp\": 4}");
  }
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : json.members()) {
    if (!is_identifier(name)) {
      json.fail(
          fmt::format("axis name \"{}\" must be letters, digits and _, no digit first", name));
    }
    axes.push_back({name, size.integer(1, most_devices)});
  }
  std::int64_t devices = 1;
  for (const MeshAxis& axis : axes) {
    if (axis.size > most_devices / devices) {
      const std::string sizes =
          describe(Mesh({axes.begin(), axes.begin() + (&axis - axes.data())}));
      json.fail(fmt::format("{}{}{}={} has more than {} devices", sizes, sizes.empty() ? "" : " x ",
                            axis.name, axis.size, most_devices));
    }
    devices *= axis.size;
  }
  return Mesh(std::move(axes));
}

Json mesh_to_json(const Mesh& mesh) {
  Json json = Json::object();
  for (const MeshAxis& axis : mesh.axes()) json[axis.name] = axis.size;
  return json;
}

std::string describe(const Mesh& mesh) {
  std::vector<std::string> parts;
  for (const MeshAxis& axis : mesh.axes())
    parts.push_back(fmt::format("{}={}", axis.name, axis.size));
  return fmt::format("{}", fmt::join(parts, " x "));
}

}  // namespace shardsim
