// What Megatron-LM's arguments say of overlapped passes and late gradients, both ways.
#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/megatron_facts.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t all_microbatches = 1 << 24;  // as the strategy has it

}  // namespace

void read_megatron_overlap(const Facts& facts, Json& experiment) {
  Json& strategy = experiment["strategy"];
  if (facts.flag("arg.late_weights")) {
    if (!facts.flag("strategy.overlap.experts")) {
      facts.fail("arg.late_weights", "needs --overlap-moe-expert-parallel-comm");
    }
    if (strategy.contains("overlap")) strategy["overlap"]["experts"] = "delay_wgrad";
  }
  const auto late = static_cast<std::int64_t>(facts.number("arg.late_microbatches"));
  const bool is_deferred = facts.has("strategy.overlap.embedding_gradient");
  if (late > 0 && is_deferred && strategy.contains("overlap")) {
    strategy["overlap"]["embedding_gradient"] = {{"microbatches", late}};
  }
}

void add_megatron_overlap_facts(const Json& strategy, Facts& facts) {
  if (json_at(strategy, "product_overlap") == "userbuffers") facts.set("strategy.overlap.tp", true);
  const Json exchanges = json_at(strategy, "exchange_overlap");
  if (exchanges == "passes" || exchanges == "late_weights") {
    facts.set("strategy.overlap.experts", true);
    facts.set("arg.late_weights", exchanges == "late_weights");
  }
  if (json_at(strategy, "pipeline.receives") == "exchanged") {
    facts.set("strategy.overlap.p2p", false);
  }
  const std::int64_t late = integer_at(strategy, "late_head_gradients", 0);
  if (late == 0) return;
  facts.set("strategy.overlap.embedding_gradient", "deferred");
  if (late < all_microbatches) facts.set("arg.late_microbatches", late);
}

}  // namespace shardsim
