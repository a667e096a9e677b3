// The end of an op in FunctionParser: its results, checked against its types, with their shardings.
#include <fmt/format.h>

#include "base/index.hpp"
#include "stablehlo/function_parser.hpp"

namespace shardsim::stablehlo {

void FunctionParser::finish(Draft draft, OpId id) {
  Op& op = draft.op;
  op.operands.insert(op.operands.end(), draft.initial_values.begin(), draft.initial_values.end());
  check_operand_types(draft);
  std::size_t count = 0;
  for (const int results : draft.result_counts) {
    count += static_cast<std::size_t>(results == 0 ? 1 : results);
  }
  std::vector<TensorType> types = types_of_results(draft, count);
  std::size_t index = 0;
  for (std::size_t i = 0; i < draft.result_names.size(); ++i) {
    const int results = draft.result_counts[i];
    for (int part = 0; part < std::max(results, 1); ++part, ++index) {
      std::string name = draft.result_names[i];
      if (results > 0) name += fmt::format("#{}", part);
      op.results.push_back(
          define(std::move(name), std::move(types[index]), id, static_cast<int>(index)));
    }
  }
  for (const RegionId region : op.regions) {
    function_.regions[at(region)].owner = id;
  }
  function_.ops[at(id)] = std::move(op);
  attach_shardings(id);
}

void FunctionParser::check_operand_types(const Draft& draft) {
  if (!draft.has_signature) return;
  const std::vector<ValueId>& operands = draft.op.operands;
  if (draft.operand_types.size() != operands.size()) {
    scanner_.fail(fmt::format("{} has {} operands, but {} types for them", draft.op.name,
                              operands.size(), draft.operand_types.size()));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Value& value = function_.values[at(operands[i])];
    if (value.type == draft.operand_types[i]) continue;
    scanner_.fail(fmt::format("%{} is {}, not {}", value.name, text_of(value.type),
                              text_of(draft.operand_types[i])));
  }
}

// A list of types is short for: the type of every result; the types of the results; of a select,
// the predicate's and the result's. Ops without results list the types of their operands.
std::vector<TensorType> FunctionParser::types_of_results(const Draft& draft, std::size_t count) {
  const std::vector<TensorType>& types = draft.result_types;
  if (types.size() == count) return types;
  if (!draft.has_signature) {
    if (count == 0) return {};
    if (count == 1 && draft.op.name == "stablehlo.select" && types.size() == 2) {
      return {types.back()};
    }
    if (types.size() == 1) return std::vector<TensorType>(count, types.front());
  }
  scanner_.fail(
      fmt::format("{} has {} results, but {} types for them", draft.op.name, count, types.size()));
}

void FunctionParser::attach_shardings(OpId id) {
  const Op& op = function_.op(id);
  std::vector<ValueSharding> shardings;
  if (const Attribute* axes = find(op.attributes, "sdy.sharding")) {
    Scanner body(axes->text, scanner_.file(), op.line);
    if (axes->name == "sdy.sharding_per_value") {
      for (AxisSharding& sharding : parse_sharding_per_value(body)) {
        shardings.push_back({std::move(sharding), std::nullopt});
      }
    } else if (axes->name == "sdy.sharding") {
      shardings.push_back({parse_axis_sharding(body), std::nullopt});
    } else {
      scanner_.fail("sdy.sharding is no #sdy.sharding_per_value<...>");
    }
  } else if (const Attribute* tiles = find(op.attributes, "mhlo.sharding")) {
    Scanner text(tiles->text, scanner_.file(), op.line);
    TileSharding sharding = parse_tile_sharding(text);
    if (sharding.kind == TileSharding::Kind::tuple && op.results.size() > 1) {
      for (TileSharding& element : sharding.elements) {
        shardings.push_back({std::nullopt, std::move(element)});
      }
    } else {
      shardings.assign(op.results.size(), {std::nullopt, sharding});
    }
  } else if (op.name == "sdy.sharding_constraint" || op.name == "sdy.reshard") {
    const Attribute* value = find(op.attributes, "value");
    if (value == nullptr) value = find(op.attributes, "sharding");
    if (value == nullptr || value->kind != Attribute::Kind::dialect) {
      scanner_.fail(fmt::format("{} without a sharding", op.name));
    }
    Scanner body(value->text, scanner_.file(), op.line);
    shardings.push_back({parse_axis_sharding(body), std::nullopt});
  } else {
    return;
  }
  if (shardings.size() != op.results.size()) {
    scanner_.fail(fmt::format("{} has {} results, but {} shardings", op.name, op.results.size(),
                              shardings.size()));
  }
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    function_.values[at(op.results[i])].sharding = std::move(shardings[i]);
  }
}

}  // namespace shardsim::stablehlo
