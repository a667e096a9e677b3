// Attributes of ops: what stands in {...}, <{...}> and between operands and types.
//
//   dim = 1 : i64                      integer 1, type "i64"
//   contracting_dims = [2] x [0]       list of two lists
//   replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
//                                      elements: text "[[0, 1]]", type "tensor<1x2xi64>"
//   dimension_numbers = #stablehlo.gather<offset_dims = [2], ...>
//                                      dialect: name "stablehlo.gather", text "offset_dims = [2],
//                                      ..."
//
// Nothing is lost: what has no structure here keeps its text, and `fields` takes apart the bodies
// of dialect attributes that are lists of key = value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stablehlo/scanner.hpp"

namespace shardsim::stablehlo {

struct NamedAttribute;

struct Attribute {
  enum class Kind {
    unit,
    boolean,
    integer,
    real,
    string,
    symbol,
    word,
    list,
    dictionary,
    elements,  // dense<...> and dense_resource<...>
    dialect,   // #name<text>, or <text> with an empty name
    type
  };

  Kind kind = Kind::unit;
  std::int64_t integer = 0;  // of integer and boolean
  std::string text;  // of strings, symbols and words; of all others without structure: as written
  std::string name;  // of dialect attributes
  std::string type;  // what stands after ":", as written; often empty
  std::vector<Attribute> items;         // of a list
  std::vector<NamedAttribute> entries;  // of a dictionary, in order
};

struct NamedAttribute {
  std::string name;
  Attribute value;
};

using AttributeList = std::vector<NamedAttribute>;

// The attribute of that name, or null.
[[nodiscard]] const Attribute* find(const AttributeList& attributes, std::string_view name);

// One attribute with the ": type" that may follow it; `depth` counts the nesting so far.
[[nodiscard]] Attribute parse_attribute(Scanner& scanner, int depth = 0);
// The same of a value between operands and types of an op, where ":" begins the types of the op.
// Joined lists, [0] x [1] and [b, 0, f]x[0, i, o]->[b, 0, f], become one list.
[[nodiscard]] Attribute parse_clause_value(Scanner& scanner);
// {name = value, flag, "quoted" = value}: from the opening brace to the closing one.
[[nodiscard]] AttributeList parse_dictionary(Scanner& scanner, int depth = 0);

// The key = value pairs of a dialect attribute. `place` is where the op stands, for messages.
[[nodiscard]] AttributeList fields(const Attribute& dialect, const std::string& file, int line);
// The integers of a list, of array<i64: ...> and of dense<...>, rows one after the other; a single
// integer is a list of one. A splat, dense<1> : tensor<2xi64>, is repeated. Throws InputError.
[[nodiscard]] std::vector<std::int64_t> integers_of(const Attribute& attribute,
                                                    const std::string& file, int line);

}  // namespace shardsim::stablehlo
