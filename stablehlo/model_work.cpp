#include "stablehlo/model_work.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/flops.hpp"
#include "stablehlo/loops.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {
namespace {

// What is known of a value without running the program.
enum class Content : std::uint8_t {
  unset,
  constant,
  positions,  // made of iotas and constants
  mask,       // of positions compared by order
  data
};

constexpr int computed = -1;

struct Fact {
  Content content = Content::data;
  bool behind_barrier = false;  // depends on an optimization_barrier
  int source = computed;        // which argument of the function it is, or is a part of
  friend auto operator<=>(const Fact&, const Fact&) = default;
};

using Facts = std::vector<Fact>;
using Sources = std::vector<int>;  // of a product's operands

// How often, in front of barriers and behind them.
struct Times {
  double before = 0;
  double behind = 0;
};

bool may_be_same(const Sources& a, const Sources& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](int x, int y) { return x == y || x == computed || y == computed; });
}

// Products of the same shapes.
struct Products {
  double flops = 0;                               // of one
  std::vector<std::vector<std::int64_t>> shapes;  // of operands and result
  std::map<Sources, Times> times{};

  [[nodiscard]] double executed() const {
    double sum = 0;
    for (const auto& [sources, one] : times) sum += one.before + one.behind;
    return sum;
  }

  // Every one behind a barrier takes one in front that it may repeat, those with equal sources
  // first.
  [[nodiscard]] double recomputed() const {
    std::map<Sources, Times> left = times;
    double sum = 0;
    const auto pair_up = [&](Times& again, Times& first) {
      const double both = std::min(again.behind, first.before);
      again.behind -= both;
      first.before -= both;
      sum += both;
    };
    for (auto& [sources, one] : left) pair_up(one, one);
    std::erase_if(left,
                  [](const auto& one) { return one.second.before == 0 && one.second.behind == 0; });
    for (auto& [sources, again] : left) {
      if (again.behind == 0) continue;
      for (auto& [others, first] : left) {
        if (may_be_same(sources, others)) pair_up(again, first);
      }
    }
    return sum;
  }
};

struct Tally {
  std::map<std::string, Products> products;
  std::map<std::vector<std::int64_t>, TensorType> under_mask;  // data under a causal mask, by dims

  void add(const Tally& other, double times) {
    add(other, times, [](int source) { return source; });
  }
  // Of a function that is called with `operands`, whose sources are the caller's.
  void add_call(const Tally& callee, const Facts& operands) {
    add(callee, 1, [&](int source) { return source_in_caller(source, operands); });
  }
  static int source_in_caller(int source, const Facts& operands) {
    return source == computed ? computed : operands.at(at(source)).source;
  }

 private:
  template <class Rename>
  void add(const Tally& other, double times, Rename rename) {
    for (const auto& [key, more] : other.products) {
      Products& mine = products.try_emplace(key, Products{more.flops, more.shapes}).first->second;
      for (const auto& [theirs, count] : more.times) {
        Sources sources = theirs;
        for (int& source : sources) source = rename(source);
        Times& sum = mine.times[sources];
        sum.before += count.before * times;
        sum.behind += count.behind * times;
      }
    }
    under_mask.insert(other.under_mask.begin(), other.under_mask.end());
  }
};

struct Outcome {
  Facts results;
  Tally tally;
};

Fact join(const Fact& a, const Fact& b) {
  const bool behind = a.behind_barrier || b.behind_barrier;
  if (a.content == Content::unset) return {b.content, behind, b.source};
  if (b.content == Content::unset) return {a.content, behind, a.source};
  return {a.content == b.content ? a.content : Content::data, behind,
          a.source == b.source ? a.source : computed};
}

// Whether the result is the first operand in another form, or a part of it.
bool keeps_source(const Op& op) {
  if (op.name == "stablehlo.custom_call") {
    const Attribute* target = find(op.attributes, "callee");
    if (target == nullptr) target = find(op.attributes, "call_target_name");
    static const std::set<std::string_view> marks = {"Sharding", "SPMDFullToShardShape",
                                                     "SPMDShardToFullShape"};
    return target != nullptr && !op.operands.empty() && marks.contains(target->text);
  }
  static const std::set<std::string_view> names = {
      "stablehlo.all_gather",   "stablehlo.broadcast_in_dim",
      "stablehlo.convert",      "stablehlo.dynamic_slice",
      "stablehlo.reshape",      "stablehlo.slice",
      "stablehlo.transpose",    "sdy.reshard",
      "sdy.sharding_constraint"};
  return names.contains(op.name);
}

bool is_product(const Op& op) {
  return op.name == "stablehlo.dot_general" || op.name == "stablehlo.dot" ||
         op.name == "stablehlo.convolution";
}

bool compares_by_order(const Op& op) {
  if (op.name != "stablehlo.compare") return false;
  const std::string direction = comparison_direction(op);
  return direction != "EQ" && direction != "NE";
}

bool applies_masks(const Op& op) {
  return op.name == "stablehlo.select" || op.name == "stablehlo.add" ||
         op.name == "stablehlo.multiply";
}

class WorkWalk {
 public:
  explicit WorkWalk(const Module& module) : module_(module) {}

  const Outcome& of_function(const Function& function, Facts arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) arguments[i].source = static_cast<int>(i);
    const auto key = std::make_pair(function.name, arguments);
    if (const auto known = done_.find(key); known != done_.end()) return known->second;
    Facts facts(function.values.size());
    Outcome outcome;
    outcome.results = run(function, function.body(), arguments, facts, outcome.tally);
    return done_.emplace(key, std::move(outcome)).first->second;
  }

 private:
  // The region's ops with what is known of its arguments; answers what is known of its results.
  Facts run(const Function& function, const Region& region, const Facts& arguments, Facts& facts,
            Tally& tally) {
    for (std::size_t i = 0; i < region.arguments.size(); ++i) {
      facts[at(region.arguments[i])] = i < arguments.size() ? arguments[i] : Fact{};
    }
    for (const OpId id : region.ops) run_op(function, function.op(id), facts, tally);
    if (region.ops.empty()) return {};
    return of_values(function.op(region.ops.back()).operands, facts);
  }

  static Facts of_values(const std::vector<ValueId>& values, const Facts& facts) {
    Facts known;
    known.reserve(values.size());
    for (const ValueId value : values) known.push_back(facts[at(value)]);
    return known;
  }

  static void set_results(const Op& op, const Facts& known, Facts& facts) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      facts[at(op.results[i])] = i < known.size() ? known[i] : Fact{};
    }
  }

  void run_op(const Function& function, const Op& op, Facts& facts, Tally& tally) {
    const Facts operands = of_values(op.operands, facts);
    if (op.name == "func.call") {
      const Outcome& called =
          of_function(*module_.find_function(find(op.attributes, "callee")->text), operands);
      Facts results = called.results;
      for (Fact& result : results) result.source = Tally::source_in_caller(result.source, operands);
      tally.add_call(called.tally, operands);
      set_results(op, results, facts);
    } else if (op.name == "stablehlo.while" && op.regions.size() == 2) {
      set_results(op, run_loop(function, op, operands, facts, tally), facts);
    } else if (op.name == "stablehlo.case" || op.name == "stablehlo.if") {
      set_results(op, run_branches(function, op, facts, tally), facts);
    } else if (op.name == "sdy.manual_computation" || op.name == "sdy.named_computation") {
      Tally inner;
      const Facts known =
          run(function, function.regions[at(op.regions.at(0))], operands, facts, inner);
      tally.add(inner, manual_devices(module_, op));
      set_results(op, known, facts);
    } else {
      run_plain(function, op, operands, facts, tally);
    }
  }

  // What is known of a loop's variables is what holds in every round.
  Facts run_loop(const Function& function, const Op& loop, Facts variables, Facts& facts,
                 Tally& tally) {
    const Region& body = function.regions[at(loop.regions[1])];
    while (true) {
      Tally round;
      const Facts after = run(function, body, variables, facts, round);
      Facts both = variables;
      for (std::size_t i = 0; i < std::min(both.size(), after.size()); ++i) {
        both[i] = join(both[i], after[i]);
      }
      if (both == variables) {
        tally.add(round, static_cast<double>(trip_count(function, loop).value_or(1)));
        return variables;
      }
      variables = std::move(both);
    }
  }

  // Of branches the one with most work.
  Facts run_branches(const Function& function, const Op& op, Facts& facts, Tally& tally) {
    Facts known(op.results.size(), Fact{Content::unset});
    Tally dearest;
    for (const RegionId region : op.regions) {
      Tally branch;
      const Facts results = run(function, function.regions[at(region)], {}, facts, branch);
      for (std::size_t i = 0; i < std::min(known.size(), results.size()); ++i) {
        known[i] = join(known[i], results[i]);
      }
      if (executed(branch) > executed(dearest)) dearest = std::move(branch);
    }
    tally.add(dearest, 1);
    return known;
  }

  static double executed(const Tally& tally) {
    double flops = 0;
    for (const auto& [key, p] : tally.products) flops += p.flops * p.executed();
    return flops;
  }

  void run_plain(const Function& function, const Op& op, const Facts& operands, Facts& facts,
                 Tally& tally) {
    Fact known{Content::constant};
    bool any_data = false;
    bool any_mask = false;
    for (const Fact& operand : operands) {
      known.behind_barrier = known.behind_barrier || operand.behind_barrier;
      known.content = std::max(known.content, operand.content);  // the less is known, the greater
      any_data = any_data || operand.content == Content::data;
      any_mask = any_mask || operand.content == Content::mask;
    }
    if (op.name == "stablehlo.iota") known.content = Content::positions;
    if (known.content == Content::positions && compares_by_order(op)) known.content = Content::mask;
    if (operands.empty() && op.name != "stablehlo.iota" && op.name != "stablehlo.constant") {
      known.content = Content::data;
    }
    if (any_data && any_mask && applies_masks(op)) {
      const TensorType& type = function.type_of(op.results.at(0));
      tally.under_mask.emplace(type.dims, type);
    }
    if (is_product(op)) count(function, op, operands, tally);
    if (keeps_source(op)) known.source = operands.at(0).source;
    Facts results(op.results.size(), known);
    if (op.name == "stablehlo.optimization_barrier") {
      results = operands;
      for (Fact& result : results) result.behind_barrier = true;
    }
    set_results(op, results, facts);
  }

  void count(const Function& function, const Op& op, const Facts& operands, Tally& tally) {
    Products one;
    one.flops = work_of(module_, function, op).matmul.count();
    std::string key = op.name;
    for (const auto* values : {&op.operands, &op.results}) {
      for (const ValueId value : *values) {
        one.shapes.push_back(function.type_of(value).dims);
        key += fmt::format(" {}", fmt::join(one.shapes.back(), "x"));
      }
    }
    if (op.name == "stablehlo.dot_general") {
      const DotDimensions dims = dot_dimensions(OpView(module_, function, op));
      for (const auto* list :
           {&dims.lhs_batching, &dims.rhs_batching, &dims.lhs_contracting, &dims.rhs_contracting}) {
        key += fmt::format(" [{}]", fmt::join(*list, ","));
      }
    }
    Sources sources;
    for (const Fact& operand : operands) sources.push_back(operand.source);
    const bool behind = std::any_of(operands.begin(), operands.end(),
                                    [](const Fact& operand) { return operand.behind_barrier; });
    Products& same = tally.products.try_emplace(key, std::move(one)).first->second;
    Times& times = same.times[sources];
    (behind ? times.behind : times.before) += 1;
  }

  const Module& module_;
  std::map<std::pair<std::string, Facts>, Outcome> done_;
};

// Of as many elements as the masked array, and with its two dimensions of positions, the last two.
bool has_size_of(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& masked) {
  const auto elements_of = [](const std::vector<std::int64_t>& dims) {
    double product = 1;
    for (const std::int64_t size : dims) product *= static_cast<double>(size);
    return product;
  };
  if (masked.size() < 2 || elements_of(shape) != elements_of(masked)) return false;
  const std::int64_t last = masked.back();
  const std::int64_t before = masked[masked.size() - 2];
  const auto holds = [&](std::int64_t size) {
    return std::count(shape.begin(), shape.end(), size);
  };
  return last == before ? holds(last) >= 2 : holds(last) >= 1 && holds(before) >= 1;
}

}  // namespace

ModelWork model_work(const Module& module, const Function& function) {
  WorkWalk walk(module);
  Facts arguments;
  arguments.resize(function.body().arguments.size());
  const Tally& tally = walk.of_function(function, arguments).tally;
  ModelWork work;
  for (const auto& [key, products] : tally.products) {
    const double times = products.executed();
    const double recomputed = products.recomputed();
    work.executed += Flops(products.flops * times);
    work.recomputed += Flops(products.flops * recomputed);
    const bool is_masked = std::any_of(
        tally.under_mask.begin(), tally.under_mask.end(),
        [&shapes = products.shapes](const auto& masked) {
          return std::any_of(shapes.begin(), shapes.end(),
                             [&](const auto& shape) { return has_size_of(shape, masked.first); });
        });
    if (is_masked) work.masked += Flops(products.flops * (times - recomputed));
  }
  for (const auto& [dims, type] : tally.under_mask) {
    if (!work.scores || type.elements() > work.scores->elements()) work.scores = type;
  }
  return work;
}

}  // namespace shardsim::stablehlo
