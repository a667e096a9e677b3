#include "strategies/runtime/exchange_overlap.hpp"

#include <fmt/format.h>

#include <string>
#include <variant>

#include "strategies/key_place.hpp"

namespace shardsim {
namespace {

const Op* exchanging(const Item& item) {
  if (const auto* rows = std::get_if<RowsExchanged>(&item.reason)) return rows->op;
  if (const auto* counts = std::get_if<RowsCounted>(&item.reason)) return counts->op;
  return nullptr;
}

// Why not; empty: it can.
std::string obstacle_of_step(const Step& step) {
  using Remat = Rematerialization;
  const Remat& remat = step.rematerialization;
  const bool repeats_layers =
      remat.policy != Remat::Policy::none && remat.policy != Remat::Policy::modules;
  if (repeats_layers) {
    return "needs \"rematerialization\": \"none\" or {\"modules\": [...]}: layers that are "
           "computed again as a whole are not cut into parts";
  }
  if (step.mtp_layers > 1) return "takes one layer of multi-token prediction at most";
  if (step.precision.compute == DType::f32) return "needs \"compute\": \"bf16\" or \"fp16\"";
  return "";
}

std::string obstacle_of_stages(const Strategy& strategy, const Step& step) {
  if (!strategy.pipeline) {
    return step.mtp_layers > 0 ? "beside multi-token prediction needs stages (\"pp\")" : "";
  }
  const Pipeline& pipeline = *strategy.pipeline;
  if (pipeline.written || pipeline.schedule.name == "interleaved-1f1b" ||
      pipeline.schedule.name == "dualpipev") {
    return "";
  }
  return fmt::format(
      "is of schedules that overlap a forward with a backward pass: interleaved-1f1b and "
      "dualpipev, not {}",
      pipeline.schedule.name);
}

std::string obstacle_of_strategy(const Strategy& strategy) {
  const std::optional<ExpertLayout>& experts = strategy.experts;
  if (!experts || experts->parallel.empty()) {
    return "needs experts that are dealt out over devices: \"experts\": {\"parallel\": 2} or more";
  }
  if (experts->dispatch == Dispatch::all_gather) {
    return "needs \"dispatch\": \"all-to-all\", \"deepep\" or \"hybridep\"";
  }
  if (experts->exchange.shared_beside) {
    return "and \"shared_beside\" exclude each other";
  }
  const Runtime& runtime = strategy.runtime;
  if (strategy.shards_parameters || runtime.flat_parameters || runtime.loss_chunks > 1) {
    return "of parameters in shards, or of a loss in chunks, is not supported by this version";
  }
  return "";
}

}  // namespace

bool is_exchange(const Item& item) { return exchanging(item) != nullptr; }

std::optional<ExchangeCuts> exchange_cuts(const BlockPass& pass) {
  std::vector<ItemRange> ranges;
  const Op* last = nullptr;
  for (std::size_t i = 0; i < pass.body.size(); ++i) {
    const Item& item = pass.body[i];
    const Op* op = exchanging(item);
    if (op == nullptr || item.recompute) continue;
    if (op != last) ranges.push_back({i, i + 1});
    ranges.back().end = i + 1;
    last = op;
  }
  if (ranges.size() != 2) return std::nullopt;
  return ExchangeCuts{ranges[0], ranges[1]};
}

void check_exchange_overlap(const Strategy& strategy, const Step& step) {
  if (strategy.runtime.exchange_overlap == ExchangeOverlap::none || !has_gradients(step)) return;
  for (const std::string& obstacle : {obstacle_of_strategy(strategy),
                                      obstacle_of_stages(strategy, step), obstacle_of_step(step)}) {
    if (obstacle.empty()) continue;
    const bool is_megatron = strategy.name == "megatron";
    throw InputError(
        place_of_key(strategy.place, is_megatron ? "overlap/experts" : "exchange_overlap"),
        fmt::format("overlap of experts {}", obstacle));
  }
}

}  // namespace shardsim
