#include "strategies/specs/state_optimizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"

namespace shardsim {
namespace {

// What a transformation is made of: its own slots, or the steps of a chain. "*" is the learning
// rate's step, which counts where it goes by a schedule.
struct Transformation {
  std::string name;
  std::vector<std::string> slots;
  std::vector<std::string> steps;
};

const std::vector<Transformation>& transformations() {
  static const std::vector<Transformation> table = {
      {"adam", {}, {"scale_by_adam", "*"}},
      {"adamw", {}, {"scale_by_adam", "add_decayed_weights", "*"}},
      {"lion", {}, {"scale_by_lion", "add_decayed_weights", "*"}},
      {"rmsprop", {}, {"scale_by_rms", "*"}},
      {"sgd", {}, {"identity", "*"}},
      {"momentum", {}, {"trace", "*"}},
      {"scale_by_adam", {"count", "mu", "nu"}, {}},
      {"scale_by_lion", {"count", "mu"}, {}},
      {"scale_by_rms", {"nu"}, {}},
      {"trace", {"trace"}, {}},
      {"scale_by_schedule", {"count"}, {}},
      {"scale_by_learning_rate", {}, {}},
      {"add_decayed_weights", {}, {}},
      {"clip", {}, {}},
      {"clip_by_global_norm", {}, {}},
      {"identity", {}, {}},
      {"scale", {}, {}}};
  return table;
}

class Parser {
 public:
  Parser(const std::string& text, const Place& place) : text_(text), place_(place) {
    std::copy_if(text.begin(), text.end(), std::back_inserter(left_),
                 [](char c) { return c != ' '; });
  }

  StateOptimizer run() {
    transformation("");
    if (at_ != left_.size()) fail(fmt::format("\"{}\" is too much", left_.substr(at_)));
    return std::move(slots_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(place_, fmt::format("optimizer \"{}\": {}", text_, what));
  }

  bool eat(char c) {
    if (at_ == left_.size() || left_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string word() {
    const std::size_t end = std::min(left_.find_first_of("(),", at_), left_.size());
    std::string found = left_.substr(at_, end - at_);
    at_ = end;
    return found;
  }

  void transformation(const std::string& path) {
    const std::string name = word();
    if (name == "chain") {
      if (!eat('(')) fail("a chain has its transformations in parentheses");
      std::size_t step = 0;
      do transformation(fmt::format("{}{}/", path, step++));
      while (eat(','));
      if (!eat(')')) fail("a parenthesis is never closed");
      return;
    }
    std::vector<std::string> arguments;
    if (eat('(')) {
      do arguments.push_back(word());
      while (eat(','));
      if (!eat(')')) fail("a parenthesis is never closed");
    }
    add(name, path, arguments);
  }

  static bool has(const std::vector<std::string>& arguments, const std::string& name) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
      return argument == name || argument.ends_with("=" + name) || argument.starts_with(name + "=");
    });
  }

  void add(const std::string& name, const std::string& path,
           const std::vector<std::string>& arguments) {
    if (name == "sgd" && has(arguments, "momentum")) return add("momentum", path, arguments);
    const auto& known = transformations();
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& candidate) { return candidate.name == name; });
    if (found == known.end()) {
      std::vector<std::string> names = {"chain"};
      for (const Transformation& one : known) names.push_back(one.name);
      throw InputError(place_, fmt::format("unknown optimizer \"{}\"; known are {}", name,
                                           fmt::join(names, ", ")));
    }
    for (const std::string& slot : found->slots) {
      slots_.push_back({path + slot, slot != "count"});
      if (slot == "mu") slots_.back().dtype = dtype_of_mu(arguments);
    }
    const bool counts = has(arguments, "schedule");
    if (name == "scale_by_learning_rate" && counts) slots_.push_back({path + "count", false});
    for (std::size_t i = 0; i < found->steps.size(); ++i) {
      const std::string& step = found->steps[i];
      add(step == "*" ? "scale_by_learning_rate" : step, fmt::format("{}{}/", path, i), arguments);
    }
  }

  [[nodiscard]] std::optional<DType> dtype_of_mu(const std::vector<std::string>& arguments) const {
    constexpr std::string_view key = "mu_dtype=";
    for (const std::string& argument : arguments) {
      if (!argument.starts_with(key)) continue;
      const auto dtype = parse_dtype(argument.substr(key.size()));
      if (!dtype) fail(fmt::format("\"{}\" is no dtype", argument.substr(key.size())));
      return dtype;
    }
    return std::nullopt;
  }

  const std::string& text_;
  const Place& place_;
  std::string left_;
  std::size_t at_ = 0;
  StateOptimizer slots_;
};

}  // namespace

StateOptimizer parse_state_optimizer(const std::string& text, const Place& place) {
  return Parser(text, place).run();
}

}  // namespace shardsim
