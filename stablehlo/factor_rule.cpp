#include "stablehlo/factor_rule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/index.hpp"

namespace shardsim::stablehlo {
namespace {

constexpr char first_letter = 'i';
constexpr int letters = 'z' - first_letter + 1;

std::string text_of_tensors(const std::vector<TensorFactors>& tensors) {
  std::vector<std::string> texts;
  for (const TensorFactors& tensor : tensors) {
    std::vector<std::string> dims;
    for (const DimensionFactors& dimension : tensor) {
      std::string text;
      for (const int factor : dimension) text += factor_name(factor);
      dims.push_back(text);
    }
    texts.push_back(fmt::format("[{}]", fmt::join(dims, ", ")));
  }
  return fmt::format("({})", fmt::join(texts, ", "));
}

template <class Predicate>
std::string text_of_set(std::string_view name, const FactorRule& rule, Predicate contains) {
  std::vector<std::string> members;
  for (std::size_t i = 0; i < rule.factors.size(); ++i) {
    if (contains(rule.factors[i])) members.push_back(factor_name(static_cast<int>(i)));
  }
  return members.empty() ? "" : fmt::format(" {}={{{}}}", name, fmt::join(members, ", "));
}

// "i", "ij" or "z_1z_2" as factors, known by their names so far; the sizes come later in the text.
class RuleReader {
 public:
  explicit RuleReader(Scanner& body) : body_(body) {}

  FactorRule read() {
    FactorRule rule;
    rule.operands = read_tensors();
    body_.expect("->");
    rule.results = read_tensors();
    if (body_.next_is("{")) read_sizes(rule);
    if (static_cast<int>(rule.factors.size()) != highest_ + 1) {
      body_.fail(fmt::format("{} factors, {} sizes", highest_ + 1, rule.factors.size()));
    }
    while (!body_.at_end()) read_set(rule);
    return rule;
  }

 private:
  // A letter, or "z_" and a number; `word` loses what is read.
  int take_factor(std::string_view& word) {
    constexpr int most_factors = 100'000;
    if (word.empty() || word.front() < first_letter || word.front() > 'z') {
      body_.fail("expected a factor", "factors are named i to z, z_1, z_2, ...");
    }
    int factor = word.front() - first_letter;
    word.remove_prefix(1);
    if (factor == letters - 1 && !word.empty() && word.front() == '_') {
      word.remove_prefix(1);
      int number = 0;
      while (!word.empty() && word.front() >= '0' && word.front() <= '9') {
        number = number * 10 + (word.front() - '0');
        if (number > most_factors) body_.fail("too many factors");
        word.remove_prefix(1);
      }
      if (number < 1) body_.fail("expected a number after \"z_\"");
      factor += number;
    }
    return factor;
  }

  std::vector<TensorFactors> read_tensors() {
    std::vector<TensorFactors> tensors;
    body_.expect("(");
    while (!body_.accept(")")) {
      if (!tensors.empty()) body_.expect(",");
      TensorFactors& tensor = tensors.emplace_back();
      body_.expect("[");
      while (!body_.accept("]")) {
        if (!tensor.empty()) body_.expect(",");
        DimensionFactors& dimension = tensor.emplace_back();
        std::string_view word = body_.word("a factor");
        while (!word.empty()) {
          dimension.push_back(take_factor(word));
          highest_ = std::max(highest_, dimension.back());
        }
      }
    }
    return tensors;
  }

  int read_factor() {
    std::string_view word = body_.word("a factor");
    const int factor = take_factor(word);
    if (!word.empty()) body_.fail("expected one factor");
    return factor;
  }

  void read_sizes(FactorRule& rule) {
    body_.expect("{");
    while (!body_.accept("}")) {
      if (!rule.factors.empty()) body_.expect(",");
      if (read_factor() != static_cast<int>(rule.factors.size())) {
        body_.fail("sizes of factors out of order");
      }
      body_.expect("=");
      Factor& factor = rule.factors.emplace_back();
      factor.size = body_.integer("the size of a factor");
      if (factor.size < 0) body_.fail("factor with a negative size");
    }
  }

  void read_set(FactorRule& rule) {
    if (body_.accept(",")) {
      if (!body_.accept_word("custom")) body_.fail_expected("\"custom\"");
      rule.custom = true;
      return;
    }
    const std::string word(body_.word("a kind of factor"));
    body_.expect("=");
    body_.expect("{");
    bool first = true;
    while (!body_.accept("}")) {
      if (!first) body_.expect(",");
      first = false;
      const int index = read_factor();
      if (index > highest_) body_.fail("unknown factor");
      Factor& factor = rule.factors[at(index)];
      if (word == "reduction") {
        factor.kind = FactorKind::reduction;
      } else if (word == "need_replication") {
        factor.kind = FactorKind::need_replication;
      } else if (word == "permutation") {
        factor.kind = FactorKind::permutation;
      } else if (word == "blocked_propagation") {
        factor.blocked = true;
      } else {
        body_.fail(fmt::format("unknown kind of factor \"{}\"", word));
      }
    }
  }

  Scanner& body_;
  int highest_ = -1;
};

}  // namespace

std::string factor_name(int factor) {
  if (factor < letters) return std::string(1, static_cast<char>(first_letter + factor));
  return fmt::format("z_{}", factor - letters + 1);
}

std::string text_of(const FactorRule& rule) {
  std::string text =
      fmt::format("{}->{}", text_of_tensors(rule.operands), text_of_tensors(rule.results));
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < rule.factors.size(); ++i) {
    sizes.push_back(fmt::format("{}={}", factor_name(static_cast<int>(i)), rule.factors[i].size));
  }
  if (!sizes.empty()) text += fmt::format(" {{{}}}", fmt::join(sizes, ", "));
  constexpr std::array<std::pair<FactorKind, std::string_view>, 3> kinds{
      {{FactorKind::reduction, "reduction"},
       {FactorKind::need_replication, "need_replication"},
       {FactorKind::permutation, "permutation"}}};
  for (const auto& [kind, name] : kinds) {
    text +=
        text_of_set(name, rule, [&, wanted = kind](const Factor& f) { return f.kind == wanted; });
  }
  text += text_of_set("blocked_propagation", rule, [](const Factor& f) { return f.blocked; });
  if (rule.custom) text += ", custom";
  return text;
}

FactorRule parse_factor_rule(Scanner& body) { return RuleReader(body).read(); }

RuleBuilder::RuleBuilder(const Module& module, const Function& function, const Op& op)
    : module_(module), op_(op) {
  for (const ValueId value : op.operands) {
    rule_.operands.emplace_back(function.type_of(value).rank());
  }
  for (const ValueId value : op.results) {
    rule_.results.emplace_back(function.type_of(value).rank());
  }
}

void RuleBuilder::map(TensorFactors& tensor, int dim, int factor) {
  if (dim == no_dimension) return;
  if (dim < 0 || static_cast<std::size_t>(dim) >= tensor.size()) {
    throw InputError(module_.place_of(op_), fmt::format("{}: dimension {} of a tensor of rank {}",
                                                        op_.name, dim, tensor.size()));
  }
  tensor[at(dim)].push_back(factor);
}

RuleBuilder& RuleBuilder::add(const std::vector<int>& operand_dims,
                              const std::vector<int>& result_dims, Factor factor) {
  const int index = static_cast<int>(rule_.factors.size());
  if (operand_dims.size() != rule_.operands.size() || result_dims.size() != rule_.results.size()) {
    throw InputError(module_.place_of(op_),
                     fmt::format("{} does not take {} operands and give {} results", op_.name,
                                 rule_.operands.size(), rule_.results.size()));
  }
  for (std::size_t i = 0; i < operand_dims.size(); ++i) {
    map(rule_.operands[i], operand_dims[i], index);
  }
  for (std::size_t i = 0; i < result_dims.size(); ++i) {
    map(rule_.results[i], result_dims[i], index);
  }
  rule_.factors.push_back(factor);
  return *this;
}

RuleBuilder& RuleBuilder::add_everywhere(int dim, Factor factor) {
  const int index = static_cast<int>(rule_.factors.size());
  for (std::vector<TensorFactors>* tensors : {&rule_.operands, &rule_.results}) {
    for (TensorFactors& tensor : *tensors) {
      if (!tensor.empty()) map(tensor, dim, index);
    }
  }
  rule_.factors.push_back(factor);
  return *this;
}

FactorRule RuleBuilder::build() {
  for (std::vector<TensorFactors>* tensors : {&rule_.operands, &rule_.results}) {
    for (TensorFactors& tensor : *tensors) {
      for (DimensionFactors& dimension : tensor) {
        if (!dimension.empty()) continue;
        dimension.push_back(static_cast<int>(rule_.factors.size()));
        rule_.factors.emplace_back();
      }
    }
  }
  return std::move(rule_);
}

}  // namespace shardsim::stablehlo
