#include "sim/step/kernel_cost.hpp"

#include <cassert>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.hpp"

namespace shardsim {
namespace {

std::optional<DType> substitute(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return DType::f16;
    case DType::f8_e4m3:
    case DType::f8_e5m2:
      return DType::f8;
    case DType::f16:
    case DType::f32:
    case DType::f8:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

const EfficiencySurfaces& surfaces_of(const DeviceProfile& device, KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::matmul:
      return device.matmul_surfaces;
    case KernelClass::attention:
      return device.attention_surfaces;
    case KernelClass::attention_backward:
      return device.attention_backward_surfaces;
    case KernelClass::memory:
    case KernelClass::host:
      break;
  }
  assert(false);
  return device.matmul_surfaces;
}

Seconds time_on(const EfficiencySurface& surface, const Product& product, Seconds at_peak) {
  const auto over = [](const std::optional<Sourced<double>>& size, std::int64_t of) {
    return size ? size->value / static_cast<double>(of) : 0;
  };
  const double slower = 1 + over(surface.depth, product.k) + over(surface.side, product.m) +
                        over(surface.side, product.n);
  const Seconds overhead = surface.overhead ? surface.overhead->value : Seconds(0);
  return overhead + at_peak * (slower / surface.efficiency.value);
}

// The part of a TPU's multipliers that a product of [m, k] x [k, n] uses, whose second operand lies
// on them. Both products of attention have the head's size on one side, and keys, which are many,
// on the other (Jouppi et al., "In-Datacenter Performance Analysis of a Tensor Processing Unit",
// ISCA 2017).
double used_of_unit(const DeviceProfile& device, const Kernel& kernel) {
  if (!device.matrix_unit || !kernel.product) return 1;
  const std::int64_t edge = device.matrix_unit->value;
  const auto used = [&](std::int64_t size) {
    const std::int64_t squares = ceil_div(size, edge);
    return static_cast<double>(size) / static_cast<double>(squares * edge);
  };
  const bool is_matmul = kernel.kernel_class == KernelClass::matmul;
  return used(kernel.product->k) * (is_matmul ? used(kernel.product->n) : 1);
}

// Of operations that are bound by themselves.
Seconds computing_time(const DeviceProfile& device, const Kernel& kernel) {
  const OperandPeak peak = operand_peak(device, kernel.dtype);
  const Seconds at_peak = kernel.flops / peak.rate;
  if (kernel.product) {
    const EfficiencySurfaces& surfaces = surfaces_of(device, kernel.kernel_class);
    const auto surface = surfaces.find(peak.dtype);
    if (surface != surfaces.end()) return time_on(surface->second, *kernel.product, at_peak);
  }
  const bool is_matmul = kernel.kernel_class == KernelClass::matmul;
  const auto& efficiency = is_matmul ? device.matmul_efficiency : device.attention_efficiency;
  return at_peak * (1 / (efficiency.value * used_of_unit(device, kernel)));
}

// For operands of the type that they run as, of which bf16 and fp16 are one.
template <class Table>
const Table* table_for(const std::map<DType, Table>& tables, DType runs_as) {
  auto found = tables.find(runs_as);
  if (found == tables.end() && runs_as == DType::f16) found = tables.find(DType::bf16);
  return found == tables.end() ? nullptr : &found->second;
}

std::optional<KernelCost> product_cost(const DeviceProfile& device, const Kernel& kernel,
                                       const OperandPeak& peak) {
  const Product& product = *kernel.product;
  const ProductTable* table = table_for(device.kernels->products, peak.dtype);
  if (table == nullptr) return std::nullopt;
  const Seconds adding = table->adding
                             ? kernel.added / device.memory_bandwidth.value * table->adding->value
                             : Seconds(0);
  const std::optional<Sourced<double>>& unaligned =
      product.batch > 1 && table->unaligned_batch ? table->unaligned_batch : table->unaligned;
  if (!product.aligned && unaligned) {
    return KernelCost{table->floor,
                      kernel.flops / peak.rate * (1 / unaligned->value),
                      kernel.bytes / device.memory_bandwidth.value * (1 / table->byte_efficiency),
                      adding,
                      Evidence::modelled,
                      &unaligned->source};
  }
  // Products side by side fill the device as one with all their rows does. Those of experts are
  // one after the other in Transformer Engine, which launches them one by one.
  const bool in_turn =
      kernel.op.starts_with("grouped") && kernel.implementation == "transformer-engine";
  const LogRatio found =
      log_ratio(*table, in_turn ? product.m : product.batch * product.m, product.n, product.k);
  const double begun = in_turn ? static_cast<double>(product.batch) : 1;
  const double factor = std::exp(found.value);
  const double deeper = 1 + table->depth / static_cast<double>(product.k);
  const Bytes moved = kernel.bytes - (table->adding ? kernel.added : Bytes(0));
  return KernelCost{table->floor * (factor * begun),
                    kernel.flops / peak.rate * (factor * deeper / table->flop_efficiency),
                    moved / device.memory_bandwidth.value * (factor / table->byte_efficiency),
                    adding,
                    found.evidence,
                    &table->source};
}

std::optional<KernelCost> attention_cost(const DeviceProfile& device, const Kernel& kernel,
                                         const OperandPeak& peak) {
  const auto generation = device.kernels->attention.find(kernel.implementation);
  if (generation == device.kernels->attention.end()) return std::nullopt;
  const bool forward = kernel.kernel_class == KernelClass::attention;
  const AttentionTables& tables = generation->second;
  const AttentionTable* table = table_for(forward ? tables.forward : tables.backward, peak.dtype);
  if (table == nullptr) return std::nullopt;
  const Product& product = *kernel.product;
  const auto heads = static_cast<double>(product.batch);
  const auto queries = static_cast<double>(product.m);
  const auto numbers = static_cast<double>(product.k);
  // Two products forward, five backward (FlashAttention-2, Dao 2023, section 3.1).
  const double products = forward ? 2 : 5;
  const double keys = kernel.flops.count() / (2 * products * heads * queries * numbers);
  constexpr double rows_of_a_block = 128;
  const double blocks = heads * std::ceil(queries / rows_of_a_block);
  const double sms = device.sms ? static_cast<double>(device.sms->value) : 1;
  const double slower = (1 + table->prologue / std::max(keys, 1.0)) * (1 + table->head / numbers) *
                        std::max(1.0, sms / blocks) / table->efficiency;
  return KernelCost{table->overhead,
                    kernel.flops / peak.rate * slower,
                    kernel.bytes / device.memory_bandwidth.value,
                    Seconds(0),
                    Evidence::modelled,
                    &table->source};
}

std::optional<KernelCost> operation_cost(const DeviceProfile& device, const Kernel& kernel) {
  const auto stacks = device.kernels->operations.find(kernel.op);
  if (stacks == device.kernels->operations.end()) return std::nullopt;
  const auto table = stacks->second.find(kernel.implementation);
  if (table == stacks->second.end()) return std::nullopt;
  const std::optional<double>& rate = table->second.flop_efficiency;
  return KernelCost{
      table->second.overhead,
      rate ? kernel.flops / operand_peak(device, kernel.dtype).rate * (1 / *rate) : Seconds(0),
      kernel.bytes / device.memory_bandwidth.value * (1 / table->second.efficiency),
      Seconds(0),
      Evidence::modelled,
      &table->second.source};
}

// None: no table of such kernels.
std::optional<KernelCost> tabled_cost(const DeviceProfile& device, const Kernel& kernel) {
  if (!device.kernels) return std::nullopt;
  const bool is_scan = kernel.kernel_class == KernelClass::matmul && !kernel.product;
  if (kernel.kernel_class == KernelClass::memory || is_scan) {
    return operation_cost(device, kernel);
  }
  if (!kernel.product || kernel.flops.count() <= 0) return std::nullopt;
  const OperandPeak peak = operand_peak(device, kernel.dtype);
  const bool is_products =
      kernel.kernel_class == KernelClass::matmul || kernel.implementation == "unfused";
  return is_products ? product_cost(device, kernel, peak) : attention_cost(device, kernel, peak);
}

}  // namespace

OperandPeak operand_peak(const DeviceProfile& device, DType dtype) {
  for (std::optional<DType> type : {std::optional(dtype), substitute(dtype)}) {
    if (!type) continue;
    const auto found = device.peak.find(*type);
    if (found != device.peak.end()) return {*type, found->second.value};
  }
  std::string known;
  for (const auto& [type, rate] : device.peak) {
    known += (known.empty() ? "" : ", ") + std::string(name_of(type));
  }
  throw InputError({device.name, "peak"}, "no peak for " + std::string(name_of(dtype)) +
                                              " operands; the profile has " + known);
}

KernelCost kernel_cost(const DeviceProfile& device, const Kernel& kernel) {
  const double launches = kernel.launches;
  if (std::optional<KernelCost> cost = tabled_cost(device, kernel)) {
    cost->launch = (cost->launch + device.kernel_launch.value) * launches;
    return *cost;
  }
  const Bandwidth bandwidth{device.memory_bandwidth.value.count() * device.memory_efficiency.value};
  const Seconds moving = kernel.bytes / bandwidth;
  Seconds computing{0};
  if (kernel.flops.count() > 0 && kernel.kernel_class == KernelClass::memory) {
    const auto peak = device.peak.find(DType::f32);
    if (peak != device.peak.end()) computing = kernel.flops / peak->second.value;
  } else if (kernel.flops.count() > 0) {
    computing = computing_time(device, kernel);
  }
  return {device.kernel_launch.value * launches, computing, moving};
}

}  // namespace shardsim
