// GraphBuilder's ops of mixtures of experts: what routes, copies and adds up rows of tokens.
#include <algorithm>

#include "workloads/graph/graph_builder.hpp"

namespace shardsim {

TensorId GraphBuilder::expand(const std::string& name, TensorId x, Dims result) {
  Op op = op_of(Function::expand, name, {x});
  op.view = true;
  return emit(std::move(op), at(x).dtype, std::move(result));
}

TensorId GraphBuilder::over_label(Function function, const std::string& name, TensorId x,
                                  LabelId over) {
  Op op = op_of(function, name, {x});
  op.whole = {over};
  return emit(std::move(op), at(x).dtype, at(x).dims);
}

std::pair<TensorId, TensorId> GraphBuilder::top_k(const std::string& name, TensorId x, LabelId from,
                                                  LabelId choice) {
  Dims dims = at(x).dims;
  std::replace(dims.begin(), dims.end(), Dim{from}, Dim{choice});
  const TensorId numbers = activation(name + ".numbers", DType::i64, dims);
  Op op = op_of(Function::top_k, name, {x});
  op.results = {whole_of(numbers)};
  op.whole = {from, choice};
  return {emit(std::move(op), at(x).dtype, std::move(dims)), numbers};
}

TensorId GraphBuilder::dispatch(const std::string& name, TensorId x, TensorId numbers, Dims rows,
                                LabelId choice) {
  Op op = op_of(Function::dispatch, name, {x, numbers});
  op.whole = {choice};
  return emit(std::move(op), at(x).dtype, std::move(rows));
}

TensorId GraphBuilder::combine(const std::string& name, TensorId rows, TensorId numbers,
                               TensorId weights, Dims result, LabelId choice) {
  Op op = op_of(Function::combine, name, {rows, numbers, weights});
  op.whole = {choice};
  return emit(std::move(op), at(rows).dtype, std::move(result));
}

std::vector<TensorId> GraphBuilder::exchange(const std::string& name, const std::vector<Rows>& rows,
                                             TensorId numbers) {
  std::vector<TensorId> operands, results;
  for (const Rows& one : rows) operands.push_back(one.rows);
  if (numbers != no_tensor) operands.push_back(numbers);
  Op op = op_of(Function::exchange, name, operands);
  for (const Rows& one : rows) {
    results.push_back(activation(one.name, at(one.rows).dtype, one.result));
    op.results.push_back(whole_of(results.back()));
  }
  append(std::move(op));
  return results;
}

TensorId GraphBuilder::grouped_linear(const std::string& name, TensorId x, TensorId weight,
                                      Dims result, LabelId experts, const Routing& routing,
                                      TensorId bias) {
  Op op = op_of(Function::grouped_matmul, name, {x, weight, bias});
  op.routing = routing;
  const Dims& rows = at(x).dims;
  const bool by_expert = std::find(rows.begin(), rows.end(), Dim{experts}) != rows.end();
  if (!by_expert) op.work_fraction = 1.0 / static_cast<double>(label_size(experts));
  return emit(std::move(op), compute_dtype_, std::move(result));
}

}  // namespace shardsim
