#include "workloads/step/optimizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/error.hpp"

namespace shardsim {
namespace {

// What of a parameter's shape a state has.
enum class StateForm : std::uint8_t {
  full,
  rows,           // without the last dimension
  columns,        // without the one before
  codes,          // a byte for each number
  output_scales,  // without the first dimension, in fp32
  scales          // a number for each block of codes along the last dimension
};

struct StateKind {
  std::string name;  // as PyTorch, or whose optimizer it is, names it
  StateForm form = StateForm::full;
};

struct OptimizerKind {
  std::string name;
  std::vector<StateKind> states;
  Function function = Function::adamw;
  std::vector<StateKind> small{};  // of parameters that the others are not made for
};

// Adafactor: torch.optim.Adafactor (torch 2.9), which has no momentum; parameters of one dimension
// have the variance itself. Praxis' has momentum in bytes and a scale of each column (praxis 1.4.0,
// optimizers.py, ShardedAdafactor). Adam in 8 bits: bitsandbytes 0.48, blocks of 256 codes with a
// scale in fp32; parameters of fewer than 4,096 numbers keep states in fp32 (min_8bit_size).
constexpr std::int64_t codes_of_block = 256;
constexpr std::int64_t least_in_codes = 4096;

const std::vector<StateKind> two_moments = {{"exp_avg"}, {"exp_avg_sq"}};
const std::vector<StateKind> moments_in_codes = {{"state1", StateForm::codes},
                                                 {"absmax1", StateForm::scales},
                                                 {"state2", StateForm::codes},
                                                 {"absmax2", StateForm::scales}};
const std::vector<StateKind> moments_of_few = {{"state1"}, {"state2"}};

const std::vector<OptimizerKind> kinds = {
    {"adamw", two_moments, Function::adamw},
    {"adam", two_moments, Function::adam},
    {"lion", {{"exp_avg"}}, Function::lion},
    {"adafactor",
     {{"row_var", StateForm::rows}, {"col_var", StateForm::columns}},
     Function::adafactor,
     {{"variance"}}},
    {"sharded_adafactor",
     {{"m", StateForm::codes},
      {"m_scale", StateForm::output_scales},
      {"vr", StateForm::rows},
      {"vc", StateForm::columns}},
     Function::adafactor,
     {{"m", StateForm::codes}, {"v"}}},
    {"adam8bit", moments_in_codes, Function::adam_8bit, moments_of_few},
    {"adamw8bit", moments_in_codes, Function::adam_8bit, moments_of_few},
    {"sgd", {{"momentum_buffer"}}, Function::sgd},
    {"none", {}},
};

}  // namespace

std::vector<std::string> known_optimizers() {
  std::vector<std::string> names;
  for (const OptimizerKind& kind : kinds) names.push_back(kind.name);
  return names;
}

namespace {

const OptimizerKind& kind_of(const std::string& name) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const OptimizerKind& kind) { return kind.name == name; });
  if (found != kinds.end()) return *found;
  throw InputError({"", "/workload/optimizer"},
                   fmt::format("unknown optimizer \"{}\"; known are {}", name,
                               fmt::join(known_optimizers(), ", ")));
}

// The gradient that is complete: the last one made for the parameter.
TensorId gradient_of(const Workload& workload, TensorId parameter) {
  TensorId gradient = no_tensor;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    if (tensor.role == TensorRole::parameter_gradient && tensor.primal == parameter) {
      gradient = static_cast<TensorId>(t);
    }
  }
  return gradient;
}

Operand add_state(Workload& workload, TensorId parameter, const StateKind& kind, DType dtype) {
  const Tensor& of = workload.tensors[static_cast<std::size_t>(parameter)];
  std::vector<Dim> dims = of.dims;
  const auto last = static_cast<std::ptrdiff_t>(dims.size()) - 1;
  if (kind.form == StateForm::rows) dims.pop_back();
  if (kind.form == StateForm::columns) dims.erase(dims.begin() + last - 1);
  if (kind.form == StateForm::codes) dtype = DType::i8;
  if (kind.form == StateForm::output_scales) {
    dims.erase(dims.begin());
    dtype = DType::f32;
  }
  const std::string name = of.name + "." + kind.name;
  if (kind.form == StateForm::scales) {
    const std::int64_t numbers = workload.elements({dims.back()});
    workload.labels.push_back({name, (numbers + codes_of_block - 1) / codes_of_block});
    dims.back() = {static_cast<LabelId>(workload.labels.size() - 1)};
    dtype = DType::f32;
  }
  Tensor state{name, TensorRole::optimizer_state, dtype, std::move(dims), of.block, parameter};
  workload.tensors.push_back(std::move(state));
  const auto id = static_cast<TensorId>(workload.tensors.size() - 1);
  return {id, workload.tensors.back().dims};
}

// Of a parameter of these dimensions.
const std::vector<StateKind>& states_of(const OptimizerKind& kind, const Workload& workload,
                                        const Tensor& parameter) {
  const bool is_small = kind.function == Function::adafactor
                            ? parameter.dims.size() < 2
                            : workload.elements(parameter.dims) < least_in_codes;
  return !kind.small.empty() && is_small ? kind.small : kind.states;
}

}  // namespace

void add_optimizer(Workload& workload, const OptimizerOptions& options) {
  const OptimizerKind& kind = kind_of(options.kind);
  if (kind.name == "none") return;
  if (kind.function == Function::adafactor) {
    workload.notes.emplace_back(
        "Adafactor's sums along rows and columns are of each device's shard: the vectors that "
        "devices would add up are not sent");
  }
  for (const ParameterView& view : parameters(workload)) {
    if (!workload.tensors[static_cast<std::size_t>(view.tensor)].trained) continue;
    const TensorId gradient = gradient_of(workload, view.tensor);
    assert(gradient != no_tensor);  // add_backward comes first
    const Tensor parameter = workload.tensors[static_cast<std::size_t>(view.tensor)];
    Op op;
    op.function = kind.function;
    op.name = parameter.name;
    op.results.push_back({view.tensor, parameter.dims});
    if (options.master) {
      op.results.push_back(add_state(workload, view.tensor, {"master"}, *options.master));
    }
    const bool has_moments = options.momentum || kind.function != Function::sgd;
    if (!has_moments) op.work_fraction = 0.5;  // w -= rate * g, of v = m * v + g; w -= rate * v
    if (has_moments) {
      for (const StateKind& state : states_of(kind, workload, parameter)) {
        op.results.push_back(add_state(workload, view.tensor, state, options.moments));
      }
    }
    op.operands = op.results;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      op.in_place.push_back({static_cast<std::int8_t>(i), static_cast<std::int8_t>(i)});
    }
    op.operands.push_back({gradient, parameter.dims});
    workload.blocks[static_cast<std::size_t>(parameter.block)].optimizer.push_back(std::move(op));
  }
}

}  // namespace shardsim
