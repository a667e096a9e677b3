// The optimizer's part of a training step: each parameter, its master and its moments, updated in
// place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct OptimizerOptions {
  std::string kind = "adamw";                // of known_optimizers()
  bool momentum = true;                      // of sgd
  DType parameters = DType::bf16;            // as stored between steps
  DType gradients = DType::bf16;             // as accumulated, and reduced where `reduce` is not
  std::optional<DType> reduce = {};          // between devices
  std::optional<DType> master = DType::f32;  // nothing: the parameters are their own master
  DType moments = DType::f32;
  bool donate = true;  // the new train state takes the place of the old; false: it stands beside it
  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

// "adamw", "adam", "lion", "adafactor", "sharded_adafactor", "adam8bit", "adamw8bit", "sgd", "none"
[[nodiscard]] std::vector<std::string> known_optimizers();

// Fills Block::optimizer: one op per parameter, in the block that uses it first. Its results are
// the parameter, its master (NAME.master) and its moments (NAME.exp_avg, NAME.exp_avg_sq; lion:
// NAME.exp_avg; sgd: NAME.momentum_buffer; adafactor: NAME.row_var and .col_var, of a vector
// .variance; in 8 bits: NAME.state1 and .state2 in bytes, .absmax1 and .absmax2 their scales),
// updated in place; its operands are these, then the
// gradient. (Without momentum sgd has no state.) The gradient tensor has the compute dtype, as the
// matmul leaves it; who reduces it casts it to `gradients`.
// Throws InputError when the kind is unknown.
void add_optimizer(Workload& workload, const OptimizerOptions& options);

}  // namespace shardsim
