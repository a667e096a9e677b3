// The outermost level of a program: module, meshes, functions, and what must hold between them.
#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "stablehlo/function_parser.hpp"

namespace shardsim::stablehlo {
namespace {

void parse_mesh_op(Scanner& scanner, Module& module) {
  std::string name = scanner.symbol();
  scanner.expect("=");
  const int line = scanner.line();
  if (scanner.accept("#")) static_cast<void>(scanner.suffix_id("a name after \"#\""));
  Scanner body(scanner.angle_body(), scanner.file(), line);
  if (module.find_mesh(name) != nullptr) scanner.fail(fmt::format("mesh @{} given twice", name));
  module.meshes.push_back(parse_mesh(body, std::move(name)));
  if (scanner.peek() == '{') static_cast<void>(parse_dictionary(scanner));
}

// #loc1 = loc("file":1:2), printed with debug information.
void skip_alias(Scanner& scanner) {
  scanner.expect("#");
  const std::string name(scanner.suffix_id("a name after \"#\""));
  scanner.expect("=");
  if (!scanner.accept_word("loc")) {
    scanner.fail(fmt::format("attribute alias #{}: print the program without aliases", name));
  }
  scanner.skip_parentheses();
}

void parse_top_level(Scanner& scanner, Module& module) {
  if (scanner.accept_word("func.func")) {
    module.functions.push_back(FunctionParser(scanner).parse());
  } else if (scanner.accept_word("sdy.mesh")) {
    parse_mesh_op(scanner, module);
  } else if (scanner.peek() == '#') {
    skip_alias(scanner);
  } else {
    scanner.fail_expected("\"func.func\" or \"sdy.mesh\"");
  }
}

[[noreturn]] void fail(const Module& module, const Op& op, const std::string& message) {
  throw InputError(module.place_of(op), message);
}

void check_call(const Module& module, const Function& caller, const Op& op,
                const std::unordered_map<std::string_view, const Function*>& by_name) {
  const Attribute* callee = find(op.attributes, "callee");
  if (callee == nullptr) fail(module, op, "call of nothing");
  const auto found = by_name.find(callee->text);
  if (found == by_name.end()) {
    std::vector<std::string> names;
    for (const Function& function : module.functions) names.push_back(function.name);
    throw InputError(module.place_of(op), fmt::format("unknown function @{}", callee->text),
                     closest(callee->text, names));
  }
  const Function& function = *found->second;
  const std::vector<ValueId>& arguments = function.body().arguments;
  bool fits =
      arguments.size() == op.operands.size() && function.results.size() == op.results.size();
  for (std::size_t i = 0; fits && i < arguments.size(); ++i) {
    fits = function.type_of(arguments[i]) == caller.type_of(op.operands[i]);
  }
  for (std::size_t i = 0; fits && i < op.results.size(); ++i) {
    fits = function.results[i].type == caller.type_of(op.results[i]);
  }
  if (!fits) fail(module, op, fmt::format("@{} takes or gives other types", callee->text));
}

void check_return(const Module& module, const Function& function) {
  if (function.body().ops.empty()) {
    throw InputError({module.file, fmt::format("line {}", function.line)},
                     fmt::format("@{} returns nothing", function.name));
  }
  const Op& op = function.op(function.body().ops.back());
  bool fits = op.name == "func.return" && op.operands.size() == function.results.size();
  for (std::size_t i = 0; fits && i < op.operands.size(); ++i) {
    fits = function.type_of(op.operands[i]) == function.results[i].type;
  }
  if (!fits) {
    fail(module, op, fmt::format("@{} does not end by returning its results", function.name));
  }
}

void check_sharding(const Module& module, const Value& value, const Place& place) {
  if (!value.sharding.axes) return;
  const AxisSharding& sharding = *value.sharding.axes;
  if (module.find_mesh(sharding.mesh) == nullptr) {
    std::vector<std::string> names;
    for (const ProgramMesh& mesh : module.meshes) names.push_back(mesh.name);
    throw InputError(place, fmt::format("unknown mesh @{}", sharding.mesh),
                     closest(sharding.mesh, names));
  }
  if (sharding.dimensions.size() != value.type.rank()) {
    throw InputError(place, fmt::format("%{} has {} dimensions, its sharding {}", value.name,
                                        value.type.rank(), sharding.dimensions.size()));
  }
}

void check(const Module& module) {
  std::unordered_map<std::string_view, const Function*> by_name;
  for (const Function& function : module.functions) {
    if (!by_name.emplace(function.name, &function).second) {
      throw InputError({module.file, fmt::format("line {}", function.line)},
                       fmt::format("function @{} given twice", function.name));
    }
  }
  for (const Function& function : module.functions) {
    check_return(module, function);
    for (const Op& op : function.ops) {
      if (op.name == "func.call") check_call(module, function, op, by_name);
    }
    for (const Value& value : function.values) {
      const Op* op = value.defined_by == no_op ? nullptr : &function.op(value.defined_by);
      const int line = op == nullptr ? function.line : op->line;
      check_sharding(module, value, {module.file, fmt::format("line {}", line)});
    }
  }
}

}  // namespace

Module parse_module(std::string_view text, const std::string& file) {
  Scanner scanner(text, file);
  Module module;
  module.file = file;
  while (scanner.peek() == '#') skip_alias(scanner);
  if (scanner.accept_word("module")) {
    if (scanner.peek() == '@') module.name = scanner.symbol();
    if (scanner.accept_word("attributes")) module.attributes = parse_dictionary(scanner);
    scanner.expect("{");
    while (!scanner.accept("}")) parse_top_level(scanner, module);
    if (scanner.accept_word("loc")) scanner.skip_parentheses();
    while (scanner.peek() == '#') skip_alias(scanner);
  } else {
    while (!scanner.at_end()) parse_top_level(scanner, module);
  }
  if (!scanner.at_end()) scanner.fail_expected("the end of the program");
  if (module.functions.empty()) scanner.fail("a program without functions");
  check(module);
  return module;
}

}  // namespace shardsim::stablehlo
