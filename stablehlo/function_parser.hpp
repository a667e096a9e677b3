// Reads one function. Ops need no grammar each: between its name and its types an op of MLIR is a
// sequence of clauses that look the same everywhere, and the words that name them are kept.
//
//   %2 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]
//        operand, operand, named value, named value           then ": (types) -> types"
//   %3:2 = stablehlo.while(%i = %c, %x = %a) : types cond {...} do {...}
//        bindings of region arguments                         then regions
//
// What fits no clause is an error; what is read is never dropped (locations excepted).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::stablehlo {

class FunctionParser {
 public:
  explicit FunctionParser(Scanner& scanner) : scanner_(scanner) {}
  // After "func.func", to the closing brace of the body.
  [[nodiscard]] Function parse();

 private:
  // What is read of an op before its values can be made.
  struct Draft {
    Op op;
    std::vector<std::string> result_names;
    std::vector<int> result_counts;
    std::vector<std::pair<std::string, TensorType>> block_arguments;
    std::vector<std::string> bound_names;  // of a while: its region arguments
    std::vector<ValueId> initial_values;   // of a reduce: they follow the inputs
    bool has_operand_group = false;
    bool has_block_arguments = false;
    bool has_signature = false;             // (types) -> types, in contrast to a list of types
    std::vector<TensorType> operand_types;  // of a signature
    std::vector<TensorType> result_types;   // of a signature, or the list
  };

  void parse_header();
  void parse_results_of_function();
  void parse_region(RegionId region);
  void parse_block_arguments(RegionId region);
  void parse_op(RegionId parent);
  void parse_result_names(Draft& draft);
  void parse_op_name(Draft& draft);
  bool parse_clause(Draft& draft);
  void parse_group(Draft& draft);
  void parse_group_item(Draft& draft);
  void parse_braces(Draft& draft);
  void parse_word_clause(Draft& draft);
  void parse_slice_ranges(Draft& draft);
  void parse_types(Draft& draft);
  void parse_trailing_regions(Draft& draft);
  void parse_reducer(Draft& draft);
  void parse_owned_region(Draft& draft,
                          const std::vector<std::pair<std::string, TensorType>>& arguments);
  void skip_location();

  void add_attribute(Draft& draft, std::string name, Attribute value);
  void finish(Draft draft, OpId id);
  void check_operand_types(const Draft& draft);
  [[nodiscard]] std::vector<TensorType> types_of_results(const Draft& draft, std::size_t count);
  void attach_shardings(OpId id);
  [[nodiscard]] ValueSharding sharding_of(const AttributeList& attributes);

  [[nodiscard]] std::vector<TensorType> parse_type_list();
  [[nodiscard]] ValueId parse_value_use();
  ValueId define(std::string name, TensorType type, OpId op, int index);

  Scanner& scanner_;
  Function function_;
  std::unordered_map<std::string, ValueId> names_;
  std::vector<std::string> defined_;  // in order; a region forgets its own at its end
  int depth_ = 0;
};

}  // namespace shardsim::stablehlo
