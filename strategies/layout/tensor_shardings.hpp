// What propagation answers: the sharding of every tensor of a workload.
//
// A table whose look-ups read its shards ("gather_embedding": false) is seen in two ways: by
// look-ups as it is stored, by all else (the output head, where the two are tied) as it is computed
// with.
#pragma once

#include <map>
#include <vector>

#include "sharding/sharding.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct TensorShardings {
  std::vector<Sharding> tensors;         // over the tensors' dimensions; no entry is partial
  std::map<TensorId, Sharding> look_up;  // parameters that look-ups read otherwise
  // Parameters whose gradients, made apart, are reduced before they are added up: where they lie
  // then. Others are added up as partial sums.
  std::map<TensorId, Sharding> summed;

  // Gradients that ops read otherwise than they come in: of what is added up as its summands lie
  // and then brought to its pin.
  std::map<TensorId, Sharding> read_as;

  [[nodiscard]] const Sharding& of(TensorId tensor) const {
    return tensors[static_cast<std::size_t>(tensor)];
  }
  // As `op` reads or makes it.
  [[nodiscard]] const Sharding& of(const Op& op, TensorId tensor) const {
    if (!read_as.empty()) {
      const auto read = read_as.find(tensor);
      if (read != read_as.end()) return read->second;
    }
    if (kind_of(op) != OpKind::lookup) return of(tensor);
    const auto table = look_up.find(tensor);
    return table != look_up.end() ? table->second : of(tensor);
  }
};

}  // namespace shardsim
