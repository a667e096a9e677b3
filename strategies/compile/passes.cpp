#include "strategies/compile/passes.hpp"

#include <string>
#include <utility>

#include "base/index.hpp"
#include "base/json.hpp"
#include "plan/plan_io.hpp"
#include "strategies/compile/cached_products.hpp"
#include "strategies/compile/describe.hpp"
#include "strategies/compile/emit.hpp"
#include "strategies/compile/kernel_lists.hpp"
#include "strategies/compile/kernel_memory.hpp"
#include "strategies/compile/stations.hpp"
#include "strategies/compile/weighed_rows.hpp"
#include "strategies/compile/word_reasons.hpp"
#include "strategies/frameworks/framework.hpp"
#include "strategies/layout/expert_layout.hpp"
#include "strategies/layout/propagate.hpp"
#include "strategies/partition/held_rows.hpp"
#include "strategies/partition/partition.hpp"
#include "strategies/partition/rows_in_scope.hpp"
#include "strategies/partition/shared_beside.hpp"
#include "strategies/partition/sums_of_views.hpp"
#include "strategies/runtime/exchange_overlap.hpp"
#include "strategies/runtime/head_gradient.hpp"
#include "strategies/runtime/joint_products.hpp"
#include "strategies/runtime/loss_chunks.hpp"
#include "strategies/runtime/make_calls.hpp"
#include "strategies/runtime/overlapped_products.hpp"
#include "strategies/schedule/accumulation.hpp"

namespace shardsim {
namespace {

void assign(Compilation& c) {
  c.layout = assign(c.workload, c.mesh, c.strategy, c.step.optimizer.parameters);
  // One layer may be a mixture's dense one.
  if (c.layout.experts && c.step.kind != StepKind::layer) {
    check_has_experts(c.workload, *c.layout.experts, c.strategy.place);
  }
  const Framework* framework = find_framework(c.strategy.name);
  if (framework != nullptr && framework->check != nullptr) {
    framework->check(c.workload, c.step, c.mesh, c.strategy, c.layout);
  }
  c.stages = c.strategy.pipeline   ? stage_ranges(c.workload, *c.strategy.pipeline)
             : c.strategy.shifting ? shifting_ranges(c.workload, *c.strategy.shifting)
                                   : one_stage(c.workload);
}

void propagate(Compilation& c) { c.shardings = propagate(c.workload, c.layout); }

// Does PyTorch's autograd hand over gradients, of linear layers that are PyTorch's own?
bool sums_by_autograd(const Runtime& runtime) {
  if (runtime.flat_parameters && runtime.flat_parameters->linear_functions) return false;
  const auto& buffer = runtime.reductions.buffer;
  return runtime.reductions.copies != GradientCopies::none ||
         (buffer && buffer->order == BufferOrder::made);
}

void partition(Compilation& c) {
  c.sums.emplace(c.workload, c.shardings, c.layout);
  c.spmd = partition(c.workload, c.mesh, c.layout, c.shardings, *c.sums);
  order_beside(c.workload, c.layout, c.spmd);
  if (sums_by_autograd(c.strategy.runtime)) add_beside_views(c.workload, c.spmd);
  const bool holds_rows = c.layout.experts && c.layout.experts->holds_rows;
  if (holds_rows && has_backward(c.workload)) hold_rows_in_scope(c.spmd);
  if (!c.strategy.runtime.flat_parameters) return;
  if (c.layout.experts && !c.layout.experts->parallel.empty()) {
    throw InputError(
        c.strategy.place,
        "experts over devices beside \"flat_parameters\" (ZeRO 3) are not supported by "
        "this version");
  }
  for (const auto& [tensor, values] : c.spmd.parameters) {
    if (values.computed == values.stored && values.looked_up == values.stored) continue;
    throw InputError(c.strategy.place,
                     "\"flat_parameters\" are read as they are stored, and \"" +
                         c.workload.tensors[at(tensor)].name +
                         "\" is not, in its type or in shards of rules: \"precision\": "
                         "{\"parameters\": ...} in the compute type");
  }
}

// Transformer Engine has one kernel for several tensors under delayed scaling alone (cast.cpp,
// multi_tensor_quantize_impl, of 2.0 to 2.10); under "tensorwise" each has one that clears the
// largest number, one that finds it, one that makes the scale, and one that casts (quantizer.cpp,
// Float8CurrentScalingQuantizer::quantize_impl). Where scaling is not said it is taken as delayed.
std::int32_t casts_of_expert(const NarrowProducts& products) {
  if (products.scaling == "tensorwise") return 4;
  const bool is_delayed = products.scaling.empty() || products.scaling == "delayed";
  return products.format == ProductFormat::fp8 && is_delayed ? 0 : 1;
}

void list_kernels(Compilation& c) {
  bool spreads_loss = c.strategy.runtime.reductions.model_sums == ModelSums::apart;
  const bool keeps_calls = !c.strategy.runtime.repeats_calls;
  if (keeps_calls) keep_calls(c.workload, c.step.rematerialization, c.spmd);
  if (c.strategy.kernels.is_null()) {
    c.spmd = with_padded_products(std::move(c.spmd));
  } else {
    KernelChoice choice = kernel_choice(*c.strategy.kernels);
    choice.experts_in_turn = choice.stack == "transformer-engine" && has_gradients(c.step);
    choice.scales_tensors = c.step.precision.products.scaling == "tensorwise";
    if (choice.experts_in_turn) choice.casts_of_expert = casts_of_expert(c.step.precision.products);
    spreads_loss &= !choice.loss_in_place && !choice.compiled_loss;
    c.spmd = list_kernels(std::move(c.spmd), choice);
    if (choice.stack == "eager") {
      hold_cached_products(c.workload, c.step.rematerialization, keeps_calls, c.spmd);
    }
  }
  if (spreads_loss) spread_split_loss(c.spmd);
  if (c.strategy.runtime.whole_table_gradients) make_whole_tables(c.spmd);
  const bool op_by_op =
      c.strategy.kernels.is_null() || kernel_choice(*c.strategy.kernels).stack == "eager";
  if (c.strategy.runtime.wide_rows && op_by_op) {
    weigh_rows_in_fp32(c.workload, c.spmd,
                       c.step.rematerialization.policy == Rematerialization::Policy::of_jax);
  }
  if (c.strategy.runtime.returns_outputs && c.strategy.pipeline) keep_outputs(c.spmd);
  hold_rows(c.workload, c.spmd);
}

void make_calls(Compilation& c) {
  const Runtime& runtime = c.strategy.runtime;
  check_loss_chunks(c.workload, c.layout, c.strategy);
  check_exchange_overlap(c.strategy, c.step);
  const bool deals_experts = c.layout.experts && !c.layout.experts->parallel.empty();
  const Units units(c.workload, c.stages, runtime.units, runtime.experts_apart, deals_experts);
  const std::string axis = c.strategy.pipeline ? c.strategy.pipeline->axis : "";
  c.spmd =
      make_calls(std::move(c.spmd), c.workload, c.mesh, c.layout, units, axis, runtime, c.step);
}

void combine_products(Compilation& c) {
  check_head_gradient(c.strategy, c.workload, c.spmd);
  if (!c.strategy.kernels.is_null()) {
    const KernelChoice choice = kernel_choice(*c.strategy.kernels);
    const bool copies = choice.stack == "transformer-engine";
    if (choice.joint_projections) join_products(c.spmd, c.workload, copies);
  }
  if (c.strategy.model_axis.empty()) return;
  const AxisRef axis = c.mesh.whole(*c.mesh.find(c.strategy.model_axis));
  overlap_products(c.spmd, axis, c.strategy.runtime.product_overlap);
}

void word_reasons(Compilation& c) {
  c.spmd =
      word_reasons(std::move(c.spmd), c.workload, c.mesh, c.layout, *c.sums, c.strategy.runtime,
                   c.step, c.strategy.pipeline ? c.strategy.pipeline->axis : "");
}

void make_schedule(Compilation& c) {
  check_task_count(c.spmd, c.workload, c.step.microbatches, {c.strategy.place.file, "/workload"});
  const auto microbatches = static_cast<std::int32_t>(c.step.microbatches);
  const bool trains = has_backward(c.workload);
  const bool pairs = trains && c.strategy.runtime.exchange_overlap != ExchangeOverlap::none;
  if (c.strategy.pipeline) {
    Pipeline pipeline = *c.strategy.pipeline;
    pipeline.schedule.pairs = pairs;
    c.schedule = schedule_of(pipeline, microbatches);
  } else if (c.strategy.shifting) {
    c.schedule = shifting_schedule(pipeline_of(*c.strategy.shifting, microbatches), trains);
  } else {
    c.schedule = accumulation_schedule(microbatches, trains, pairs);
  }
  if (!trains) c.schedule = forward_alone(std::move(c.schedule));
}

void emit(Compilation& c) {
  const std::optional<Pipeline>& pipeline = c.strategy.pipeline;
  std::optional<ShiftingPipeline> shifting;
  if (c.strategy.shifting) shifting = pipeline_of(*c.strategy.shifting, c.step.microbatches);
  const EmitInput input{
      .step = c.spmd,
      .workload = c.workload,
      .mesh = c.mesh,
      .schedule = c.schedule,
      .stages = c.stages,
      .stages_axis = pipeline ? pipeline->axis : "",
      .receives = pipeline ? receives_of(*pipeline) : Receives::with_sends,
      .sends = pipeline ? pipeline->sends.value_or(Sends::unawaited) : Sends::unawaited,
      .runtime = c.strategy.runtime,
      .data_axes = c.layout.data_axes,
      .gradient_dtype = c.step.optimizer.gradients,
      .optimizer = c.step.optimizer.kind,
      .clips = clips(c.strategy.runtime, c.step),
      .shard_axes = c.strategy.shards_over_context ? shard_axes(c.strategy, c.mesh) : AxisList{},
      .widens_gradients = c.strategy.runtime.widens_gradients &&
                          c.step.optimizer.gradients != DType::f32 &&
                          c.step.optimizer.moments == DType::f32,
      .local_modules = c.strategy.split_latents,
      .updates_routing = c.strategy.experts && c.strategy.experts->moves_biases,
      .shifting = shifting,
      .shifts = shifting ? shifts_of(*c.strategy.shifting, c.step.microbatches, c.workload, c.mesh)
                         : Shifts{}};
  c.compiled.plan = emit(input);
}

void verify(Compilation& c) { verify(c.compiled.plan); }

Json plan_station(const Compilation& c) { return plan_to_json(c.compiled.plan); }

}  // namespace

const std::vector<Pass>& passes() {
  static const std::vector<Pass> table = {
      {"layout", "what lies where: parameters, inputs, chosen activations", assign, layout_station},
      {"propagate", "a sharding for every value", propagate, shardings_station},
      {"partition", "each op on its shard, and what is needed of parameters", partition,
       step_station},
      {"kernels", "what the stack launches for each op", list_kernels, step_station},
      {"runtime", "the needs as calls: gathers, reductions, updates", make_calls, step_station},
      {"products", "products that are one, and in pieces beside collectives", combine_products,
       step_station},
      {"reasons", "why each collective is there", word_reasons, step_station},
      {"schedule", "the order of the passes of microbatches", make_schedule, schedule_station},
      {"emit", "the plan: all unrolled, with dependencies and lifetimes", emit, plan_station},
      {"verify", "the plan, found to keep what plans promise", verify, plan_station},
      {"describe", "the plan with notes and padding", describe, plan_station},
  };
  return table;
}

}  // namespace shardsim
