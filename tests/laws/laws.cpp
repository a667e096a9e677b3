#include "laws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/index.hpp"
#include "reports/format/figures.hpp"
#include "reports/step/json_report.hpp"
#include "sim/step/lowering.hpp"

namespace shardsim::laws {
namespace {

double relative(double part, double whole) { return whole == 0 ? 0 : part / whole; }

std::optional<Violation> differs(const char* what, double one, double other) {
  if (one == other) return std::nullopt;
  return Violation{relative(std::abs(one - other), std::max(std::abs(one), std::abs(other))),
                   fmt::format("{} is {} and {}", what, one, other)};
}

std::optional<Violation> not_smaller(Bytes small, Bytes large) {
  if (small <= large) return std::nullopt;
  const auto before = static_cast<double>(small.count());
  return Violation{relative(before - static_cast<double>(large.count()), before),
                   fmt::format("the peak falls from {} to {} B", small.count(), large.count())};
}

// More of the model or its input.
std::optional<Violation> grows(const Trial& less, const Trial& more) {
  const Timed small = timed(predict_trial(less));
  const Timed large = timed(predict_trial(more));
  if (auto broken = not_smaller(small.peak(), large.peak())) return broken;
  return not_faster(small, large);
}

std::optional<Violation> batch(const Trial& trial) {
  Trial more = trial;
  more.batch_per_replica *= 2;
  return grows(trial, more);
}

std::optional<Violation> sequence(const Trial& trial) {
  if (!trial.has_sequence()) return std::nullopt;
  Trial more = trial;
  more.sequence *= 2;
  return grows(trial, more);
}

std::optional<Violation> layers(const Trial& trial) {
  Trial more = trial;
  ++more.layers;
  return grows(trial, more);
}

std::int64_t wire_bytes(const Prediction& prediction) {
  return wire_bytes_per_device(prediction.step.plan).count();
}

// Of a figure of two, three and four more layers.
double bend(double one, double two, double three) { return three - 2 * two + one; }

// What a microbatch leaves behind is added to one sum. The second's may still be there while the
// third computes; from then on none adds to the peak but by its inputs.
std::optional<Violation> microbatches(const Trial& trial) {
  const auto peak_with = [&](std::int64_t count) {
    Trial several = trial;
    several.microbatches = count;
    const Prediction prediction = predict_trial(several);
    const ProgramResult& program = prediction.result.programs[0];
    return program.peak -
           program.peak_by_category[static_cast<std::size_t>(BufferCategory::inputs)];
  };
  const Bytes three = peak_with(3);
  const Bytes six = peak_with(6);
  return differs("the peak of three and of six microbatches", static_cast<double>(three.count()),
                 static_cast<double>(six.count()));
}

// Each further layer adds the same kernels and the same collectives. Kernels of other streams count
// where nothing runs on the compute stream, which depends on when.
std::optional<Violation> affine_in_layers(const Trial& trial) {
  std::vector<Timed> steps;
  for (const std::int64_t more : {0, 1, 2}) {
    Trial deeper = trial;
    deeper.layers += more;
    steps.push_back(timed(predict_trial(deeper)));
  }
  const auto compute = [&](std::size_t i) {
    return static_cast<double>(steps[i].prediction.result.programs[0].compute_time.count());
  };
  const auto others = [&](std::size_t i) {
    return static_cast<double>(steps[i].other_kernels.count());
  };
  const double off = bend(compute(0), compute(1), compute(2));
  if (std::abs(off) > others(0) + 2 * others(1) + others(2)) {
    return Violation{
        std::abs(off) / compute(2),
        fmt::format("compute of layers is {}, {} and {} ps", compute(0), compute(1), compute(2))};
  }
  const auto kernels = [&](std::size_t i) {
    return static_cast<double>(steps[i].compute_kernels.count());
  };
  if (auto broken = differs("what a layer adds to kernels", kernels(1) - kernels(0),
                            kernels(2) - kernels(1))) {
    return broken;
  }
  const auto wire = [&](std::size_t i) {
    return static_cast<double>(wire_bytes(steps[i].prediction));
  };
  return differs("what a layer adds to wire bytes", wire(1) - wire(0), wire(2) - wire(1));
}

Axis* replica_axis(Trial& trial) {
  const auto found = std::find_if(trial.mesh.begin(), trial.mesh.end(), [](const Axis& axis) {
    return axis.name == "data" || axis.name == "dp";
  });
  return found == trial.mesh.end() ? nullptr : &*found;
}

// More replicas with as much for each compute the same. (Where replicas share the optimizer's state
// each updates less.)
std::optional<Violation> replicas(const Trial& trial) {
  Trial more = trial;
  Axis* axis = replica_axis(more);
  if (axis == nullptr || trial.strategy.value("zero_stage", 0) > 0) return std::nullopt;
  axis->size *= 2;
  if (!can_have(trial.machine, more.replicas() * more.model_parallel())) return std::nullopt;
  const Timed few = timed(predict_trial(trial));
  const Timed many = timed(predict_trial(more));
  const auto of = [](const Timed& step) {
    return static_cast<double>(step.prediction.result.programs[0].compute_time.count());
  };
  const auto slack = static_cast<double>(std::max(few.other_kernels, many.other_kernels).count());
  if (std::abs(of(few) - of(many)) <= slack) return std::nullopt;
  return Violation{relative(std::abs(of(few) - of(many)), of(few)),
                   fmt::format("{} replicas compute {} ps, twice as many {}", trial.replicas(),
                               of(few), of(many))};
}

// What a report says of a step, without the names of axes.
Json without_axes(const Prediction& prediction) {
  Json json = result_to_json(figures_of(prediction));
  for (Json& row : json["communication"]) row.erase("axes");
  for (Json& row : json["communication"]) row.erase("what");
  for (const char* key : {"experiment", "warnings", "notes", "padding"}) json.erase(key);
  return json;
}

std::optional<Violation> same_answer(const Json& one, const Json& other) {
  if (one == other) return std::nullopt;
  return Violation{1, Json::diff(one, other).dump()};
}

std::optional<Violation> names_of_axes(const Trial& trial) {
  const std::vector<std::pair<std::string, std::string>> other_names = {
      {"data", "dp"}, {"dp", "data"}, {"model", "tp"}, {"tp", "model"}};
  Trial renamed = trial;
  for (Axis& axis : renamed.mesh) {
    const auto found = std::find_if(other_names.begin(), other_names.end(),
                                    [&](const auto& pair) { return pair.first == axis.name; });
    if (found != other_names.end()) axis.name = found->second;
  }
  return same_answer(without_axes(predict_trial(trial)), without_axes(predict_trial(renamed)));
}

std::optional<Violation> axes_of_one(const Trial& trial) {
  const Json before = without_axes(predict_trial(trial));
  for (const bool in_front : {true, false}) {
    Trial longer = trial;
    const Axis one{replica_axis(longer) == nullptr ? "data" : "fsdp", 1};
    const bool is_there = std::any_of(trial.mesh.begin(), trial.mesh.end(),
                                      [&](const Axis& axis) { return axis.name == one.name; });
    if (is_there) return std::nullopt;
    longer.mesh.insert(in_front ? longer.mesh.begin() : longer.mesh.end(), one);
    if (auto broken = same_answer(before, without_axes(predict_trial(longer)))) return broken;
  }
  return std::nullopt;
}

std::optional<Violation> reading_back(const Trial& trial) {
  const Json said = result_to_json(figures_of(predict_trial(trial)));
  const Experiment again = read_experiments(said["experiment"], "trial.json").front();
  return same_answer(said, result_to_json(figures_of(predict_by_formulas(again))));
}

// The ring's bytes once more (plan.hpp): of n devices each sends (n - 1) / n of the payload, twice
// for an all-reduce; a permute all of it.
double ring_bytes(const Collective& collective, std::int64_t group) {
  const auto payload = static_cast<double>(collective.payload.count());
  const auto n = static_cast<double>(group);
  const double part = payload * (n - 1) / n;
  if (collective.kind == CollectiveKind::all_reduce) return 2 * part;
  return collective.kind == CollectiveKind::collective_permute ? payload : part;
}

std::optional<Violation> wire_bytes_are_those_of_rings(const Prediction& prediction) {
  const Plan& plan = prediction.step.plan;
  const std::vector<std::int64_t> times = executions(plan);
  double expected = 0;
  double calls = 0;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const double one = ring_bytes(plan.collectives[i], group_size(plan, plan.collectives[i]));
    expected += one * static_cast<double>(times[i]);
    calls += static_cast<double>(times[i]);
  }
  double said = 0;
  for (const CommunicationRow& row : prediction.result.communication) {
    said += static_cast<double>(row.wire_bytes_per_device.count());
  }
  if (std::abs(said - expected) <= calls) return std::nullopt;  // each is a whole number of bytes
  return differs("the sum of wire bytes", said, expected);
}

std::optional<Violation> sums(const Trial& trial) {
  const Timed step = timed(predict_trial(trial));
  const ProgramResult& program = step.prediction.result.programs[0];
  Bytes categories{0};
  for (const Bytes bytes : program.peak_by_category) categories += bytes;
  Bytes buffers{0};
  for (const PeakBuffer& buffer : program.peak_buffers) buffers += buffer.bytes;
  const auto bytes = [](Bytes of) { return static_cast<double>(of.count()); };
  if (auto broken = differs("the peak by category", bytes(categories), bytes(program.peak))) {
    return broken;
  }
  if (auto broken = differs("the peak by buffer", bytes(buffers), bytes(program.peak))) {
    return broken;
  }
  const SimTime parts =
      program.compute_time + program.contention_time + program.exposed_time + program.idle_time;
  const auto ps = [](SimTime of) { return static_cast<double>(of.count()); };
  if (auto broken = differs("the step by part", ps(parts), ps(step.step()))) return broken;
  const SimTime causes = std::accumulate(program.parts.begin(), program.parts.end(), SimTime(0));
  if (auto broken = differs("the step by cause", ps(causes), ps(step.step()))) return broken;
  SimTime exposed{0};
  for (const CommunicationRow& row : step.prediction.result.communication) exposed += row.exposed;
  if (auto broken = differs("exposed communication", ps(exposed), ps(program.exposed_time))) {
    return broken;
  }
  if (step.step() < step.alone)
    return not_shorter("sharing makes the step", step.alone, step.step());
  return wire_bytes_are_those_of_rings(step.prediction);
}

// The forward pass alone takes less than the step that it is a part of, and nothing beyond what the
// parameters need.
std::optional<Violation> forward_alone(const Trial& trial) {
  Trial part = trial;
  Trial whole = trial;
  part.step = "forward";
  whole.step = "train";
  const Timed forward = timed(predict_trial(part));
  const Timed train = timed(predict_trial(whole));
  const ProgramResult& program = forward.prediction.result.programs[0];
  for (const BufferCategory category :
       {BufferCategory::gradients, BufferCategory::optimizer, BufferCategory::activations}) {
    const Bytes held = program.peak_by_category[static_cast<std::size_t>(category)];
    if (auto broken = differs("what only training holds", static_cast<double>(held.count()), 0)) {
      return broken;
    }
  }
  if (auto broken = not_smaller(forward.peak(), train.peak())) return broken;
  return not_faster(forward, train);
}

std::optional<Violation> one_device(const Trial& trial) {
  Trial alone = trial;
  for (Axis& axis : alone.mesh) axis.size = 1;
  Json& reshard = alone.strategy["reshard_after_forward"];
  if (reshard.is_number()) reshard = true;  // one device has no pairs
  if (!can_have(alone.machine, 1)) alone.machine = "tpu-v5e";
  const Result result = predict_trial(alone).result;
  if (result.communication.empty() && result.programs[0].exposed_time == SimTime(0)) {
    return std::nullopt;
  }
  return Violation{1, "one device communicates"};
}

}  // namespace

Timed timed(Prediction prediction) {
  const Plan& plan = prediction.step.plan;
  const SimulationOptions options = simulation_options(prediction.experiment, {});
  const Placement placement(plan.mesh, prediction.machine, options.collectives, options.order);
  const Lowered lowered = lower(plan, placement, options.costs);
  const TaskGraph& graph = lowered.graph;
  Timed result;
  for (const CostBreakdown& cost : lowered.collectives) {
    result.algorithms.push_back(cost.algorithm + " " + cost.protocol);
  }
  const Program& program = plan.programs.at(0);
  std::vector<SimTime> ends;
  std::vector<SimTime> stream_ends(program.streams.size(), SimTime(0));
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    const Task& task = program.tasks[i];
    const Work& work = graph.works[at(graph.tasks[i].work)];
    SimTime start = stream_ends[task.stream];
    for (const TaskId before : program.after(task)) start = std::max(start, ends[at(before)]);
    const SimTime takes = work.fixed + work.shared;
    ends.push_back(start + takes);
    stream_ends[task.stream] = ends.back();
    result.alone = std::max(result.alone, ends.back());
    if (task.kind != TaskKind::kernel) continue;
    (task.stream == 0 ? result.compute_kernels : result.other_kernels) += takes;
  }
  result.prediction = std::move(prediction);
  return result;
}

std::optional<Violation> not_shorter(const char* what, SimTime shorter, SimTime longer) {
  if (shorter <= longer) return std::nullopt;
  const auto before = static_cast<double>(shorter.count());
  return Violation{relative(before - static_cast<double>(longer.count()), before),
                   fmt::format("{} {} ps, not {} at most", what, shorter.count(), longer.count())};
}

std::optional<Violation> not_faster(const Timed& quick, const Timed& slow) {
  if (auto broken = not_shorter("alone the quicker step takes", quick.alone, slow.alone)) {
    return broken;
  }
  const SimTime sharing = quick.step() - quick.alone;
  return not_shorter("the quicker step takes", quick.step(), slow.step() + sharing);
}

std::vector<Law> layout_laws() {
  return {{"a batch twice as large", batch},
          {"a sequence twice as long", sequence},
          {"one more layer", layers},
          {"further microbatches", microbatches},
          {"affine in layers", affine_in_layers},
          {"compute of a replica", replicas},
          {"other names of axes", names_of_axes},
          {"axes of size one", axes_of_one},
          {"the experiment read back", reading_back},
          {"sums", sums},
          {"the forward pass alone", forward_alone},
          {"one device sends nothing", one_device}};
}

}  // namespace shardsim::laws
