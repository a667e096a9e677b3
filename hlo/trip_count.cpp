#include "hlo/trip_count.hpp"

#include <charconv>
#include <limits>
#include <vector>

#include "base/counting_loop.hpp"
#include "hlo/callers.hpp"

namespace shardsim {
namespace {

constexpr int deepest_chain = 200;
constexpr std::int64_t largest = std::int64_t{1} << 40;  // sums of these do not overflow

// An element of the loop's state plus a constant, or a constant alone.
struct Affine {
  std::optional<std::size_t> element;
  std::int64_t offset = 0;
};

// Scalars of one computation and of what it calls, in terms of the computation's state.
class ScalarReader {
 public:
  explicit ScalarReader(const HloModule& module) : module_(module) {}

  std::optional<Affine> read(HloId id, int depth = 0) {
    if (depth > deepest_chain) return std::nullopt;
    const HloInstruction& instruction = module_.instruction(id);
    const auto operands = module_.operands(id);
    const std::string_view opcode = instruction.opcode;
    if (opcode == "constant") return literal(instruction.arguments);
    if (opcode == "parameter") return argument(id, depth);
    if (opcode == "copy" || opcode == "bitcast" || opcode == "convert" || opcode == "reshape") {
      return read(module_.operand(id, 0), depth + 1);
    }
    if (opcode == "get-tuple-element")
      return element(module_.operand(id, 0), tuple_index(module_, id), depth + 1);
    if (opcode == "add" || opcode == "subtract") return sum(operands, opcode == "add", depth);
    if (opcode == "fusion") {
      return inside(id, [&](HloId root) { return read(root, depth + 1); });
    }
    return std::nullopt;
  }

  // `f` of the root of the computation that a fusion or call runs.
  template <class F>
  auto inside(HloId call, const F& f) -> decltype(f(call)) {
    calls_.push_back(call);
    auto answer = f(module_.computation(module_.callee(call, "calls")).root);
    calls_.pop_back();
    return answer;
  }

  std::optional<Affine> element(HloId tuple, std::size_t index, int depth = 0) {
    if (depth > deepest_chain) return std::nullopt;
    const std::string_view opcode = module_.instruction(tuple).opcode;
    const auto operands = module_.operands(tuple);
    if (opcode == "tuple") {
      if (index >= operands.size()) return std::nullopt;
      return read(operands[index], depth + 1);
    }
    if (opcode == "parameter" && calls_.empty()) return Affine{index, 0};
    if (opcode == "fusion") {
      return inside(tuple, [&](HloId root) { return element(root, index, depth + 1); });
    }
    return std::nullopt;
  }

 private:
  static std::optional<Affine> literal(std::string_view text) {
    std::int64_t number = 0;
    text = trim_blanks(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (number > largest || number < -largest) return std::nullopt;
    return Affine{std::nullopt, number};
  }

  std::optional<Affine> argument(HloId parameter, int depth) {
    if (calls_.empty()) return std::nullopt;
    const HloId call = calls_.back();
    const std::size_t number = parameter_number(module_, parameter);
    if (number >= module_.operands(call).size()) return std::nullopt;
    calls_.pop_back();
    auto answer = read(module_.operands(call)[number], depth + 1);
    calls_.push_back(call);
    return answer;
  }

  std::optional<Affine> sum(std::span<const HloId> operands, bool adds, int depth) {
    if (operands.size() != 2) return std::nullopt;
    const auto a = read(operands[0], depth + 1);
    const auto b = read(operands[1], depth + 1);
    if (!a || !b || (b->element && (a->element || !adds))) return std::nullopt;
    const std::int64_t offset = a->offset + (adds ? b->offset : -b->offset);
    if (offset > largest || offset < -largest) return std::nullopt;
    return Affine{a->element ? a->element : b->element, offset};
  }

  const HloModule& module_;
  std::vector<HloId> calls_;
};

std::optional<std::int64_t> recorded(std::string_view config) {
  const std::size_t at = config.find("known_trip_count");
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = config.find_first_of("0123456789", at);
  if (begin == std::string_view::npos) return std::nullopt;
  std::int64_t count = 0;
  const auto [end, error] =
      std::from_chars(config.data() + begin, config.data() + config.size(), count);
  if (error != std::errc() || end == config.data() + begin) return std::nullopt;
  return count;
}

struct Test {
  Affine left;
  Affine right;
  std::string_view direction;
};

std::optional<Test> read_test(const HloModule& module, ScalarReader& reader, HloId root,
                              int depth) {
  const std::string_view opcode = module.instruction(root).opcode;
  if (opcode == "fusion" && depth < deepest_chain) {
    return reader.inside(root,
                         [&](HloId inner) { return read_test(module, reader, inner, depth + 1); });
  }
  const auto operands = module.operands(root);
  if (opcode != "compare" || operands.size() != 2) return std::nullopt;
  const auto left = reader.read(operands[0]);
  const auto right = reader.read(operands[1]);
  if (!left || !right) return std::nullopt;
  return Test{*left, *right, module.attribute(root, "direction")};
}

}  // namespace

std::optional<std::int64_t> trip_count(const HloModule& module, HloId while_loop) {
  if (const auto count = recorded(module.attribute(while_loop, "backend_config"))) return count;
  ScalarReader before(module);
  ScalarReader body(module);
  ScalarReader condition(module);
  const HloId body_root = module.computation(module.callee(while_loop, "body")).root;
  const HloId test_root = module.computation(module.callee(while_loop, "condition")).root;
  auto test = read_test(module, condition, test_root, 0);
  if (!test) return std::nullopt;
  if (!test->left.element) {
    std::swap(test->left, test->right);
    test->direction = mirrored(test->direction);
  }
  if (!test->left.element) return std::nullopt;
  const std::size_t counter = *test->left.element;
  const HloId state = module.operand(while_loop, 0);
  const auto constant_before = [&](std::size_t element) -> std::optional<std::int64_t> {
    const auto value = before.element(state, element);
    if (!value || value->element) return std::nullopt;
    return value->offset;
  };
  const auto first = constant_before(counter);
  const auto next = body.element(body_root, counter);
  if (!first || !next || next->element != counter) return std::nullopt;
  std::int64_t bound = test->right.offset;
  if (test->right.element) {  // a bound that the loop carries along unchanged
    const auto carried = body.element(body_root, *test->right.element);
    const auto value = constant_before(*test->right.element);
    if (!value || !carried || carried->element != test->right.element || carried->offset != 0) {
      return std::nullopt;
    }
    bound += *value;
  }
  return counted_rounds(*first + test->left.offset, next->offset, test->direction, bound);
}

}  // namespace shardsim
