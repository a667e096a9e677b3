#include "stablehlo/attribute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "stablehlo/tensor_type.hpp"

namespace shardsim::stablehlo {
namespace {

constexpr std::int64_t longest_splat = 4096;  // attributes describe dimensions, not data

using Kind = Attribute::Kind;

Attribute of_kind(Kind kind, std::string text = {}) {
  Attribute attribute;
  attribute.kind = kind;
  attribute.text = std::move(text);
  return attribute;
}

Attribute parse_number(Scanner& scanner) {
  const std::string_view text = scanner.number();
  Attribute attribute = of_kind(Kind::real, std::string(text));
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, attribute.integer).ptr == end) {
    attribute.kind = Kind::integer;
  }
  return attribute;
}

Attribute parse_list(Scanner& scanner, int depth) {
  scanner.expect("[");
  Attribute list = of_kind(Kind::list);
  while (!scanner.accept("]")) {
    if (!list.items.empty()) scanner.expect(",");
    list.items.push_back(parse_attribute(scanner, depth + 1));
  }
  return list;
}

// array<i64: 1, 2> is printed for lists of one integer type.
Attribute parse_array(Scanner& scanner) {
  const int line = scanner.line();
  Scanner body(scanner.angle_body(), scanner.file(), line);
  Attribute list = of_kind(Kind::list);
  list.type = body.word("an element type");
  if (!body.accept(":")) return list;
  do {
    list.items.push_back(parse_attribute(body));
  } while (body.accept(","));
  if (!body.at_end()) body.fail_expected("\",\"");
  return list;
}

Attribute parse_dialect(Scanner& scanner) {
  Attribute attribute = of_kind(Kind::dialect);
  if (scanner.accept("#")) attribute.name = scanner.suffix_id("a name after \"#\"");
  if (scanner.next_is("<")) attribute.text = scanner.angle_body();
  return attribute;
}

Attribute parse_word(Scanner& scanner) {
  if (scanner.next_is_word("tensor") || scanner.next_is("!")) {
    return of_kind(Kind::type, text_of(parse_type(scanner)));
  }
  const std::string word(scanner.word("an attribute"));
  if (word == "unit") return of_kind(Kind::unit);
  if (word == "true" || word == "false") {
    Attribute attribute = of_kind(Kind::boolean, word);
    attribute.integer = word == "true" ? 1 : 0;
    return attribute;
  }
  if (word == "array" && scanner.next_is("<")) return parse_array(scanner);
  if (word.rfind("dense", 0) == 0 && scanner.next_is("<")) {
    return of_kind(Kind::elements, std::string(scanner.angle_body()));
  }
  return of_kind(Kind::word, word);
}

Attribute parse_value(Scanner& scanner, int depth) {
  if (depth > deepest_nesting) scanner.fail("attributes nested too deeply");
  switch (scanner.peek()) {
    case '"':
      return of_kind(Kind::string, scanner.string_literal());
    case '@':
      return of_kind(Kind::symbol, scanner.symbol());
    case '[':
      return parse_list(scanner, depth);
    case '{': {
      Attribute attribute = of_kind(Kind::dictionary);
      attribute.entries = parse_dictionary(scanner, depth + 1);
      return attribute;
    }
    case '#':
    case '<':
      return parse_dialect(scanner);
    case '-':
    case '+':
      return parse_number(scanner);
    default:
      return scanner.next_is_digit() ? parse_number(scanner) : parse_word(scanner);
  }
}

// As written, for the few readers that want it (element types, tensor shapes).
std::string parse_type_text(Scanner& scanner) {
  if (scanner.next_is_word("tensor") || scanner.next_is("!")) return text_of(parse_type(scanner));
  return std::string(scanner.word("a type"));
}

void append_integers(const Attribute& attribute, const Place& place,
                     std::vector<std::int64_t>& values) {
  if (attribute.kind == Kind::integer || attribute.kind == Kind::boolean) {
    values.push_back(attribute.integer);
  } else if (attribute.kind == Kind::list) {
    for (const Attribute& item : attribute.items) append_integers(item, place, values);
  } else {
    throw InputError(place, fmt::format("expected integers, found \"{}\"", attribute.text));
  }
}

}  // namespace

const Attribute* find(const AttributeList& attributes, std::string_view name) {
  for (const NamedAttribute& attribute : attributes) {
    if (attribute.name == name) return &attribute.value;
  }
  return nullptr;
}

Attribute parse_attribute(Scanner& scanner, int depth) {
  Attribute attribute = parse_value(scanner, depth);
  if (scanner.accept(":")) attribute.type = parse_type_text(scanner);
  return attribute;
}

Attribute parse_clause_value(Scanner& scanner) {
  Attribute first = parse_value(scanner, 0);
  if (first.kind != Kind::list) return first;
  Attribute joined = of_kind(Kind::list);
  while (scanner.accept_word("x") || scanner.accept("->")) {
    if (joined.items.empty()) joined.items.push_back(first);
    joined.items.push_back(parse_list(scanner, 0));
  }
  return joined.items.empty() ? first : joined;
}

AttributeList parse_dictionary(Scanner& scanner, int depth) {
  if (depth > deepest_nesting) scanner.fail("attributes nested too deeply");
  scanner.expect("{");
  AttributeList attributes;
  while (!scanner.accept("}")) {
    if (!attributes.empty()) scanner.expect(",");
    NamedAttribute& attribute = attributes.emplace_back();
    attribute.name = scanner.peek() == '"' ? scanner.string_literal()
                                           : std::string(scanner.word("the name of an attribute"));
    if (scanner.accept("=")) attribute.value = parse_attribute(scanner, depth + 1);
  }
  return attributes;
}

AttributeList fields(const Attribute& dialect, const std::string& file, int line) {
  Scanner scanner(dialect.text, file, line);
  AttributeList result;
  while (!scanner.at_end()) {
    if (!result.empty()) scanner.expect(",");
    NamedAttribute& field = result.emplace_back();
    field.name = scanner.word("the name of a field");
    if (scanner.accept("=")) field.value = parse_clause_value(scanner);
  }
  return result;
}

std::vector<std::int64_t> integers_of(const Attribute& attribute, const std::string& file,
                                      int line) {
  std::vector<std::int64_t> values;
  const Place place{file, fmt::format("line {}", line)};
  if (attribute.kind != Kind::elements) {
    append_integers(attribute, place, values);
    return values;
  }
  Scanner body(attribute.text, file, line);
  Scanner type_text(attribute.type, file, line);
  const TensorType type = parse_type(type_text);
  if (body.at_end()) return values;  // dense<> : tensor<0xi64>
  append_integers(parse_value(body, 0), place, values);
  if (attribute.text.find('[') == std::string::npos) {
    if (type.elements() > longest_splat) throw InputError(place, "too many integers");
    values.resize(static_cast<std::size_t>(type.elements()), values.front());
  }
  return values;
}

}  // namespace shardsim::stablehlo
