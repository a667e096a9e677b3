// GraphBuilder's ops over images [batch, channels, rows, columns]. An op may see more labels in a
// dimension than its tensor has: a convolution sees the places that it makes, and at each the
// window of its input, as an implicit product does; none of it lies in memory.
#include "workloads/graph/graph_builder.hpp"

namespace shardsim {

TensorId GraphBuilder::image_convolution(const std::string& name, const Seen& x, TensorId weight,
                                         Dims result, TensorId bias) {
  Op op = op_of(bias == no_tensor ? Function::matmul : Function::linear, name,
                {x.tensor, weight, bias});
  op.operands[0].dims = x.dims;
  return emit(std::move(op), compute_dtype_, std::move(result));
}

TensorId GraphBuilder::group_norm(const std::string& name, const Seen& x, TensorId weight,
                                  TensorId bias, LabelId batch, LabelId groups) {
  Op op = op_of(Function::layer_norm, name, {x.tensor, weight, bias});
  op.operands[0].dims = x.dims;
  const Dim channels = x.dims[1];
  op.operands[1].dims = op.operands[2].dims = {channels};
  std::vector<LabelId> over;
  for (const Dim& dim : x.dims) {
    for (const LabelId label : dim) {
      if (label != batch && label != groups) over.push_back(label);
    }
  }
  const TensorId y = activation(name, at(x.tensor).dtype, at(x.tensor).dims);
  op.results = {{y, x.dims}};
  const Dims rows{{batch}, {groups}};
  for (const char* statistic : {"sum", "sum of squares"}) {
    op.statistics.push_back({statistic, over, {batch, groups}, DType::f32});
  }
  for (const char* kept : {".mean", ".rstd"}) {
    op.results.push_back(whole_of(activation(name + kept, DType::f32, rows)));
  }
  op.weight_dtype = weights_.norms;
  append(std::move(op));
  return y;
}

TensorId GraphBuilder::batch_norm(const std::string& name, TensorId x,
                                  const std::vector<TensorId>& parameters_and_means) {
  Op op = op_of(Function::batch_norm, name, {x});
  for (const TensorId operand : parameters_and_means) op.operands.push_back(whole_of(operand));
  op.weight_dtype = weights_.norms;
  return emit(std::move(op), at(x).dtype, at(x).dims);
}

TensorId GraphBuilder::largest(const std::string& name, const Seen& x, Dims result,
                               std::vector<LabelId> window) {
  const TensorId numbers = activation(name + ".numbers", DType::i64, result);
  Op op = op_of(Function::top_k, name, {x.tensor});
  op.operands[0].dims = x.dims;
  op.results = {whole_of(numbers)};
  op.whole = std::move(window);
  return emit(std::move(op), at(x.tensor).dtype, std::move(result));
}

TensorId GraphBuilder::mean_of_windows(const std::string& name, const Seen& x, Dims result) {
  Op op = op_of(Function::mean, name, {x.tensor});
  op.operands[0].dims = x.dims;
  return emit(std::move(op), at(x.tensor).dtype, std::move(result));
}

TensorId GraphBuilder::rearranged(const std::string& name, TensorId x, Dims result,
                                  std::vector<LabelId> whole) {
  const std::string view = name + ".view";
  return copy(name, slices(view, x, {{view, std::move(result)}}, std::move(whole)).front());
}

}  // namespace shardsim
