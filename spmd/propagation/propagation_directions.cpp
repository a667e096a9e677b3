#include "spmd/propagation/propagation_directions.hpp"

#include "spmd/propagation/op_kinds.hpp"

namespace shardsim::spmd {

using stablehlo::Attribute;
using stablehlo::FactorKind;
using stablehlo::FactorRule;
using stablehlo::Function;
using stablehlo::Op;

namespace {

// Moves data between memories, and nothing else.
bool is_offload(const Op& op) {
  const Attribute* target = find(op.attributes, "callee");
  if (target == nullptr) target = find(op.attributes, "call_target_name");
  return op.name == "stablehlo.custom_call" && target != nullptr &&
         (target->text == "MoveToDevice" || target->text == "MoveToHost");
}

// What an op lets through from the first pass on.
Direction eager_direction(const Function& function, const Op& op) {
  if (is_elementwise(function, op) || is_offload(op) || op.name == "stablehlo.reshape" ||
      op.name == "stablehlo.transpose") {
    return Direction::both;
  }
  const bool forward =
      op.name == "stablehlo.dynamic_slice" || op.name == "stablehlo.dynamic_update_slice";
  return forward ? Direction::forward : Direction::none;
}

}  // namespace

Directions directions_of_op(const FactorRule& rule, const Function& function, const Op& op,
                            bool single_use) {
  Directions directions;
  const Direction eager = eager_direction(function, op);
  const Direction late =
      op.name == "stablehlo.broadcast_in_dim" ? Direction::backward : Direction::both;
  for (const stablehlo::Factor& factor : rule.factors) {
    Direction so_far = Direction::none;
    for (std::size_t pass = 0; pass < op_priorities; ++pass) {
      Direction here = Direction::both;
      if (pass == 0) here = single_use ? eager : Direction::none;
      if (pass == 1) here = eager;
      if (pass == 2) here = factor.kind == FactorKind::pass_through ? late : Direction::none;
      if (pass == 3) here = late;
      so_far = either(so_far, here);
      directions[pass].push_back(factor.blocked ? Direction::none : so_far);
    }
  }
  return directions;
}

Directions same_in_all_passes(const FactorRule& rule, Direction direction) {
  Directions directions;
  directions.fill(std::vector<Direction>(rule.factors.size(), direction));
  return directions;
}

Direction allowed_direction(const Op& barrier) {
  const Attribute* allowed = find(barrier.attributes, "allowed_direction");
  const std::string direction = allowed == nullptr ? "" : allowed->text;
  if (direction == "FORWARD") return Direction::forward;
  if (direction == "BACKWARD") return Direction::backward;
  return direction == "BOTH" ? Direction::both : Direction::none;
}

}  // namespace shardsim::spmd
