#include "workloads/graph/graph_builder.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "workloads/graph/carried.hpp"

namespace shardsim {
namespace {

GraphBuilder::Dims renamed(GraphBuilder::Dims dims,
                           const std::vector<std::pair<LabelId, LabelId>>& names) {
  for (Dim& dim : dims) {
    for (LabelId& label : dim) {
      for (const auto& [from, to] : names) {
        if (label == from) {
          label = to;
          break;
        }
      }
    }
  }
  return dims;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string model, DType compute_dtype, WeightTypes weights)
    : compute_dtype_(compute_dtype), weights_(weights) {
  workload_.model = std::move(model);
}

LabelId GraphBuilder::label(std::string_view name, std::int64_t size, LabelRole role) {
  assert(size > 0);
  workload_.labels.push_back({std::string(name), size, role});
  return static_cast<LabelId>(workload_.labels.size() - 1);
}

void GraphBuilder::set_parts(LabelId label, double needed, double held) {
  workload_.labels[static_cast<std::size_t>(label)].needed = needed;
  workload_.labels[static_cast<std::size_t>(label)].held = held;
}

void GraphBuilder::begin_block(std::string name, std::string runs_module) {
  end_stack();
  Block block;
  block.name = std::move(name);
  block.runs_module = std::move(runs_module);
  workload_.blocks.push_back(std::move(block));
  workload_.order.push_back({static_cast<std::int32_t>(workload_.blocks.size()) - 1, 0});
  stack_ = workload_.blocks.size();
}

void GraphBuilder::begin_layers(std::string name, std::vector<std::int32_t> numbers) {
  assert(!numbers.empty() && std::is_sorted(numbers.begin(), numbers.end()));
  Block block;
  block.name = std::move(name);
  block.is_layer = true;
  block.numbers = std::move(numbers);
  workload_.blocks.push_back(std::move(block));
}

void GraphBuilder::begin_layers(std::string name, std::int64_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  begin_layers(std::move(name), std::move(numbers));
}

// The layers of its kinds, by number.
void GraphBuilder::end_stack() {
  std::vector<std::pair<std::int32_t, BlockInstance>> layers;
  for (std::size_t b = stack_; b < workload_.blocks.size(); ++b) {
    const std::vector<std::int32_t>& numbers = workload_.blocks[b].numbers;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      layers.push_back({numbers[i], {static_cast<std::int32_t>(b), static_cast<std::int32_t>(i)}});
    }
  }
  std::sort(layers.begin(), layers.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& layer : layers) workload_.order.push_back(layer.second);
  stack_ = workload_.blocks.size();
}

TensorId GraphBuilder::carry_in(std::string name) {
  assert(workload_.blocks.size() >= 2);
  const Block& before = workload_.blocks[workload_.blocks.size() - 2];
  const std::size_t index = block().carries_in.size();
  const Tensor& source = at(before.carries_out[index]);
  const TensorId id = activation(std::move(name), source.dtype, source.dims);
  block().carries_in.push_back(id);
  return id;
}

void GraphBuilder::carry_out(TensorId value) { block().carries_out.push_back(value); }

TensorId GraphBuilder::buffer(std::string name, DType dtype, Dims dims) {
  return tensor({std::move(name), TensorRole::buffer, dtype, std::move(dims)});
}

TensorId GraphBuilder::input(std::string name, DType dtype, Dims dims) {
  return tensor({std::move(name), TensorRole::input, dtype, std::move(dims)});
}

TensorId GraphBuilder::constant(std::string name, DType dtype, Dims dims) {
  return tensor({std::move(name), TensorRole::constant, dtype, std::move(dims)});
}

Op GraphBuilder::op_of(Function function, std::string name,
                       const std::vector<TensorId>& operands) const {
  Op op;
  op.function = function;
  op.name = std::move(name);
  for (const TensorId operand : operands) {
    if (operand != no_tensor) op.operands.push_back(whole_of(operand));
  }
  return op;
}

TensorId GraphBuilder::emit(Op op, DType dtype, Dims dims) {
  const TensorId y = activation(op.name, dtype, std::move(dims));
  op.results.insert(op.results.begin(), whole_of(y));
  append(std::move(op));
  return y;
}

void GraphBuilder::append(Op op) {
  if (idle_) return;
  op.module = module_;
  op.part = part_;
  block().forward.push_back(std::move(op));
}

GraphBuilder::Within::Within(GraphBuilder& builder, OpModule module)
    : builder_(builder), module_(builder.module_), part_(builder.part_) {
  builder_.module_ = module;
}

GraphBuilder::Within::Within(GraphBuilder& builder, OpPart part)
    : builder_(builder), module_(builder.module_), part_(builder.part_) {
  builder_.part_ = part;
}

GraphBuilder::Within::~Within() {
  builder_.module_ = module_;
  builder_.part_ = part_;
}

TensorId GraphBuilder::linear(const std::string& name, TensorId x, TensorId weight, Dims result,
                              TensorId bias, std::optional<DType> dtype) {
  const Function function = bias == no_tensor ? Function::matmul : Function::linear;
  return emit(op_of(function, name, {x, weight, bias}), dtype.value_or(compute_dtype_),
              std::move(result));
}

TensorId GraphBuilder::product_with_all(const std::string& name, TensorId x, TensorId other,
                                        Dims result, LabelId from, LabelId to, TensorId weights) {
  Op op = op_of(weights == no_tensor ? Function::matmul : Function::linear, name, {x});
  op.operands.push_back({other, renamed(at(other).dims, {{from, to}})});
  if (weights != no_tensor) op.operands.push_back(whole_of(weights));
  op.whole = {to};
  return emit(std::move(op), compute_dtype_, std::move(result));
}

TensorId GraphBuilder::elementwise(Function function, const std::string& name,
                                   const std::vector<TensorId>& operands) {
  const Tensor& first = at(operands[0]);
  return emit(op_of(function, name, operands), first.dtype, first.dims);
}

TensorId GraphBuilder::cast(const std::string& name, TensorId x, DType dtype) {
  if (at(x).dtype == dtype) return x;
  return emit(op_of(Function::cast, name, {x}), dtype, at(x).dims);
}

TensorId GraphBuilder::dropout(const std::string& name, TensorId x) {
  const TensorId mask = activation(name + ".mask", DType::boolean, at(x).dims);
  Op op = op_of(Function::dropout, name, {x});
  const TensorId y = activation(name, at(x).dtype, at(x).dims);
  op.results = {whole_of(y), whole_of(mask)};
  append(std::move(op));
  return y;
}

TensorId GraphBuilder::mean(const std::string& name, TensorId x, Dims result) {
  return emit(op_of(Function::mean, name, {x}), at(x).dtype, std::move(result));
}

TensorId GraphBuilder::rope(const std::string& name, TensorId x, TensorId cos, TensorId sin,
                            LabelId head_dim) {
  Op op = op_of(Function::rope, name, {x, cos, sin});
  op.whole = {head_dim};  // each half turns into the other
  return emit(std::move(op), at(x).dtype, at(x).dims);
}

std::vector<TensorId> GraphBuilder::split(const std::vector<std::string>& names, TensorId fused,
                                          LabelId part) {
  Dims dims = at(fused).dims;
  std::erase(dims, Dim{part});
  std::vector<Part> parts;
  for (const std::string& name : names) parts.push_back({name, dims});
  return slices(at(fused).name, fused, parts, {part});
}

std::vector<TensorId> GraphBuilder::slices(const std::string& name, TensorId fused,
                                           const std::vector<Part>& parts,
                                           std::vector<LabelId> whole) {
  Op op = op_of(Function::split, name, {fused});
  op.whole = std::move(whole);
  op.view = true;
  std::vector<TensorId> ids;
  for (const Part& part : parts) {
    ids.push_back(activation(part.name, at(fused).dtype, part.dims));
    op.results.push_back(whole_of(ids.back()));
  }
  append(std::move(op));
  return ids;
}

TensorId GraphBuilder::concatenate(const std::string& name, const std::vector<TensorId>& parts,
                                   Dims result, std::vector<LabelId> whole) {
  Op op = op_of(Function::concatenate, name, parts);
  op.whole = std::move(whole);
  return emit(std::move(op), at(parts[0]).dtype, std::move(result));
}

TensorId GraphBuilder::rms_norm(const std::string& name, TensorId x, TensorId weight,
                                LabelId over) {
  return norm(Function::rms_norm, name, x, {weight}, {over});
}

TensorId GraphBuilder::layer_norm(const std::string& name, TensorId x, TensorId weight,
                                  TensorId bias, LabelId over) {
  return norm(Function::layer_norm, name, x, {weight, bias}, {over});
}

TensorId GraphBuilder::norm(Function function, const std::string& name, TensorId x,
                            const std::vector<TensorId>& affine, const std::vector<LabelId>& over) {
  const bool has_mean = function == Function::layer_norm;
  const std::vector<LabelId> rows = labels_without(x, over);
  Dims row_dims = at(x).dims;
  for (const LabelId label : over) std::erase(row_dims, Dim{label});

  Op op = op_of(function, name, {x});
  for (const TensorId operand : affine) op.operands.push_back(whole_of(operand));
  const TensorId y = activation(name, at(x).dtype, at(x).dims);
  op.results = {whole_of(y)};
  if (has_mean) {
    op.statistics.push_back({"sum", over, rows, DType::f32});
    op.results.push_back(whole_of(activation(name + ".mean", DType::f32, row_dims)));
  }
  op.statistics.push_back({"sum of squares", over, rows, DType::f32});
  op.results.push_back(whole_of(activation(name + ".rstd", DType::f32, row_dims)));
  if (!affine.empty()) op.weight_dtype = weights_.norms;
  append(std::move(op));
  return y;
}

TensorId GraphBuilder::attention(const std::string& name, TensorId q, TensorId k, TensorId v,
                                 LabelId head_dim,
                                 const std::vector<std::pair<LabelId, LabelId>>& key_labels,
                                 const AttentionParts& parts) {
  Op op;
  op.function = Function::attention;
  op.name = name;
  op.operands = {
      whole_of(q), {k, renamed(at(k).dims, key_labels)}, {v, renamed(at(v).dims, key_labels)}};
  if (parts.added != no_tensor) op.operands.push_back(whole_of(parts.added));
  if (!parts.merges) {
    for (const auto& [from, to] : key_labels) op.whole.push_back(to);
  }
  op.whole.push_back(head_dim);
  if (parts.value_dim) op.whole.push_back(*parts.value_dim);
  op.work_fraction = parts.fraction;
  op.documents = parts.documents;
  op.drops = parts.drops;

  Dims logsumexp_dims = at(q).dims;
  std::erase(logsumexp_dims, Dim{head_dim});
  Dims out_dims = at(q).dims;
  std::replace(out_dims.begin(), out_dims.end(), Dim{head_dim},
               Dim{parts.value_dim.value_or(head_dim)});
  const TensorId out = activation(name, at(q).dtype, std::move(out_dims));
  op.results = {whole_of(out)};
  op.results.push_back(
      whole_of(activation(name + ".logsumexp", DType::f32, std::move(logsumexp_dims))));
  if (parts.merges) {
    std::vector<LabelId> tokens;
    for (const auto& [from, to] : key_labels) tokens.push_back(to);
    op.statistics = {{"logsumexp", tokens, labels_without(q, {head_dim}), DType::f32,
                      /*is_gathered=*/true}};
  }
  append(std::move(op));
  return out;
}

TensorId GraphBuilder::embedding(const std::string& name, TensorId ids, TensorId weight,
                                 Dims result) {
  Op op = op_of(Function::embedding, name, {ids, weight});
  op.weight_dtype = weights_.look_ups;
  const TensorId rows =
      emit(std::move(op), weights_.look_ups.value_or(compute_dtype_), std::move(result));
  return cast(name + ".cast", rows, compute_dtype_);
}

TensorId GraphBuilder::cross_entropy(TensorId logits, TensorId targets, LabelId classes,
                                     const std::string& name) {
  const DType dtype = at(logits).dtype;
  const std::vector<LabelId> rows = labels_without(logits, {classes});
  Op log_softmax = op_of(Function::log_softmax, name + ".log_softmax", {logits});
  log_softmax.statistics = {{"maximum", {classes}, rows, DType::f32},
                            {"sum of exponentials", {classes}, rows, DType::f32}};
  const TensorId log_p = emit(std::move(log_softmax), dtype, at(logits).dims);
  Op nll = op_of(Function::nll_loss, name, {log_p, targets});
  nll.statistics = {{"picked logit", {classes}, rows, DType::f32}};
  return emit(std::move(nll), DType::f32, {});
}

TensorId GraphBuilder::marked(TensorId id, StreamMark mark) {
  workload_.tensors[static_cast<std::size_t>(id)].mark = mark;
  return id;
}

void GraphBuilder::leave_gradient_apart(TensorId id) {
  workload_.tensors[static_cast<std::size_t>(id)].gradient_apart = true;
}

std::int64_t GraphBuilder::label_size(LabelId label) const {
  return workload_.labels[static_cast<std::size_t>(label)].size;
}

void GraphBuilder::note(std::string text) { workload_.notes.push_back(std::move(text)); }

Workload GraphBuilder::finish(TensorId loss) {
  end_stack();
  workload_.loss = loss;
  check_carried(workload_);
  return std::move(workload_);
}

void GraphBuilder::set_idle(bool idle) {
  if (idle_ && !idle) {
    for (Block& block : workload_.blocks) {
      block.carries_in.clear();
      block.carries_out.clear();
    }
  }
  idle_ = idle;
}

TensorId GraphBuilder::tensor(Tensor tensor) {
  if (idle_ && is_given(tensor.role)) tensor.role = TensorRole::activation;
  tensor.block = static_cast<int>(workload_.blocks.size()) - 1;
  workload_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(workload_.tensors.size() - 1);
}

TensorId GraphBuilder::activation(std::string name, DType dtype, Dims dims) {
  return tensor({std::move(name), TensorRole::activation, dtype, std::move(dims)});
}

const Tensor& GraphBuilder::at(TensorId id) const {
  return workload_.tensors[static_cast<std::size_t>(id)];
}

Operand GraphBuilder::whole_of(TensorId id) const { return {id, at(id).dims}; }

Block& GraphBuilder::block() {
  assert(!workload_.blocks.empty());
  return workload_.blocks.back();
}

std::vector<LabelId> GraphBuilder::labels_without(TensorId id,
                                                  const std::vector<LabelId>& over) const {
  std::vector<LabelId> labels;
  for (const Dim& dim : at(id).dims) {
    for (const LabelId label : dim) {
      if (std::count(over.begin(), over.end(), label) == 0) labels.push_back(label);
    }
  }
  return labels;
}

}  // namespace shardsim
