// GraphBuilder's ops of mixers: convolutions along the sequence, gates, scans.
#include <utility>

#include "workloads/graph/graph_builder.hpp"

namespace shardsim {

TensorId GraphBuilder::copy(const std::string& name, TensorId x) {
  return elementwise(Function::copy, name, {x});
}

TensorId GraphBuilder::convolution(const std::string& name, TensorId x, TensorId weight,
                                   TensorId bias, LabelId sequence, bool silu, const State& state) {
  Op op = op_of(Function::convolution, name, {x, weight, bias});
  op.whole = {sequence};
  if (silu) {
    std::vector<LabelId> values = labels_without(x, {});
    std::vector<LabelId> products = values;
    products.push_back(at(weight).dims.back().front());
    op.work = {{traits(Function::convolution).flops, std::move(products)},
               {traits(Function::silu).flops, std::move(values)}};
  }
  keep(op, state);
  return emit(std::move(op), at(x).dtype, at(x).dims);
}

TensorId GraphBuilder::decay(const std::string& name, TensorId x, TensorId log, TensorId bias) {
  return emit(op_of(Function::decay, name, {x, log, bias}), DType::f32, at(x).dims);
}

TensorId GraphBuilder::gated_norm(const std::string& name, TensorId x, TensorId weight, TensorId z,
                                  const std::vector<LabelId>& over) {
  Op op = op_of(Function::gated_rms_norm, name, {x, weight, z});
  Dims row_dims = at(x).dims;
  for (const LabelId label : over) std::erase(row_dims, Dim{label});
  op.statistics = {{"sum of squares", over, labels_without(x, over), DType::f32}};
  op.results = {whole_of(activation(name + ".rstd", DType::f32, std::move(row_dims)))};
  return emit(std::move(op), at(x).dtype, at(x).dims);
}

TensorId GraphBuilder::scan(Function function, const std::string& name, Scan parts) {
  Op op = op_of(function, name, parts.operands);
  op.whole = std::move(parts.whole);
  op.work = std::move(parts.work);
  for (Scan::Kept& kept : parts.kept) {
    op.results.push_back(whole_of(activation(kept.name, kept.dtype, std::move(kept.dims))));
  }
  keep(op, parts.state);
  return emit(std::move(op), at(parts.operands.front()).dtype, std::move(parts.result));
}

TensorId GraphBuilder::remade(TensorId id) {
  workload_.tensors[static_cast<std::size_t>(id)].remade = true;
  return id;
}

}  // namespace shardsim
