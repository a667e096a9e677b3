// The ops of FunctionParser: clauses, types, regions.
#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"
#include "stablehlo/function_parser.hpp"

namespace shardsim::stablehlo {

void FunctionParser::parse_op(RegionId parent) {
  Draft draft;
  draft.op.parent = parent;
  draft.op.line = (static_cast<void>(scanner_.peek()), scanner_.line());
  if (scanner_.peek() == '%') parse_result_names(draft);
  parse_op_name(draft);

  // The op has its place in the order of the text before its regions add theirs.
  const OpId id = static_cast<OpId>(function_.ops.size());
  function_.ops.emplace_back();
  function_.regions[at(parent)].ops.push_back(id);
  while (parse_clause(draft)) {
  }
  if (scanner_.accept(":")) parse_types(draft);
  parse_trailing_regions(draft);
  skip_location();
  finish(std::move(draft), id);
}

// %0 =   %5:3 =   %values, %indices =
void FunctionParser::parse_result_names(Draft& draft) {
  constexpr std::int64_t most_results = 100'000;
  do {
    scanner_.expect("%");
    draft.result_names.emplace_back(scanner_.suffix_id("the name of a result"));
    std::int64_t count = 0;
    if (scanner_.accept(":")) {
      count = scanner_.integer("the number of results");
      if (count < 1 || count > most_results) scanner_.fail("unlikely number of results");
    }
    draft.result_counts.push_back(static_cast<int>(count));
  } while (scanner_.accept(","));
  scanner_.expect("=");
}

void FunctionParser::parse_op_name(Draft& draft) {
  std::string& name = draft.op.name;
  name = scanner_.peek() == '"' ? scanner_.string_literal()
                                : std::string(scanner_.word("the name of an op"));
  // Inside a function MLIR leaves the prefix of its own dialect out.
  if (name == "return" || name == "call") name = "func." + name;
  if (name.find('.') == std::string::npos) {
    scanner_.fail(fmt::format("unknown op \"{}\"", name), "ops are written DIALECT.NAME");
  }
}

// One clause; false where the types begin or the op ends without any.
bool FunctionParser::parse_clause(Draft& draft) {
  scanner_.accept(",");
  switch (scanner_.peek()) {
    case ':':
    case '}':
    case '^':
    case '\0':
      return false;
    case '%':
      draft.op.operands.push_back(parse_value_use());
      return true;
    case '(':
      parse_group(draft);
      return true;
    case '<':
      if (scanner_.next_is("<{")) {
        scanner_.expect("<");
        for (NamedAttribute& property : parse_dictionary(scanner_)) {
          add_attribute(draft, std::move(property.name), std::move(property.value));
        }
        scanner_.expect(">");
      } else {
        add_attribute(draft, "value", parse_clause_value(scanner_));
      }
      return true;
    case '{':
      parse_braces(draft);
      return true;
    case '[':
      parse_slice_ranges(draft);
      return true;
    case '@':
      add_attribute(draft, "callee", parse_clause_value(scanner_));
      return true;
    case '"':
      add_attribute(draft, "value", parse_clause_value(scanner_));
      return true;
    default:
      parse_word_clause(draft);
      return true;
  }
}

// (%a, %b)   (%i = %c)   (%a init: %z)   (%arg1: tensor<..>)   ({regions}, {...})   (%a, k = 8)
void FunctionParser::parse_group(Draft& draft) {
  scanner_.expect("(");
  if (scanner_.accept(")")) {
    draft.has_block_arguments = draft.has_operand_group;
    draft.has_operand_group = true;
    return;
  }
  if (scanner_.peek() == '{') {
    do {
      parse_owned_region(draft, {});
    } while (scanner_.accept(","));
    scanner_.expect(")");
    return;
  }
  do {
    parse_group_item(draft);
  } while (scanner_.accept(","));
  scanner_.expect(")");
  draft.has_operand_group = true;
}

void FunctionParser::parse_group_item(Draft& draft) {
  if (scanner_.peek() != '%') {
    parse_word_clause(draft);
    return;
  }
  // "%name" is a new name before "=" and ":", and a value everywhere else; which it is shows only
  // behind it.
  Scanner ahead = scanner_;
  ahead.expect("%");
  const std::string name(ahead.suffix_id("the name of a value"));
  if (ahead.accept("=")) {
    scanner_ = ahead;
    draft.bound_names.push_back(name);
    draft.op.operands.push_back(parse_value_use());
  } else if (ahead.accept(":")) {
    scanner_ = ahead;
    draft.has_block_arguments = true;
    draft.block_arguments.emplace_back(name, parse_type(scanner_));
    skip_location();
  } else {
    draft.op.operands.push_back(parse_value_use());
    if (scanner_.accept_word("init")) {
      scanner_.expect(":");
      draft.initial_values.push_back(parse_value_use());
    }
  }
}

// Attributes, or the region whose arguments stood before it.
void FunctionParser::parse_braces(Draft& draft) {
  if (draft.has_block_arguments) {
    draft.has_block_arguments = false;
    parse_owned_region(draft, draft.block_arguments);
    return;
  }
  for (NamedAttribute& attribute : parse_dictionary(scanner_)) {
    add_attribute(draft, std::move(attribute.name), std::move(attribute.value));
  }
}

// name = value, or a word on its own. "applies OP across dimensions = [...]" is the short form of a
// reduce whose reducer is one op; a constant's value begins with a word too.
void FunctionParser::parse_word_clause(Draft& draft) {
  if (scanner_.next_is_word("dense") || scanner_.next_is_word("dense_resource")) {
    add_attribute(draft, "value", parse_clause_value(scanner_));
    return;
  }
  std::string word(scanner_.word("an operand, an attribute or \":\""));
  if (scanner_.accept("=")) {
    add_attribute(draft, std::move(word), parse_clause_value(scanner_));
  } else if (word == "applies") {
    add_attribute(draft, "applies", parse_clause_value(scanner_));
  } else if (word != "across") {
    Attribute attribute;
    attribute.kind = Attribute::Kind::word;
    attribute.text = std::move(word);
    for (NamedAttribute& known : draft.op.attributes) {
      if (known.name == "words") {
        known.value.items.push_back(std::move(attribute));
        return;
      }
    }
    Attribute words;
    words.kind = Attribute::Kind::list;
    words.items.push_back(std::move(attribute));
    add_attribute(draft, "words", std::move(words));
  }
}

// [0:16, 1:128:2] of a slice; any other list without a name stands for itself.
void FunctionParser::parse_slice_ranges(Draft& draft) {
  if (draft.op.name != "stablehlo.slice") {
    add_attribute(draft, "value", parse_clause_value(scanner_));
    return;
  }
  Attribute start, limit, stride;
  start.kind = limit.kind = stride.kind = Attribute::Kind::list;
  const auto append = [](Attribute& list, std::int64_t value) {
    Attribute& item = list.items.emplace_back();
    item.kind = Attribute::Kind::integer;
    item.integer = value;
  };
  scanner_.expect("[");
  while (!scanner_.accept("]")) {
    if (!start.items.empty()) scanner_.expect(",");
    append(start, scanner_.integer("the start of a slice"));
    scanner_.expect(":");
    append(limit, scanner_.integer("the limit of a slice"));
    append(stride, scanner_.accept(":") ? scanner_.integer("the stride of a slice") : 1);
  }
  add_attribute(draft, "start_indices", std::move(start));
  add_attribute(draft, "limit_indices", std::move(limit));
  add_attribute(draft, "strides", std::move(stride));
}

// (types) -> types, type -> types, or a list of types.
void FunctionParser::parse_types(Draft& draft) {
  std::vector<TensorType> first;
  bool grouped = scanner_.accept("(");
  if (!grouped || !scanner_.accept(")")) {
    first = parse_type_list();
    if (grouped) scanner_.expect(")");
  }
  if (!scanner_.accept("->")) {
    if (grouped) scanner_.fail_expected("\"->\"");
    draft.result_types = std::move(first);
    return;
  }
  draft.has_signature = true;
  draft.operand_types = std::move(first);
  grouped = scanner_.accept("(");
  if (grouped && scanner_.accept(")")) return;
  // After "-> T" without parentheses a "," would belong to a list that encloses the op; there is
  // none.
  draft.result_types = grouped ? parse_type_list() : std::vector{parse_type(scanner_)};
  if (grouped) scanner_.expect(")");
}

void FunctionParser::parse_trailing_regions(Draft& draft) {
  if (scanner_.accept_word("attributes")) parse_braces(draft);
  if (scanner_.next_is_word("reducer")) parse_reducer(draft);
  if (!scanner_.next_is_word("cond")) return;
  if (draft.bound_names.size() != draft.result_types.size()) {
    scanner_.fail(fmt::format("{} values in the loop, {} types", draft.bound_names.size(),
                              draft.result_types.size()));
  }
  std::vector<std::pair<std::string, TensorType>> arguments;
  for (std::size_t i = 0; i < draft.bound_names.size(); ++i) {
    arguments.emplace_back(draft.bound_names[i], draft.result_types[i]);
  }
  scanner_.accept_word("cond");
  parse_owned_region(draft, arguments);
  if (!scanner_.accept_word("do")) scanner_.fail_expected("\"do\"");
  parse_owned_region(draft, arguments);
}

// reducer(%a: T, %b: T) (%c: U, %d: U) {...}: the block's arguments are a, c, b, d.
void FunctionParser::parse_reducer(Draft& draft) {
  std::vector<std::pair<std::string, TensorType>> accumulated, incoming;
  scanner_.accept_word("reducer");
  while (scanner_.accept("(")) {
    for (auto* list : {&accumulated, &incoming}) {
      scanner_.expect("%");
      std::string name(scanner_.suffix_id("the name of an argument"));
      scanner_.expect(":");
      list->emplace_back(std::move(name), parse_type(scanner_));
      skip_location();
      if (list == &accumulated) scanner_.expect(",");
    }
    scanner_.expect(")");
  }
  accumulated.insert(accumulated.end(), incoming.begin(), incoming.end());
  parse_owned_region(draft, accumulated);
}

void FunctionParser::parse_owned_region(
    Draft& draft, const std::vector<std::pair<std::string, TensorType>>& arguments) {
  const auto id = static_cast<RegionId>(function_.regions.size());
  function_.regions.emplace_back();
  draft.op.regions.push_back(id);
  const std::size_t outer = defined_.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ValueId value =
        define(arguments[i].first, arguments[i].second, no_op, static_cast<int>(i));
    function_.regions.back().arguments.push_back(value);
  }
  parse_region(id);
  for (; defined_.size() > outer; defined_.pop_back()) names_.erase(defined_.back());
}

void FunctionParser::add_attribute(Draft& draft, std::string name, Attribute value) {
  if (find(draft.op.attributes, name) != nullptr) {
    scanner_.fail(fmt::format("attribute \"{}\" of {} given twice", name, draft.op.name));
  }
  draft.op.attributes.push_back({std::move(name), std::move(value)});
}

}  // namespace shardsim::stablehlo
