#include "strategies/specs/uneven_shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "base/units.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

constexpr std::string_view how_to_allow =
    "--allow-uneven, \"allow_uneven\": true in an experiment, prices it with padding";

const RuleSystem* system_of(const Strategy& strategy) {
  return strategy.is_rule_system() ? find_rule_system(strategy.name) : nullptr;
}

std::string_view who_refuses(const RuleSystem& system) {
  return system.uneven_parameters == UnevenParameters::refused_by_shard_map ? "shard_map" : "jit";
}

// "dimension 0 has 50257 elements, which its 8 shards do not divide" of the first that does not.
std::string uneven_dimension(const std::vector<std::int64_t>& shape, const Sharding& sharding) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t shards = Mesh::size_of(sharding.dims[d].axes);
    if (shape[d] % shards == 0) continue;
    return fmt::format("dimension {} has {} elements, which its {} shards do not divide", d,
                       shape[d], shards);
  }
  return "";
}

std::int64_t size_of_axes(const std::vector<std::string>& axes, const Mesh& mesh) {
  std::int64_t size = 1;
  for (const std::string& axis : axes) size *= mesh.whole(*mesh.find(axis)).size;
  return size;
}

// A dimension of the inputs; a warning where uneven ones are allowed.
void check_input(std::string_view what, std::int64_t size, const std::vector<std::string>& axes,
                 const Mesh& mesh, const RuleSystem& system, bool allow_uneven, const Place& place,
                 std::vector<std::string>& warnings) {
  const std::int64_t shards = size_of_axes(axes, mesh);
  if (size % shards == 0) return;
  const std::string uneven = fmt::format("{} of {} does not divide over the {} devices of {}", what,
                                         size, shards, fmt::join(axes, ", "));
  if (!allow_uneven) {
    throw RuleError(
        "IndivisibleError", place,
        fmt::format("{}: {} refuses such inputs; {}", uneven, who_refuses(system), how_to_allow));
  }
  warnings.push_back(fmt::format("{}: {} refuses such inputs; priced as {} on each", uneven,
                                 who_refuses(system), ceil_div(size, shards)));
}

Place key_of(const Place& step, const char* key) { return {step.file, step.pointer + key}; }

}  // namespace

std::vector<std::string> check_even_parameters(const std::vector<ParameterSharding>& parameters,
                                               const std::vector<RuleUse>& rules,
                                               const Strategy& strategy, bool allow_uneven) {
  const RuleSystem* system = system_of(strategy);
  if (system == nullptr || system->uneven_parameters == UnevenParameters::padded) return {};
  std::int64_t others = -1;
  std::string first;
  Place place = strategy.place;
  for (const ParameterSharding& row : parameters) {
    const std::string uneven = uneven_dimension(row.shape, row.stored);
    if (uneven.empty()) continue;
    others += row.instances;
    if (!first.empty()) continue;
    first = fmt::format("{}: {}", row.name, uneven);
    if (row.rule) place = rules[*row.rule].place;
    others -= row.instances - 1;
  }
  if (first.empty()) return {};
  const std::string more = others > 0 ? fmt::format(" (and {} more)", others) : "";
  if (!allow_uneven) {
    throw RuleError("IndivisibleError", place,
                    fmt::format("{}{}: {} refuses such parameters; {}", first, more,
                                who_refuses(*system), how_to_allow));
  }
  return {fmt::format("{}{}: {} refuses such parameters; priced as if padded", first, more,
                      who_refuses(*system))};
}

EnteringBatch entering_batch(const Step& step, const Place& place, const Strategy& strategy,
                             const Mesh& mesh, bool allow_uneven) {
  EnteringBatch entering{step.batch, {}};
  const RuleSystem* system = system_of(strategy);
  if (system == nullptr) return entering;
  const auto enters_over =
      system->entering_axes == nullptr
          ? std::nullopt
          : system->entering_axes(JsonReader(*strategy.system, strategy.place), mesh);
  check_input("a batch", step.batch, enters_over.value_or(strategy.batch_axes), mesh, *system,
              allow_uneven, key_of(place, "/batch"), entering.warnings);
  if (step.sequence && !enters_over) {
    check_input("a sequence", *step.sequence, strategy.sequence_axes, mesh, *system, allow_uneven,
                key_of(place, "/sequence"), entering.warnings);
  }
  if (!system->drops_examples) return entering;
  const std::int64_t devices = size_of_axes(strategy.batch_axes, mesh);
  const std::int64_t local = ceil_div(step.batch, devices);
  const std::int64_t minibatch = local / step.microbatches;
  const std::int64_t dropped = local - minibatch * step.microbatches;
  if (minibatch == 0) {
    throw InputError(key_of(place, "/microbatches"),
                     fmt::format("{} minibatches of the {} examples of a device have none each: "
                                 "their loss is not a number",
                                 step.microbatches, local));
  }
  if (dropped == 0) return entering;
  entering.examples = minibatch * step.microbatches * devices;
  entering.warnings.push_back(fmt::format(
      "each device drops {} of its {} examples, as the tutorial does: {} minibatches of {} = {} // "
      "{}; a step computes with {} of {}",
      dropped, local, step.microbatches, minibatch, local, step.microbatches, entering.examples,
      step.batch));
  return entering;
}

}  // namespace shardsim
