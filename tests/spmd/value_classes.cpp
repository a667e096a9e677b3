#include "tests/spmd/value_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/index.hpp"

namespace shardsim::test {

using stablehlo::Attribute;
using stablehlo::Function;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::RegionId;
using stablehlo::ValueId;

namespace {

// 7.62939453E-6 and 7.6293945e-06 are one number.
std::string number_text(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || text.starts_with("0x")) return text;
  return fmt::format("{}", static_cast<float>(number));
}

std::string text_of(const Attribute& attribute) {
  const bool elements = attribute.kind == Attribute::Kind::elements;
  std::string text =
      attribute.name + "<" + (elements ? number_text(attribute.text) : attribute.text) + ">";
  if (attribute.kind == Attribute::Kind::integer || attribute.kind == Attribute::Kind::boolean) {
    text += std::to_string(attribute.integer);
  }
  for (const Attribute& item : attribute.items) text += "[" + text_of(item);
  for (const stablehlo::NamedAttribute& entry : attribute.entries) {
    text += "{" + entry.name + text_of(entry.value);
  }
  return text;
}

// Shardings, and what the way through HLO changes without changing the program.
bool says_nothing(const std::string& name) {
  constexpr auto names = std::to_array<std::string_view>(
      {"channel_handle", "in_shardings", "manual_axes", "mhlo.frontend_attributes", "mhlo.sharding",
       "out_shardings", "precision", "result_layout", "sdy.sharding", "sdy.sharding_rule",
       "xla_shape"});
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string key_of(const Op& op) {
  const bool constraint = op.name == "sdy.reshard" || op.name == "sdy.sharding_constraint";
  if (constraint) return "constraint";
  if (op.name == "sdy.constant") return "stablehlo.constant";
  if (op.name == "stablehlo.dot") return "stablehlo.dot_general";
  if (op.name == "mhlo.topk") return "chlo.top_k";
  return op.name;
}

// What dot_general would say: the last dimension of the one with the first of the other.
std::vector<std::string> plain_dot(const Function& function, const Op& op) {
  const auto list = [](std::size_t number) {
    return "[<>[<" + std::to_string(number) + ">" + std::to_string(number);
  };
  const std::size_t rank = function.type_of(op.operands.front()).rank();
  return {"contracting_dims=<>" + list(rank - 1) + list(0)};
}

}  // namespace

struct ValueClasses::Walk {
  const Function& function;
  const std::vector<char>& skip;
  std::vector<int> classes;

  [[nodiscard]] int of(ValueId value) const { return classes[at(value)]; }
  void set(ValueId value, int number) { classes[at(value)] = number; }
};

int ValueClasses::number(const std::string& key) {
  const auto [known, is_new] = numbers_.emplace(key, static_cast<int>(keys_.size()));
  if (is_new) keys_.push_back(key);
  return known->second;
}

std::string ValueClasses::description(int value_class) const { return keys_[at(value_class)]; }

std::vector<int> ValueClasses::classify(const Function& function, const std::vector<char>& skip) {
  Walk walk{function, skip, std::vector<int>(function.values.size(), -1)};
  const std::vector<ValueId>& arguments = function.body().arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    walk.set(arguments[i], number("argument " + std::to_string(i)));
  }
  visit_region(walk, 0);
  return std::move(walk.classes);
}

void ValueClasses::visit_region(Walk& walk, RegionId region) {
  for (const OpId id : walk.function.regions[at(region)].ops) visit(walk, id);
}

void ValueClasses::visit(Walk& walk, OpId id) {
  const Op& op = walk.function.op(id);
  if (static_cast<std::size_t>(id) < walk.skip.size() && walk.skip[at(id)] != 0) {
    walk.set(op.results.front(), walk.of(op.operands.front()));
    return;
  }
  std::string key = key_of(op);
  std::vector<std::string> attributes;
  if (op.name == "stablehlo.dot") attributes = plain_dot(walk.function, op);
  for (const stablehlo::NamedAttribute& attribute : op.attributes) {
    if (says_nothing(attribute.name) || key == "constraint") continue;
    if (key == "stablehlo.custom_call" && attribute.name != "callee") continue;
    // SIGNED or FLOAT of a compare follows from its operands.
    const bool compare = op.name == "stablehlo.compare" && attribute.name == "words";
    const Attribute& value = compare ? attribute.value.items.front() : attribute.value;
    attributes.push_back(attribute.name + "=" + text_of(value));
  }
  std::sort(attributes.begin(), attributes.end());
  for (const std::string& attribute : attributes) key += " " + attribute;
  for (const ValueId operand : op.operands) key += " %" + std::to_string(walk.of(operand));
  std::string inner;
  for (std::size_t r = 0; r < op.regions.size(); ++r) {
    const stablehlo::Region& region = walk.function.regions[at(op.regions[r])];
    for (std::size_t i = 0; i < region.arguments.size(); ++i) {
      walk.set(region.arguments[i],
               number(key + " region " + std::to_string(r) + " argument " + std::to_string(i)));
    }
    visit_region(walk, op.regions[r]);
    inner += " {";
    for (const ValueId value : walk.function.op(region.ops.back()).operands) {
      inner += " %" + std::to_string(walk.of(value));
    }
    inner += "}";
  }
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    walk.set(op.results[i], number(key + inner + " -> " +
                                   stablehlo::text_of(walk.function.type_of(op.results[i])) + " #" +
                                   std::to_string(i)));
  }
}

std::string axes_text(const stablehlo::Value& value) {
  std::string text = "[";
  const auto& axes = value.sharding.axes;
  for (std::size_t d = 0; d < value.type.rank(); ++d) {
    text += d == 0 ? "{" : ", {";
    for (std::size_t i = 0; axes && i < axes->dimensions[d].axes.size(); ++i) {
      text += (i == 0 ? "" : ", ") + stablehlo::text_of(axes->dimensions[d].axes[i]);
    }
    text += "}";
  }
  text += "]";
  if (axes && !axes->unreduced.empty()) {
    text += " unreduced";
    for (const stablehlo::AxisPart& part : axes->unreduced) text += " " + stablehlo::text_of(part);
  }
  return text;
}

std::string pieces_text(const stablehlo::Module& module, const stablehlo::Value& value) {
  std::string text;
  const auto& axes = value.sharding.axes;
  for (std::size_t d = 0; axes && d < value.type.rank(); ++d) {
    text += "|";
    if (axes->dimensions[d].axes.empty()) continue;
    const stablehlo::ProgramMesh& mesh = *module.find_mesh(axes->mesh);
    std::int64_t devices = 1;
    for (const stablehlo::ProgramAxis& axis : mesh.axes) devices *= axis.size;
    for (std::int64_t device = 0; device < devices; ++device) {
      std::int64_t piece = 0;
      for (const stablehlo::AxisPart& part : axes->dimensions[d].axes) {
        std::int64_t stride = devices;
        auto axis = mesh.axes.begin();
        for (; axis->name != part.axis; ++axis) stride /= axis->size;
        stride /= axis->size;
        const std::int64_t size = part.size == 0 ? axis->size : part.size;
        const std::int64_t minor = axis->size / part.pre_size / size;
        piece = piece * size + device / stride % axis->size / minor % size;
      }
      text += fmt::format("{} ", piece);
    }
  }
  const bool whole = std::all_of(text.begin(), text.end(), [](char c) { return c == '|'; });
  return whole ? "whole" : text;
}

}  // namespace shardsim::test
