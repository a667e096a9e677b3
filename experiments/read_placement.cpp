#include "experiments/read_placement.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/json.hpp"
#include "plan/read_mesh.hpp"

namespace shardsim {
namespace {

using Kind = DeviceOrder::Kind;

DeviceOrder read_list(const JsonReader& json) {
  DeviceOrder order;
  order.place = json.place();
  const std::vector<JsonReader> elements = json.elements();
  if (elements.empty()) json.fail("the list of axes or devices is empty");
  order.kind = elements.front().is_string() ? Kind::axes : Kind::listed;
  for (const JsonReader& element : elements) {
    if (order.kind == Kind::axes) {
      order.axes.push_back(element.string());
    } else {
      order.devices.push_back(element.integer(0, most_devices));
    }
  }
  return order;
}

std::vector<std::string> split_axes(const JsonReader& json) {
  std::vector<std::string> axes(1);
  for (const char c : json.string()) {
    if (c == '-' || c == ',') {
      axes.emplace_back();
    } else {
      axes.back() += c;
    }
  }
  for (const std::string& axis : axes) {
    if (axis.empty()) {
      json.fail(fmt::format("\"{}\" is no order of axes, as tp-cp-dp-pp is", json.string()));
    }
  }
  return axes;
}

}  // namespace

DeviceOrder read_placement(const JsonReader& json, const std::string& directory) {
  if (json.is_array()) return read_list(json);
  const std::string text = json.string();
  if (text.ends_with(".json")) {
    const std::filesystem::path path = std::filesystem::path(directory) / text;
    const Json document = load_json(path.string());
    return read_list(JsonReader(document, {path.string(), ""}));
  }
  DeviceOrder order;
  order.place = json.place();
  if (text == "jax") {
    order.kind = Kind::jax;
  } else if (text == "row-major") {
    order.kind = Kind::row_major;
  } else {
    order.kind = Kind::axes;
    order.axes = text == "megatron" ? megatron_order() : split_axes(json);
  }
  return order;
}

std::int64_t read_slices(const JsonReader& json, DeviceOrder& order) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  order.slices_place = json.place();
  if (json.is_number()) return json.integer(1, most);
  const Mesh mesh = read_mesh(json);
  order.slices = mesh.axes();
  if (mesh.devices() > most) json.fail(fmt::format("more than {} slices", most));
  return mesh.devices();
}

}  // namespace shardsim
