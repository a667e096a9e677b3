#include "strategies/frameworks/xla.hpp"

namespace shardsim {
namespace {

void begin_xla(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
               Strategy& options) {
  options.shards_parameters = has_axis(mesh, roles, AxisRole::shard);
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.shard_dimension = ShardDimension::largest;
  // The residual stream lies split over the model axis between blocks (MaxText's activation_embed,
  // praxis' blnd, GSPMD's finalized two-dimensional recipe); of its two free dimensions over the
  // sequence here, which sends as many bytes.
  options.sequence_parallel = options.splits_model;
  options.runtime.product_overlap = ProductOverlap::windowed;
  options.runtime.gathers.grain = options.runtime.reductions.grain = Grain::tensor;
  read_kernels(strategy, options);
  options.notes.emplace_back(
      "what XLA makes of a step (fusions, casts before gathers) is not modelled");
  if (options.splits_model) {
    options.notes.emplace_back(
        "between blocks activations lie split over the model axis, as MaxText's and praxis' rules "
        "have it; \"sequence_parallel\": false says otherwise");
  }
}

}  // namespace

Framework xla_framework() {
  return {.name = "xla",
          .meaning =
              "a JAX program's step under XLA: shards over the shard axis, splits over the model "
              "axis, tensor by tensor",
          .keys = {"kernels"},
          .precision = {{"parameters", "fp32"},
                        {"master", "none"},
                        {"gradients", "bf16"},
                        {"indices", "int32"}},
          .begin = begin_xla};
}

}  // namespace shardsim
