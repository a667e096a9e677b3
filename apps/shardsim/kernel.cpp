#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "reports/machine/kernel_report.hpp"

#include "command.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual kernel_manual = {
    "kernel OP SHAPE --machine NAME [OPTION...]",
    "What one kernel takes on a machine's device, and whether that was measured, interpolated,\n"
    "modelled or scaled from another device. SHAPE is\n"
    "  matmul            MxNxK of [M, K] x [K, N], or BxMxNxK for B of them\n"
    "  grouped_matmul    ExMxNxK: E experts with M rows each on average\n"
    "  attention         HxQxKxD: H heads of all sequences, Q queries, K keys, D numbers a head\n"
    "  any other         the bytes that it reads and writes: rms_norm 256MiB",
    {"shardsim kernel matmul 4096x4096x4096 --machine dgx-h100",
     "shardsim kernel attention 64x8192x8192x128 --machine dgx-h200 --causal --backward \\\n"
     "               --implementation cudnn",
     "shardsim kernel rms_norm 256MiB --machine dgx-b200 --implementation eager --format json"}};

constexpr std::array kernel_flags{
    Flag{"machine", "machine", "NAME", "hardware profile or a path to one"},
    Flag{"dtype", "dtype", "DTYPE", "of the operands (bf16)"},
    Flag{"implementation", "implementation", "NAME",
         "of attention the generation: flash-2, flash-3, cudnn; of operations that memory bounds "
         "the stack: eager, compiled, transformer-engine"},
};

const std::vector<std::string> kernel_formats = {"text", "json"};

void add_kernel_options(po::options_description& options) {
  add_flags(options, kernel_flags);
  options.add_options()("causal", "attention: a query sees the keys before it")(
      "backward", "attention: the gradients of queries, keys and values");
  add_output_options(options, kernel_formats);
}

std::string one(const Given& given, const char* flag, const char* otherwise) {
  const Words values = given.all(flag);
  if (values.size() > 1) throw UsageError(fmt::format("--{} is given twice", flag));
  return values.empty() ? otherwise : values[0];
}

std::vector<std::int64_t> sizes_of(const std::string& text, std::size_t least, std::size_t most,
                                   const char* example) {
  std::vector<std::int64_t> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool is_good = true;
  while (is_good) {
    std::int64_t size = 0;
    const auto [stop, status] = std::from_chars(at, end, size);
    constexpr std::int64_t largest = std::int64_t{1} << 31;
    is_good = status == std::errc{} && size >= 1 && size <= largest;
    sizes.push_back(size);
    if (!is_good || stop == end) break;
    is_good = *stop == 'x';
    at = stop + 1;
  }
  if (!is_good || sizes.size() < least || sizes.size() > most) {
    throw InputError({"command line", ""},
                     fmt::format("\"{}\" is not a shape, expected for example {}", text, example));
  }
  return sizes;
}

Kernel product_kernel(const std::string& op, const std::string& shape, DType dtype) {
  const bool grouped = op == "grouped_matmul";
  std::vector<std::int64_t> sizes =
      sizes_of(shape, grouped ? 4 : 3, 4, grouped ? "8x512x14336x4096" : "4096x4096x4096");
  if (sizes.size() == 3) sizes.insert(sizes.begin(), 1);
  constexpr std::int64_t alignment = 8;  // numbers of a row; [K, N] may lie either way
  const bool aligned = sizes[2] % alignment == 0 && sizes[3] % alignment == 0;
  const Product product{sizes[0], sizes[1], sizes[2], sizes[3], aligned};
  const auto b = static_cast<double>(product.batch);
  const auto m = static_cast<double>(product.m);
  const auto n = static_cast<double>(product.n);
  const auto k = static_cast<double>(product.k);
  const auto operand = static_cast<double>(size_of(dtype).count());
  const auto result = static_cast<double>(size_of(type_of_product(dtype)).count());
  const double bytes = b * (operand * (m * k + k * n) + result * m * n);
  return {op,
          KernelClass::matmul,
          dtype,
          Flops(2 * b * m * n * k),
          Bytes(static_cast<std::int64_t>(bytes)),
          product};
}

Kernel attention_kernel(const Given& given, const std::string& shape, DType dtype) {
  const std::vector<std::int64_t> sizes = sizes_of(shape, 4, 4, "64x8192x8192x128");
  const Product product{sizes[0], sizes[1], sizes[2], sizes[3]};
  const bool backward = given.has("backward");
  const auto heads = static_cast<double>(product.batch);
  const auto queries = static_cast<double>(product.m);
  const auto keys = static_cast<double>(product.n);
  const auto numbers = static_cast<double>(product.k);
  if (given.has("causal") && product.n < product.m) {
    throw InputError({"command line", ""}, "--causal: there are fewer keys than queries");
  }
  // Query i of q sees all but the last q - i of the keys.
  const double seen = given.has("causal") ? keys - (queries - 1) / 2 : keys;
  const double products = backward ? 5 : 2;
  // Queries, keys, values and the result; backward their gradients, too, and the result's.
  const double passes = backward ? 2 : 1;
  const double bytes =
      static_cast<double>(size_of(dtype).count()) * passes * heads * numbers * 2 * (queries + keys);
  return {backward ? "attention_backward" : "attention",
          backward ? KernelClass::attention_backward : KernelClass::attention,
          dtype,
          Flops(2 * products * heads * queries * seen * numbers),
          Bytes(static_cast<std::int64_t>(bytes)),
          product};
}

Kernel kernel_of(const Given& given) {
  const Words operands = given.all("operand");
  if (operands.size() != 2) throw UsageError("expected: kernel OP SHAPE --machine NAME");
  const std::string& op = operands[0];
  const std::string named = one(given, "dtype", "bf16");
  const std::optional<DType> dtype = parse_dtype(named);
  const Place place{"command line", ""};
  if (!dtype) {
    throw InputError(place, fmt::format("unknown dtype \"{}\", expected for example bf16", named));
  }
  const bool is_attention = op == "attention";
  for (const char* flag : {"causal", "backward"}) {
    if (given.has(flag) && !is_attention) {
      throw UsageError(fmt::format("--{} is for attention", flag));
    }
  }
  Kernel kernel;
  if (is_attention) {
    kernel = attention_kernel(given, operands[1], *dtype);
  } else if (op == "matmul" || op == "grouped_matmul") {
    kernel = product_kernel(op, operands[1], *dtype);
  } else {
    kernel.op = op;
    kernel.dtype = *dtype;
    kernel.bytes = parse_bytes(operands[1], place);
  }
  kernel.implementation = one(given, "implementation", "");
  return kernel;
}

int run_kernel(const Given& given) {
  const auto outputs = read_outputs(given, kernel_formats);
  const Kernel kernel = kernel_of(given);
  const std::string machine = one(given, "machine", "");
  if (machine.empty()) throw UsageError("expected: kernel OP SHAPE --machine NAME");
  const Profile profile = load_profile(machine, {"command line", "machine"});
  if (profile.device.name.empty()) {
    throw InputError({"command line", "machine"},
                     "nothing is known of the network's devices; name one, as in device=h100");
  }
  write(outputs, [&](const Output& output) {
    return output.format == "json" ? kernel_report_json(profile, kernel).dump(2) + "\n"
                                   : kernel_report_text(profile, kernel, output.width);
  });
  return exit_done;
}

}  // namespace

Verb kernel_verb() {
  return {"kernel", "one kernel on one device: its time, and where that comes from", kernel_manual,
          add_kernel_options, run_kernel};
}

}  // namespace shardsim
