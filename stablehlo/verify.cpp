#include "stablehlo/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "stablehlo/op_rules.hpp"
#include "stablehlo/verify_dims.hpp"
#include "stablehlo/verify_indexed.hpp"

namespace shardsim::stablehlo {
namespace {

constexpr std::array<std::string_view, 8> ops_with_reducers{
    "stablehlo.all_reduce",         "stablehlo.map",           "stablehlo.reduce",
    "stablehlo.reduce_scatter",     "stablehlo.reduce_window", "stablehlo.scatter",
    "stablehlo.select_and_scatter", "stablehlo.sort"};

// Blocks that may read what is around them.
constexpr std::array<std::string_view, 5> control_flow{"sdy.manual_computation",
                                                       "sdy.named_computation", "stablehlo.case",
                                                       "stablehlo.if", "stablehlo.while"};

bool has_reducers(const Op& op) {
  return std::find(ops_with_reducers.begin(), ops_with_reducers.end(), op.name) !=
         ops_with_reducers.end();
}

bool is_return(const Op& op) { return op.name.ends_with(".return") || op.name == "return"; }

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& module, const Function& function)
      : module_(module), function_(function) {}

  void run() {
    for (const Region& region : function_.regions) visit(region);
    const Op& end = terminator(function_.body());
    std::vector<TensorType> declared;
    for (const FunctionResult& result : function_.results) declared.push_back(result.type);
    if (types(end.operands) != declared) fail(end, "the function returns other types than it says");
    for (const Op& op : function_.ops) visit(op);
  }

 private:
  [[noreturn]] void fail(const Op& op, std::string_view message) const {
    throw InputError(module_.place_of(op), fmt::format("{}: {}", op.name, message));
  }

  [[nodiscard]] const Region& region(const Op& op, std::size_t index) const {
    return function_.regions[at(op.regions[index])];
  }

  [[nodiscard]] std::vector<TensorType> types(const std::vector<ValueId>& values) const {
    std::vector<TensorType> result;
    for (const ValueId value : values) result.push_back(function_.type_of(value));
    return result;
  }

  [[nodiscard]] const Op& terminator(const Region& region) const {
    return function_.op(region.ops.back());
  }

  void visit(const Region& region) const {
    if (region.ops.empty() || !is_return(terminator(region))) {
      const int line = region.owner == no_op ? function_.line : function_.op(region.owner).line;
      throw InputError({module_.file, fmt::format("line {}", line)},
                       "a block does not end in a return");
    }
    for (std::size_t i = 0; i + 1 < region.ops.size(); ++i) {
      const Op& op = function_.op(region.ops[i]);
      if (is_return(op)) fail(op, "not at the end of its block");
    }
  }

  void visit(const Op& op) const {
    if (op.name.starts_with("spmd.")) fail(op, "stands for steps of the partitioner only");
    static_cast<void>(factor_rule(module_, function_, op));
    verify_dims(OpView(module_, function_, op));
    if (op.name == "stablehlo.while") return check_loop(op);
    if (op.name == "stablehlo.case" || op.name == "stablehlo.if") return check_branches(op);
    if (op.name == "stablehlo.optimization_barrier" && types(op.operands) != types(op.results)) {
      fail(op, "its results are of other types than its operands");
    }
    if (op.name == "stablehlo.iota") check_iota(op);
    if (op.name == "stablehlo.gather" || op.name == "stablehlo.scatter") {
      verify_indexed_access(OpView(module_, function_, op));
    }
    if (has_reducers(op)) check_reducers(op);
    if (std::find(control_flow.begin(), control_flow.end(), op.name) != control_flow.end()) return;
    for (const RegionId id : op.regions) check_isolated(op, function_.regions[at(id)], {});
  }

  void check_iota(const Op& op) const {
    const OpView view(module_, function_, op);
    view.expect_counts(0, 1);
    static_cast<void>(view.size(view.result(0), view.integer({"dim", "iota_dimension"}, -1)));
  }

  void check_loop(const Op& op) const {
    if (op.regions.size() != 2) fail(op, "expected a condition and a body");
    const std::vector<TensorType> carried = types(op.operands);
    if (types(op.results) != carried) fail(op, "its results are of other types than its operands");
    for (const std::size_t part : {std::size_t{0}, std::size_t{1}}) {
      if (types(region(op, part).arguments) != carried) {
        fail(op, "its blocks take other types than its operands are of");
      }
    }
    const std::vector<TensorType> condition = types(terminator(region(op, 0)).operands);
    if (condition.size() != 1 || condition[0].rank() != 0 || condition[0].element != "i1") {
      fail(op, "its condition does not return a tensor<i1>");
    }
    if (types(terminator(region(op, 1)).operands) != carried) {
      fail(op, "its body returns other types than it takes");
    }
  }

  void check_branches(const Op& op) const {
    const OpView view(module_, function_, op);
    if (op.operands.size() != 1 || !view.operand(0).empty()) fail(op, "expected one scalar");
    if (op.regions.empty() || (op.name == "stablehlo.if" && op.regions.size() != 2)) {
      fail(op, "has too few or too many branches");
    }
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      if (!region(op, i).arguments.empty()) fail(op, "a branch takes arguments");
      if (types(terminator(region(op, i)).operands) != types(op.results)) {
        fail(op, "a branch returns other types than the op");
      }
    }
  }

  // Blocks over scalars, one or two per array that is combined.
  void check_reducers(const Op& op) const {
    if (op.regions.empty() && find(op.attributes, "applies") == nullptr)
      fail(op, "says not how to combine");
    for (const RegionId id : op.regions) {
      const Region& reducer = function_.regions[at(id)];
      for (const ValueId argument : reducer.arguments) {
        const TensorType& type = function_.type_of(argument);
        if (!type.is_tensor || type.rank() != 0) fail(op, "combines what are no scalars");
      }
      const std::vector<ValueId>& given = terminator(reducer).operands;
      const std::size_t inputs =
          op.name == "stablehlo.sort" || op.name == "stablehlo.select_and_scatter"
              ? 1
              : op.results.size();
      if (given.size() != inputs) fail(op, "its block returns too few or too many values");
      const std::size_t arguments = op.name == "stablehlo.map"    ? op.operands.size()
                                    : op.name == "stablehlo.sort" ? 2 * op.operands.size()
                                                                  : 2 * inputs;
      if (reducer.arguments.size() != arguments) {
        fail(op,
             fmt::format("its block takes {} values, not {}", reducer.arguments.size(), arguments));
      }
      for (const ValueId value : given) {
        if (function_.type_of(value).rank() != 0) fail(op, "its block returns what is no scalar");
      }
    }
  }

  // `known`: what the blocks around, up to the op's, define.
  void check_isolated(const Op& outer, const Region& region, std::vector<ValueId> known) const {
    known.insert(known.end(), region.arguments.begin(), region.arguments.end());
    for (const OpId id : region.ops) {
      const Op& op = function_.op(id);
      for (const ValueId operand : op.operands) {
        if (std::find(known.begin(), known.end(), operand) == known.end()) {
          fail(outer,
               fmt::format("its block reads %{} from outside", function_.values[at(operand)].name));
        }
      }
      for (const RegionId inner : op.regions) {
        check_isolated(outer, function_.regions[at(inner)], known);
      }
      known.insert(known.end(), op.results.begin(), op.results.end());
    }
  }

  const Module& module_;
  const Function& function_;
};

}  // namespace

void verify(const Module& module) {
  for (const Function& function : module.functions) FunctionVerifier(module, function).run();
}

}  // namespace shardsim::stablehlo
