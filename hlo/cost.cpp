#include "hlo/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/index.hpp"
#include "hlo/collectives.hpp"
#include "hlo/convolution.hpp"
#include "hlo/opcodes.hpp"

namespace shardsim {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 8> markers{"AllocateBuffer",
                                                  "AssumeGatherIndicesInBound",
                                                  "AsyncCollectiveDone",
                                                  "AsyncCollectiveStart",
                                                  "ConcatBitcast",
                                                  "GatherScatterIndicesBitpacked",
                                                  "Sharding",
                                                  "annotate_device_placement"};

std::string_view prefix_of(std::string_view text, std::size_t length) {
  return text.substr(0, length);
}

void add(HloCost& sum, const HloCost& more) {
  sum.flops += more.flops;
  sum.transcendentals += more.transcendentals;
  if (more.matmul_flops > Flops(0)) {
    const bool is_first = sum.matmul_flops == Flops(0);
    sum.product = is_first ? more.product : std::nullopt;  // two are no product
  }
  if (more.matmul_flops > sum.matmul_flops) sum.matmul_dtype = more.matmul_dtype;
  sum.matmul_flops += more.matmul_flops;
  if (sum.unknown.empty()) sum.unknown = more.unknown;
}

DType dtype_of(const HloShape& shape) {
  for (const HloShape* array : arrays_of(shape)) {
    if (array->dtype) return *array->dtype;
  }
  return DType::f32;
}

// Elements of an array, or of a tuple's first one.
std::int64_t first_array(const HloShape& shape) {
  const auto arrays = arrays_of(shape);
  return arrays.empty() ? 0 : arrays.front()->element_count();
}

double elements_of(const HloShape& shape) {
  double total = 0;
  for (const HloShape* array : arrays_of(shape)) {
    if (array->dtype) total += static_cast<double>(array->element_count());
  }
  return total;
}

}  // namespace

bool is_marker(std::string_view target) { return is_one_of(target, markers); }

std::string_view custom_call_target(const HloModule& module, HloId id) {
  std::string_view target = module.attribute(id, "custom_call_target");
  if (target.size() >= 2 && target.front() == '"') target = target.substr(1, target.size() - 2);
  return target;
}

const HloCost& HloCostModel::operations_of(HloComputationId computation) {
  const auto known = known_.find(computation);
  if (known != known_.end()) return known->second;
  const HloComputation& body = module_.computation(computation);
  HloCost sum;
  for (HloId id = body.first; id < body.end; ++id) add(sum, operations(id));
  return known_.emplace(computation, std::move(sum)).first->second;
}

// `times` applications of the function that to_apply names.
HloCost HloCostModel::apply(HloId id, std::int64_t times) {
  HloCost cost = operations_of(module_.callee(id, "to_apply"));
  const auto factor = static_cast<double>(std::max<std::int64_t>(times, 0));
  cost.flops = cost.flops * factor;
  cost.transcendentals = cost.transcendentals * factor;
  cost.matmul_flops = cost.matmul_flops * factor;
  return cost;
}

HloCost HloCostModel::operations(HloId id) {
  const std::string_view opcode = module_.instruction(id).opcode;
  HloCost cost;
  if (opcode == "all-reduce" || opcode == "all-reduce-start") {
    for (const HloId operand : module_.operands(id)) {
      cost.flops += Flops(elements_of(shapes_.of(operand)));
    }
    return cost;
  }
  const OpcodeClass kind = class_of(opcode);
  if (kind == OpcodeClass::free || kind == OpcodeClass::moving || collective_opcode(opcode)) {
    return cost;
  }
  if (kind == OpcodeClass::unknown) {
    cost.unknown = fmt::format("instruction \"{}\"", opcode);
    return cost;
  }
  if (opcode == "fusion" || opcode == "async-start" || opcode == "fusion-start") {
    return operations_of(module_.callee(id, "calls"));
  }
  if (opcode == "call") return operations_of(module_.callee(id, "to_apply"));
  if (opcode == "while") {
    cost = operations_of(module_.callee(id, "body"));
    add(cost, operations_of(module_.callee(id, "condition")));
    return cost;
  }
  if (opcode == "conditional") return largest_branch(id);
  if (opcode == "custom-call" || opcode == "custom-call-start") return count_custom_call(id);
  const HloShape& shape = shapes_.of(id);
  const double elements = elements_of(shape);
  if (opcode == "dot" || opcode == "convolution") {
    cost.flops = Flops(opcode == "dot" ? dot_flops(id) : convolution_flops(id, shape));
    cost.matmul_flops = cost.flops;
    cost.matmul_dtype = dtype_of(shapes_.of(module_.operand(id, 0)));
    if (opcode == "dot") cost.product = dot_product(id);
    return cost;
  }
  if (opcode == "reduce") {
    return apply(id, first_array(shapes_.of(module_.operand(id, 0))) - first_array(shape));
  }
  if (opcode == "map") return apply(id, first_array(shape));
  if (opcode == "scatter") {
    const auto operands = module_.operands(id);
    const HloId updates = module_.operand(id, operands.size() / 2 + 1);
    return apply(id, first_array(shapes_.of(updates)));
  }
  if (opcode == "reduce-window") return apply(id, reduce_window_applications(id));
  if (opcode == "sort") {
    const double sorted = elements_of(shapes_.of(module_.operand(id, 0)));
    cost.flops = Flops(sorted * std::ceil(std::log2(std::max(sorted, 1.0))));
    return cost;
  }
  (kind == OpcodeClass::transcendental ? cost.transcendentals : cost.flops) = Flops(elements);
  return cost;
}

HloCost HloCostModel::largest_branch(HloId id) {
  HloCost largest;
  for (const HloComputationId branch : branches_of(module_, id)) {
    const HloCost& cost = operations_of(branch);
    if (cost.flops > largest.flops) largest = cost;
  }
  return largest;
}

// A window that covers its whole dimension wherever it lies reduces that dimension once and
// repeats the result: TPU compilers write a softmax's maximum and sum so.
std::int64_t HloCostModel::reduce_window_applications(HloId id) {
  const HloShape& input = shapes_.of(module_.operand(id, 0));
  std::int64_t results = first_array(shapes_.of(id));
  std::int64_t window = 1;
  const auto dims = parse_window(module_.attribute(id, "window"), module_.source());
  for (std::size_t i = 0; i < dims.size() && i < input.dims.size(); ++i) {
    const std::int64_t size = input.dims[i];
    const bool covers = size > 1 && dims[i].size == 2 * size - 1 && dims[i].pad_low == size - 1 &&
                        dims[i].stride == 1;
    if (covers) results /= size;
    window *= covers ? size : dims[i].size;
  }
  return results * (window - 1);
}

HloCost HloCostModel::count_custom_call(HloId id) {
  const std::string_view target = custom_call_target(module_, id);
  HloCost cost;
  if (is_marker(target) || target == "TopK" || target == "__gpu$TopK") return cost;
  const HloShape& shape = shapes_.of(id);
  if (prefix_of(target, 11) == "__cudnn$con") {
    // The result and a workspace.
    const auto arrays = arrays_of(shape);
    if (arrays.empty()) module_.source().fail(target, "a convolution without a result");
    cost.flops = Flops(convolution_flops(id, *arrays.front()));
  } else if (prefix_of(target, 8) == "__cublas") {
    const std::string_view config = module_.attribute(id, "backend_config");
    const std::size_t at = config.find("\"lhs_contracting_dimensions\":");
    const HloShape& lhs = shapes_.of(module_.operand(id, 0));
    double contracted = 1;
    if (at != std::string_view::npos) {
      HloCursor list(config, config.find('[', at));
      for (std::string_view dim : split_list(list.bracketed())) {
        if (dim.size() > 2) dim = dim.substr(1, dim.size() - 2);
        const auto index = static_cast<std::size_t>(parse_integer(dim, module_.source()));
        if (index < lhs.dims.size()) contracted *= static_cast<double>(lhs.dims[index]);
      }
    }
    const double results = static_cast<double>(first_array(shape));
    cost.flops = Flops(2 * results * contracted);
  } else {
    cost.unknown = fmt::format("custom call \"{}\"", target);
    return cost;
  }
  cost.matmul_flops = cost.flops;
  cost.matmul_dtype = dtype_of(shapes_.of(module_.operand(id, 0)));
  return cost;
}

// The elements of those dimensions of an operand that an attribute lists.
std::int64_t HloCostModel::extent(HloId id, std::size_t operand, std::string_view attribute) {
  const HloShape& shape = shapes_.of(module_.operand(id, operand));
  std::int64_t count = 1;
  for (const std::int64_t dim :
       parse_integers(module_.attribute(id, attribute), module_.source())) {
    if (dim < 0 || static_cast<std::size_t>(dim) >= shape.dims.size()) {
      module_.source().fail(module_.instruction(id).name,
                            fmt::format("{}: a dimension out of range", attribute));
    }
    count *= shape.dims[at(dim)];
  }
  return count;
}

double HloCostModel::dot_flops(HloId id) {
  return 2 * elements_of(shapes_.of(id)) *
         static_cast<double>(extent(id, 0, "lhs_contracting_dims"));
}

// Nothing of an empty one.
std::optional<Product> HloCostModel::dot_product(HloId id) {
  const std::int64_t batch = extent(id, 0, "lhs_batch_dims");
  const std::int64_t k = extent(id, 0, "lhs_contracting_dims");
  const std::int64_t lhs = first_array(shapes_.of(module_.operand(id, 0)));
  const std::int64_t rhs = first_array(shapes_.of(module_.operand(id, 1)));
  if (lhs == 0 || rhs == 0) return std::nullopt;
  return Product{batch, lhs / (batch * k), rhs / (batch * k), k};
}

double HloCostModel::convolution_flops(HloId id, const HloShape& result) {
  const HloShape& input = shapes_.of(module_.operand(id, 0));
  const auto window = parse_window(module_.attribute(id, "window"), module_.source());
  const auto dims = parse_dim_labels(module_.attribute(id, "dim_labels"), module_.source());
  const auto size = [&](const HloShape& shape, std::size_t dim) {
    if (dim >= shape.dims.size()) {
      module_.source().fail(module_.instruction(id).name, "dim_labels and shape differ in rank");
    }
    return shape.dims[dim];
  };
  const auto groups = [&](std::string_view key) {
    const std::string_view text = module_.attribute(id, key);
    const std::int64_t count = text.empty() ? 1 : parse_integer(text, module_.source());
    return static_cast<double>(std::max<std::int64_t>(count, 1));
  };
  double positions = 1;
  for (std::size_t i = 0; i < dims.input_spatial.size(); ++i) {
    const WindowDimension dim = i < window.size() ? window[i] : WindowDimension{};
    positions *= valid_positions(dim, size(input, dims.input_spatial[i]),
                                 size(result, dims.output_spatial[i]));
  }
  return 2 * positions * static_cast<double>(size(input, dims.input_feature)) /
         groups("feature_group_count") * static_cast<double>(size(result, dims.output_feature)) *
         static_cast<double>(size(input, dims.input_batch)) / groups("batch_group_count");
}

Bytes HloCostModel::bytes(HloId id) {
  const std::string_view opcode = module_.instruction(id).opcode;
  if (is_free(opcode) || collective_opcode(opcode)) return Bytes(0);
  if (opcode == "fusion" || opcode == "fusion-start") return fusion_bytes(id);
  const Bytes result = shapes_.bytes(id);
  if (opcode == "dynamic-slice" || opcode == "slice" || opcode == "gather") return 2 * result;
  if (opcode == "dynamic-update-slice") {
    return 2 * shapes_.bytes(module_.operand(id, 1));
  }
  Bytes total = result;
  for (const HloId operand : module_.operands(id)) total += shapes_.bytes(operand);
  return total;
}

// Of a fusion's parameter: slices where all uses slice it, nothing where it is updated in place.
Bytes HloCostModel::read_bytes(HloComputationId computation, const HloUsers& users,
                               HloId parameter) {
  Bytes sliced;
  const Bytes whole = shapes_.bytes(parameter);
  for (const HloId user : users.of(parameter)) {
    const std::string_view opcode = module_.instruction(user).opcode;
    const bool first = module_.operand(user, 0) == parameter;
    if (first && (opcode == "dynamic-slice" || opcode == "slice" || opcode == "gather")) {
      sliced += shapes_.bytes(user);
    } else if (!(first && opcode == "dynamic-update-slice" &&
                 user == module_.computation(computation).root)) {
      return whole;
    }
  }
  return std::min(sliced, whole);
}

Bytes HloCostModel::fusion_bytes(HloId id) {
  const HloComputationId computation = module_.callee(id, "calls");
  const HloComputation& body = module_.computation(computation);
  const HloUsers users(module_, body);
  Bytes total;
  for (HloId inner = body.first; inner < body.end; ++inner) {
    if (module_.instruction(inner).opcode == "parameter") {
      total += read_bytes(computation, users, inner);
    }
  }
  const bool updates = module_.instruction(body.root).opcode == "dynamic-update-slice";
  return total + shapes_.bytes(updates ? module_.operand(body.root, 1) : body.root);
}

Kernel HloCostModel::kernel(HloId id) {
  const HloCost cost = operations(id);
  Kernel kernel;
  kernel.op = module_.instruction(id).opcode;
  if (kernel.op == "custom-call") kernel.op = custom_call_target(module_, id);
  kernel.kernel_class = cost.matmul_flops > Flops(0) ? KernelClass::matmul : KernelClass::memory;
  kernel.dtype = cost.matmul_flops > Flops(0) ? cost.matmul_dtype : dtype_of(shapes_.of(id));
  kernel.product = cost.product;
  kernel.flops = cost.flops;
  kernel.bytes = bytes(id);
  return kernel;
}

}  // namespace shardsim
