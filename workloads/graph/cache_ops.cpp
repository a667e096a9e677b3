// GraphBuilder's ops of steps of inference: what is kept of the tokens before.
#include <algorithm>
#include <utility>

#include "workloads/graph/graph_builder.hpp"

namespace shardsim {

TensorId GraphBuilder::cache(std::string name, DType dtype, Dims dims) {
  return tensor({std::move(name), TensorRole::cache, dtype, std::move(dims)});
}

TensorId GraphBuilder::append(const std::string& name, TensorId cache,
                              const std::vector<TensorId>& rows, LabelId tokens, LabelId places) {
  Op op = op_of(Function::append, name, {cache});
  op.in_place = {{0, 0, /*is_read=*/false}};
  // Where rows end and begin is of no device's choice.
  const auto add_missing = [&](const Dims& dims, const Dims& others) {
    for (const Dim& dim : dims) {
      if (std::count(others.begin(), others.end(), dim) > 0) continue;
      if (dim == Dim{tokens} || dim == Dim{places}) continue;
      op.whole.insert(op.whole.end(), dim.begin(), dim.end());
    }
  };
  const Label& counted = workload_.labels[static_cast<std::size_t>(tokens)];
  const bool is_split_alike = counted.role != LabelRole::none;
  for (const TensorId one : rows) {
    Dims dims = at(one).dims;
    if (is_split_alike) std::replace(dims.begin(), dims.end(), Dim{tokens}, Dim{places});
    add_missing(at(cache).dims, dims);
    add_missing(dims, at(cache).dims);
    op.operands.push_back({one, std::move(dims)});
  }
  return emit(std::move(op), at(cache).dtype, at(cache).dims);
}

// As the last operand and a further result, which is that again.
void GraphBuilder::keep(Op& op, const State& state) {
  if (state.cache == no_tensor) return;
  const Tensor kept = at(state.cache);
  op.results.push_back(whole_of(activation(kept.name + ".kept", kept.dtype, kept.dims)));
  // Before them comes what the op makes.
  op.in_place = {{static_cast<std::int8_t>(op.results.size()),
                  static_cast<std::int8_t>(op.operands.size()), state.is_read}};
  op.operands.push_back(whole_of(state.cache));
}

}  // namespace shardsim
