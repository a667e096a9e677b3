#include "strategies/runtime/make_calls.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "strategies/partition/parameter_values.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/gradient_reductions.hpp"
#include "strategies/runtime/host_shards.hpp"
#include "strategies/runtime/loss_chunks.hpp"
#include "strategies/runtime/optimizer_pass.hpp"
#include "strategies/runtime/parameter_gathers.hpp"
#include "strategies/runtime/scalar_sums.hpp"
#include "strategies/runtime/shared_gradients.hpp"

namespace shardsim {

namespace {

// The collectives that bring the gradient that comes in, which the first product reads, go before
// what is computed again.
void gather_before_repeating(const std::vector<Value>& values, BlockPass& pass) {
  std::set<ValueId> repeated;
  const auto is_repeated = [&](ValueId value) {
    while (value != no_value && !repeated.contains(value)) value = values[at(value)].storage;
    return value != no_value;
  };
  const auto reads_repeated = [&](const Item& item) {
    return std::any_of(item.operands.begin(), item.operands.end(), is_repeated);
  };
  auto begin = pass.body.begin();
  for (; begin != pass.body.end(); ++begin) {
    const bool brings = begin->kind == TaskKind::collective && reads_repeated(*begin);
    if (!begin->recompute && !brings) break;
    repeated.insert(begin->results.begin(), begin->results.end());
  }
  const auto end = std::find_if(begin, pass.body.end(), [&](const Item& item) {
    return item.kind != TaskKind::collective || reads_repeated(item);
  });
  std::rotate(pass.body.begin(), begin, end);
}

// What attention reads of other devices' parts of the sequence is gathered with what is computed
// again, behind the last of it that attention reads, not when attention's gradient is made (the
// whole region runs when the first of it is read: torch.utils.checkpoint).
void gather_with_repeated(const std::vector<Value>& values, BlockPass& pass) {
  std::vector<Item>& body = pass.body;
  const auto made_of = [&](ValueId value) {
    while (values[at(value)].storage != no_value) value = values[at(value)].storage;
    return value;
  };
  for (std::size_t a = 0; a < body.size(); ++a) {
    if (body[a].recompute || !body[a].kernel.op.starts_with("attention")) continue;
    std::set<ValueId> read;
    for (const ValueId operand : body[a].operands) read.insert(made_of(operand));
    std::vector<std::size_t> gathers;
    for (std::size_t i = 0; i < a; ++i) {
      const bool gathers_it = body[i].kind == TaskKind::collective && !body[i].recompute &&
                              body[i].collective.kind == CollectiveKind::all_gather &&
                              read.contains(made_of(body[i].results.front()));
      if (!gathers_it) continue;
      gathers.push_back(i);
      for (const ValueId operand : body[i].operands) read.insert(made_of(operand));
    }
    std::size_t behind = 0;  // items, the last of which is repeated for attention
    for (std::size_t i = 0; i < a; ++i) {
      const std::vector<ValueId>& made = body[i].results;
      const bool is_read =
          body[i].recompute && std::any_of(made.begin(), made.end(), [&](ValueId value) {
            return read.contains(made_of(value));
          });
      if (is_read) behind = i + 1;
    }
    for (std::size_t k = 0; k < gathers.size() && behind > 0; ++k) {
      const auto from = body.begin() + static_cast<std::ptrdiff_t>(gathers[k]);
      const auto to = body.begin() + static_cast<std::ptrdiff_t>(behind + k);
      if (from < to) continue;
      from->recompute = true;
      std::rotate(to, from, from + 1);
      for (Write& write : pass.writes) {
        if (write.after > behind + k && write.after <= gathers[k]) ++write.after;
      }
    }
  }
}

// "vision_tower.layers.3." of "vision_tower.layers.3.fc1.weight": what may be a layer that is in no
// block; of "mlp.0.weight" nothing.
std::string numbered_module(const std::string& name) {
  for (std::size_t i = name.find('.'); i != std::string::npos; i = name.find('.', i + 1)) {
    const std::size_t end = name.find_first_not_of("0123456789", i + 1);
    const bool is_number = end != std::string::npos && end > i + 1 && name[end] == '.';
    if (is_number && name.find('.', end + 1) != std::string::npos) return name.substr(0, end + 1);
  }
  return "";
}

// A unit is gathered whole, with what nobody reads: poolers, what is before and behind the layers
// of a tower that gets no images. These layers are units of their own, which do not run (PyTorch,
// _fsdp_param_group.py and FlatParameter).
void gather_unread(SpmdBuilder& builder, const Layout& layout) {
  const std::vector<bool> read = read_by_ops(builder.workload());
  std::set<std::string> running = {""};
  for (const ParameterLayout& one : layout.parameters) {
    if (read[at(one.tensor)]) running.insert(numbered_module(builder.tensor(one.tensor).name));
  }
  for (const ParameterLayout& one : layout.parameters) {
    const bool runs = running.contains(numbered_module(builder.tensor(one.tensor).name));
    if (read[at(one.tensor)] || !runs || one.stored == one.compute) continue;
    builder.step.parameters.at(one.tensor).computed =
        builder.add_value(one.tensor, one.compute, builder.tensor(one.tensor).dtype,
                          BufferCategory::gathered_parameters);
  }
}

}  // namespace

bool clips(const Runtime& runtime, const Step& step) {
  return runtime.clips || step.gradient_clipping;
}

SpmdStep make_calls(SpmdStep partitioned, const Workload& workload, const Mesh& mesh,
                    const Layout& layout, const Units& units, const std::string& stages_axis,
                    const Runtime& runtime, const Step& step) {
  SpmdBuilder builder(workload, mesh, std::move(partitioned));
  std::vector<BlockProgram>& blocks = builder.step.blocks;
  const std::size_t count = blocks.size();
  const bool trains = has_backward(workload);
  const bool on_host = runtime.parameters_on_host && !runtime.flat_parameters;
  if (on_host) keep_parameters_on_host(builder);
  if (runtime.gathers.grain == Grain::unit && !runtime.flat_parameters) {
    gather_unread(builder, layout);
  }
  std::optional<ChunkedLoss> chunked;
  if (trains && runtime.loss_chunks > 1) {
    const DType reduced = step.optimizer.reduce.value_or(step.optimizer.gradients);
    chunked = chunk_loss(builder, runtime.loss_chunks, reduced);
  }
  ParameterGathers parameters(builder, units, runtime.gathers, chunked);
  for (std::size_t b = 0; b < count; ++b) {
    parameters.gather(b, Phase::forward, blocks[b].forward);
    parameters.find_inner(b, blocks[b].forward);
    parameters.keep_slices(b, blocks[b].forward);
  }
  GradientReductions gradients(builder, units, layout, runtime.reductions, step, on_host);
  if (chunked) gradients.reduce_chunked(*chunked, blocks[chunked->block].forward);
  for (std::size_t b = count; trains && b-- > 0;) {
    parameters.gather(b, Phase::backward, blocks[b].backward);
    if (runtime.repeats != RepeatForward::first) {
      const bool gathers = layout.context.keeps_gathered && !layout.sequence_axes.empty();
      if (gathers) gather_with_repeated(builder.step.values, blocks[b].backward);
      gather_before_repeating(builder.step.values, blocks[b].backward);
    }
    parameters.find_inner(b, blocks[b].backward);
    gradients.reduce(b, blocks[b].backward);
  }
  AxisList data_axes = layout.ends_axes;
  data_axes.insert(data_axes.end(), layout.data_axes.begin(), layout.data_axes.end());
  add_scalar_sums(builder, data_axes, runtime, step,
                  !trains              ? blocks.back().forward
                  : units.has_stages() ? blocks.back().backward
                                       : blocks.front().backward);
  const SharedGradients shared(workload, mesh, stages_axis);
  OptimizerPass update(builder, units, layout, gradients, shared, step.optimizer.donate, runtime,
                       clips(runtime, step));
  for (std::size_t b = 0; b < count; ++b) update.add(b);
  return std::move(builder.step);
}

}  // namespace shardsim
