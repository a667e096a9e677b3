// Programs from strangers: StableHLO text. What is read is used: rules, trip counts and work; and
// every sharding and rule that is printed is read back as the same.
#include "tests/fuzz/fuzz.hpp"

#include "base/error.hpp"
#include "stablehlo/flops.hpp"
#include "stablehlo/op_rules.hpp"

namespace {
using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)

void use(const Module& module, const Function& function) {
  for (const Value& value : function.values) {
    if (!value.sharding.tiles) continue;
    const std::string text = text_of(*value.sharding.tiles);
    Scanner scanner(text, "printed");
    if (parse_tile_sharding(scanner) != *value.sharding.tiles) std::abort();
  }
  for (const Op& op : function.ops) {
    const OpRule rule = factor_rule(module, function, op);
    if (!rule.rule) continue;
    const std::string text = text_of(*rule.rule);
    Scanner scanner(text, "printed");
    if (parse_factor_rule(scanner) != *rule.rule) std::abort();
  }
  static_cast<void>(work_of(module, function));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Module module = parse_module({reinterpret_cast<const char*>(data), size}, "input.mlir");
    for (const Function& function : module.functions) use(module, function);
  } catch (const shardsim::InputError&) {
    // What it is for.
  }
  return 0;
}
