#include "stablehlo/flops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_set>

#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/flops_algorithms.hpp"
#include "stablehlo/loops.hpp"
#include "stablehlo/op_rules.hpp"
#include "stablehlo/window.hpp"

namespace shardsim::stablehlo {
namespace {

double dot_flops(const OpView& op) {
  return 2 * elements(op.result(0)) * static_cast<double>(dot_sizes(op).k);
}

// Pairs of output position and window position that meet an element of the input. For each window
// position all output positions are tried: O(kernel * output), which is refused above 2^28.
double meeting_pairs(const OpView& op, const WindowDim& window, std::int64_t input,
                     std::int64_t output) {
  constexpr std::int64_t most_steps = std::int64_t{1} << 28;
  constexpr std::int64_t most_elements = std::int64_t{1} << 30;  // products stay within 64 bits
  const std::int64_t kernel = window.size;
  if (input > most_elements || (kernel > 0 && output > most_steps / kernel)) {
    op.fail("convolution too large to count");
  }
  double pairs = 0;
  const std::int64_t reach = (input - 1) * window.base_dilation;
  for (std::int64_t k = 0; input > 0 && k < kernel; ++k) {
    for (std::int64_t o = 0; o < output; ++o) {
      const std::int64_t at = o * window.stride - window.low + k * window.window_dilation;
      if (at >= 0 && at <= reach && at % window.base_dilation == 0) ++pairs;
    }
  }
  return pairs;
}

double convolution_flops(const OpView& op) {
  const ConvolutionDimensions numbers = convolution_dimensions(op);
  const Window window = convolution_window(op, numbers);
  double count = static_cast<double>(op.size(op.result(0), numbers.output_batch)) *
                 static_cast<double>(op.size(op.result(0), numbers.output_feature)) *
                 static_cast<double>(op.size(op.operand(1), numbers.kernel_input));
  for (std::size_t i = 0; i < window.size(); ++i) {
    count *= meeting_pairs(op, window[i], op.size(op.operand(0), numbers.input_spatial[i]),
                           op.size(op.result(0), numbers.output_spatial[i]));
  }
  return 2 * count;
}

// Drawing a random number counts as one transcendental function, as in XLA.
bool is_transcendental(std::string_view op_name) {
  static const std::unordered_set<std::string_view> names{"acos",
                                                          "acosh",
                                                          "asin",
                                                          "asinh",
                                                          "atan",
                                                          "atanh",
                                                          "atan2",
                                                          "bessel_i1e",
                                                          "cbrt",
                                                          "cosh",
                                                          "cosine",
                                                          "digamma",
                                                          "erf",
                                                          "erf_inv",
                                                          "erfc",
                                                          "exponential",
                                                          "exponential_minus_one",
                                                          "lgamma",
                                                          "log",
                                                          "log_plus_one",
                                                          "logistic",
                                                          "polygamma",
                                                          "power",
                                                          "rng",
                                                          "rng_bit_generator",
                                                          "rsqrt",
                                                          "sine",
                                                          "sinh",
                                                          "sqrt",
                                                          "tan",
                                                          "tanh",
                                                          "zeta"};
  return names.count(op_name.substr(op_name.find('.') + 1)) != 0;
}

// Elementwise for sharding is also what only sends or copies its elements.
bool costs_per_element(std::string_view op_name) {
  const std::string_view name = op_name.substr(op_name.find('.') + 1);
  if (name == "clamp") return true;
  return is_elementwise(op_name) && name != "copy" && name != "cross-replica-sum" &&
         !name.starts_with("collective_");
}

// One application of a reducer or comparator: its ops, on scalars. The short form names one.
Work work_of_reducer(const OpView& op, std::size_t index = 0) {
  Work work;
  if (op.attribute({"applies"}) != nullptr) work.elementwise = Flops{1};
  if (index >= op.op().regions.size()) return work;
  const RegionId region = op.op().regions[index];
  for (const OpId id : op.function().regions[at(region)].ops) {
    work += work_of(op.module(), op.function(), op.function().op(id));
  }
  return work;
}

double window_positions(const OpView& op) {
  double window = 1;
  for (const std::int64_t size : op.integers({"window_dimensions"})) {
    window *= static_cast<double>(size);
  }
  return window;
}

// For each element of the source the best of its window is sought, and the element added there.
Work work_of_select_and_scatter(const OpView& op) {
  const double sources = elements(op.operand(1));
  Work work = work_of_reducer(op, 0) * (sources * (window_positions(op) - 1));
  work += work_of_reducer(op, 1) * sources;
  return work;
}

// How often the reducer of an op is applied; 0 for ops without one.
double applications(const OpView& op) {
  const std::string& name = op.op().name;
  if (op.op().operands.empty()) return 0;
  if (name == "stablehlo.reduce") return elements(op.operand(0)) - elements(op.result(0));
  if (name == "stablehlo.scatter") return elements(op.operand(op.op().operands.size() - 1));
  if (name == "stablehlo.all_reduce" || name == "stablehlo.reduce_scatter") {
    return elements(op.result(0));
  }
  if (name == "stablehlo.reduce_window") {
    return elements(op.result(0)) * (window_positions(op) - 1);
  }
  return comparisons(op);
}

}  // namespace

double manual_devices(const Module& module, const Op& op) {
  const Attribute* manual = find(op.attributes, "manual_axes");
  if (manual == nullptr) return 1;
  const ProgramMesh* mesh = nullptr;
  for (const char* name : {"in_shardings", "out_shardings"}) {
    const Attribute* shardings = find(op.attributes, name);
    if (mesh != nullptr || shardings == nullptr || shardings->items.empty()) continue;
    Scanner body(shardings->items.front().text, module.file, op.line);
    mesh = module.find_mesh(parse_axis_sharding(body).mesh);
  }
  double devices = 1;
  for (const NamedAttribute& axis : manual->entries) {
    if (mesh == nullptr) break;
    for (const ProgramAxis& known : mesh->axes) {
      if (known.name == axis.name) devices *= static_cast<double>(known.size);
    }
  }
  return devices;
}

namespace {

class WorkCounter {
 public:
  explicit WorkCounter(const Module& module) : module_(module) {}

  Work of_function(const Function& function) {
    if (const auto known = done_.find(function.name); known != done_.end()) return known->second;
    if (!running_.insert(function.name).second) {
      throw InputError({module_.file, fmt::format("line {}", function.line)},
                       fmt::format("function @{} calls itself", function.name));
    }
    const Work work = of_region(function, function.body());
    running_.erase(function.name);
    done_.emplace(function.name, work);
    return work;
  }

  int unknown_loops = 0;
  std::map<std::string, int> unknown_calls;

 private:
  // Regions and calls nest: a chain of either is followed so far as the stack surely bears it.
  Work of_region(const Function& function, const Region& region) {
    constexpr int deepest_calls = 1000;
    if (++depth_ > deepest_calls) {
      throw InputError({module_.file, fmt::format("line {}", function.line)},
                       "calls nested too deeply");
    }
    Work work;
    for (const OpId id : region.ops) work += of_op(function, function.op(id));
    --depth_;
    return work;
  }

  Work of_region(const Function& function, RegionId region) {
    return of_region(function, function.regions[at(region)]);
  }

  Work of_op(const Function& function, const Op& op) {
    if (op.name == "func.call") {
      return of_function(*module_.find_function(find(op.attributes, "callee")->text));
    }
    if (op.name == "stablehlo.while" && op.regions.size() == 2) {
      Work round = of_region(function, op.regions[0]);
      round += of_region(function, op.regions[1]);
      const std::optional<std::int64_t> count = trip_count(function, op);
      if (!count) ++unknown_loops;
      return round * static_cast<double>(count.value_or(1));
    }
    if (op.name == "stablehlo.case" || op.name == "stablehlo.if") {
      Work dearest;
      for (const RegionId region : op.regions) {
        const Work work = of_region(function, region);
        const auto sum = [](const Work& w) { return w.matmul + w.elementwise + w.transcendental; };
        if (sum(work) > sum(dearest)) dearest = work;
      }
      return dearest;
    }
    if (op.name == "sdy.manual_computation" || op.name == "sdy.named_computation") {
      Work work;
      for (const RegionId region : op.regions) work += of_region(function, region);
      return work * manual_devices(module_, op);
    }
    if (op.name == "stablehlo.custom_call" && !factor_rule(module_, function, op).rule) {
      const Attribute* target = find(op.attributes, "callee");
      ++unknown_calls[target == nullptr ? op.name : target->text];
    }
    return work_of(module_, function, op);
  }

  const Module& module_;
  std::map<std::string, Work> done_;
  std::unordered_set<std::string> running_;
  int depth_ = 0;
};

}  // namespace

Work& Work::operator+=(const Work& other) {
  matmul += other.matmul;
  elementwise += other.elementwise;
  transcendental += other.transcendental;
  return *this;
}

Work operator*(const Work& work, double times) {
  return {work.matmul * times, work.elementwise * times, work.transcendental * times};
}

Work work_of(const Module& module, const Function& function, const Op& op) {
  const OpView view(module, function, op);
  Work work;
  if (op.name == "stablehlo.dot_general" || op.name == "stablehlo.dot") {
    work.matmul = Flops{dot_flops(view)};
    return work;
  }
  if (op.name == "stablehlo.convolution") {
    work.matmul = Flops{convolution_flops(view)};
    return work;
  }
  if (const double times = applications(view); times > 0) return work_of_reducer(view) * times;
  if (op.name == "stablehlo.select_and_scatter") return work_of_select_and_scatter(view);
  if (const double flops = algorithm_flops(view); flops > 0) {
    work.elementwise = Flops{flops};
    return work;
  }
  if (op.results.empty()) return work;
  const std::size_t last = op.results.size() - 1;  // beside a new state, of random bits
  if (is_transcendental(op.name)) {
    work.transcendental = Flops{elements(view.result(last))};
  } else if (costs_per_element(op.name)) {
    work.elementwise = Flops{elements(view.result(last))};
  }
  return work;
}

ProgramWork work_of(const Module& module, const Function& function) {
  WorkCounter counter(module);
  ProgramWork result;
  result.work = counter.of_function(function);
  result.unknown_loops = counter.unknown_loops;
  result.unknown_calls = std::move(counter.unknown_calls);
  return result;
}

}  // namespace shardsim::stablehlo
