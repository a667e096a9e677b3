#include "strategies/frameworks/xla.hpp"

namespace shardsim {
namespace {

void begin_xla(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
               Strategy& options) {
  options.shards_parameters = has_axis(mesh, roles, AxisRole::shard);
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.shard_dimension = ShardDimension::largest;
  options.runtime.gathers.grain = options.runtime.reductions.grain = Grain::tensor;
  read_kernels(strategy, options);
  options.notes.emplace_back(
      "what XLA makes of a step (fusions, collective matmuls, casts before gathers) is not "
      "modelled");
}

}  // namespace

Framework xla_framework() {
  return {"xla",
          "a JAX program's step under XLA: shards over the shard axis, splits over the model axis, "
          "tensor by tensor",
          {"kernels"},
          {{"parameters", "fp32"}, {"master", "none"}, {"gradients", "bf16"}, {"indices", "int32"}},
          begin_xla};
}

}  // namespace shardsim
