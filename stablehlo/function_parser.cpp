#include "stablehlo/function_parser.hpp"

#include <fmt/format.h>

#include "base/index.hpp"

namespace shardsim::stablehlo {

Function FunctionParser::parse() {
  function_.line = scanner_.line();
  function_.regions.emplace_back();
  parse_header();
  parse_region(0);
  skip_location();
  return std::move(function_);
}

void FunctionParser::parse_header() {
  if (scanner_.accept_word("private") || scanner_.accept_word("nested")) {
    function_.is_public = false;
  } else {
    scanner_.accept_word("public");
  }
  function_.name = scanner_.symbol();
  scanner_.expect("(");
  while (!scanner_.accept(")")) {
    Region& body = function_.regions.front();
    if (!body.arguments.empty()) scanner_.expect(",");
    if (!scanner_.accept("%")) {
      scanner_.fail(fmt::format("function @{} has no body", function_.name));
    }
    std::string name(scanner_.suffix_id("the name of an argument"));
    scanner_.expect(":");
    TensorType type = parse_type(scanner_);
    const ValueId value =
        define(std::move(name), std::move(type), no_op, static_cast<int>(body.arguments.size()));
    body.arguments.push_back(value);
    AttributeList attributes;
    if (scanner_.peek() == '{') attributes = parse_dictionary(scanner_);
    function_.values.back().sharding = sharding_of(attributes);
    function_.argument_attributes.push_back(std::move(attributes));
    skip_location();
  }
  if (scanner_.accept("->")) parse_results_of_function();
  if (scanner_.accept_word("attributes")) function_.attributes = parse_dictionary(scanner_);
}

void FunctionParser::parse_results_of_function() {
  const bool many = scanner_.accept("(");
  if (many && scanner_.accept(")")) return;
  do {
    FunctionResult& result = function_.results.emplace_back();
    result.type = parse_type(scanner_);
    // A "{" after a single result without parentheses opens the body.
    if (many && scanner_.peek() == '{') result.attributes = parse_dictionary(scanner_);
    result.sharding = sharding_of(result.attributes);
  } while (many && scanner_.accept(","));
  if (many) scanner_.expect(")");
}

// `region` may have arguments already; those of a ^bb0 line are added.
void FunctionParser::parse_region(RegionId region) {
  if (++depth_ > deepest_nesting) scanner_.fail("regions nested too deeply");
  const std::size_t outer = region == 0 ? 0 : defined_.size();
  scanner_.expect("{");
  if (scanner_.accept("^")) parse_block_arguments(region);
  while (!scanner_.accept("}")) {
    if (scanner_.peek() == '^') {
      scanner_.fail("a region with several blocks",
                    "structured control flow only (while, if, case)");
    }
    if (scanner_.at_end()) scanner_.fail_expected("\"}\"");
    parse_op(region);
  }
  for (; defined_.size() > outer; defined_.pop_back()) names_.erase(defined_.back());
  --depth_;
}

void FunctionParser::parse_block_arguments(RegionId region) {
  static_cast<void>(scanner_.suffix_id("the name of a block"));
  if (scanner_.accept("(")) {
    while (!scanner_.accept(")")) {
      Region& block = function_.regions[at(region)];
      if (!block.arguments.empty()) scanner_.expect(",");
      scanner_.expect("%");
      std::string name(scanner_.suffix_id("the name of an argument"));
      scanner_.expect(":");
      TensorType type = parse_type(scanner_);
      const int index = static_cast<int>(block.arguments.size());
      block.arguments.push_back(define(std::move(name), std::move(type), no_op, index));
      skip_location();
    }
  }
  scanner_.expect(":");
}

std::vector<TensorType> FunctionParser::parse_type_list() {
  std::vector<TensorType> types;
  do {
    types.push_back(parse_type(scanner_));
  } while (scanner_.accept(","));
  return types;
}

ValueId FunctionParser::parse_value_use() {
  scanner_.expect("%");
  std::string name(scanner_.suffix_id("the name of a value"));
  if (scanner_.next_is("#")) {
    scanner_.expect("#");
    name += fmt::format("#{}", scanner_.integer("the number of a result"));
  }
  const auto found = names_.find(name);
  if (found == names_.end()) scanner_.fail(fmt::format("unknown value %{}", name));
  return found->second;
}

ValueId FunctionParser::define(std::string name, TensorType type, OpId op, int index) {
  const ValueId id = static_cast<ValueId>(function_.values.size());
  if (!names_.emplace(name, id).second) {
    scanner_.fail(fmt::format("%{} is defined twice", name));
  }
  defined_.push_back(name);
  function_.values.push_back({std::move(name), std::move(type), op, index, {}});
  return id;
}

ValueSharding FunctionParser::sharding_of(const AttributeList& attributes) {
  ValueSharding sharding;
  if (const Attribute* axes = find(attributes, "sdy.sharding")) {
    if (axes->name != "sdy.sharding") scanner_.fail("sdy.sharding is no #sdy.sharding<...>");
    Scanner body(axes->text, scanner_.file(), scanner_.line());
    sharding.axes = parse_axis_sharding(body);
  } else if (const Attribute* tiles = find(attributes, "mhlo.sharding")) {
    Scanner text(tiles->text, scanner_.file(), scanner_.line());
    sharding.tiles = parse_tile_sharding(text);
  }
  return sharding;
}

// With debug information every op, argument and function ends in loc(...).
void FunctionParser::skip_location() {
  if (scanner_.accept_word("loc")) scanner_.skip_parentheses();
}

}  // namespace shardsim::stablehlo
