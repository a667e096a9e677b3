// What the rules of differentiation (gradient_rules.hpp) have in common: ops of the backward pass,
// and where the gradients that they make belong.
#pragma once

#include <optional>
#include <vector>

#include "workloads/step/gradient_tape.hpp"

namespace shardsim {

// The gradient that has arrived for a result, seen under the labels that the op gives the result.
[[nodiscard]] Operand arrived(const GradientTape& tape, const Operand& result);

[[nodiscard]] Op op_of(Function function, std::vector<Operand> operands);

// Emits `op` with one result, a contribution to the gradient of `primal`.
void contribute_result(Op op, const Operand& primal, GradientTape& tape,
                       std::optional<DType> dtype = {});

// dy summed over the labels that `addend` lacks; dy itself when it lacks none.
void contribute_sum(const Operand& dy, const Operand& addend, GradientTape& tape);

// Gradients of what in `primals` needs one, made by one op; `dtype` is of all but the first.
// They come after the results that `op` has already.
void contribute_results(Op op, const std::vector<Operand>& primals, GradientTape& tape,
                        std::optional<DType> dtype = {});

}  // namespace shardsim
