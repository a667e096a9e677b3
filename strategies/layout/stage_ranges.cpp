#include "strategies/layout/stage_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "strategies/key_place.hpp"
#include "strategies/layout/stage_costs.hpp"

namespace shardsim {
namespace {

class Cutter {
 public:
  Cutter(const Workload& workload, const Pipeline& pipeline)
      : workload_(workload), pipeline_(pipeline) {
    const auto is_layer = [&](const BlockInstance& instance) {
      return workload.blocks[at(instance.block)].is_layer;
    };
    const std::vector<BlockInstance>& order = workload.order;
    const auto first = std::find_if(order.begin(), order.end(), is_layer);
    const auto after_last = std::find_if(order.rbegin(), order.rend(), is_layer).base();
    if (first == order.end()) fail("the model has no layers to deal out to stages");
    if (!std::all_of(first, after_last, is_layer)) {
      fail("the model has something between its layers: stages cut one row of layers");
    }
    before_ = static_cast<std::size_t>(first - order.begin());
    layers_ = static_cast<std::size_t>(after_last - first);
  }

  std::vector<StageRange> run() {
    std::vector<StageRange> ranges;
    const auto stages = stages_of(pipeline_, static_cast<std::int32_t>(layers_),
                                  static_cast<std::int32_t>(workload_.further_losses.size()));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const StageLayers& stage = stages[s];
      StageRange range;
      range.first = ranges.empty() ? 0 : ranges.back().first + ranges.back().count;
      range.count = static_cast<std::size_t>(stage.count);
      if (stage.embedding) range.count += before_;
      if (stage.loss) range.count += workload_.order.size() - before_ - layers_;
      if (stage.mtp > 0 && !stage.loss) {
        fail(
            fmt::format("stage {} has multi-token prediction (m) without the loss (L): it is "
                        "planned with the loss",
                        s));
      }
      if (range.count == 0) fail(fmt::format("stage {} of {} has no layers", s, stages.size()));
      ranges.push_back(range);
    }
    for (std::size_t s = 0; s < ranges.size(); ++s) check(s, ranges[s]);
    check_copies();
    return ranges;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(pipeline_.place, message);
  }

  // Everything that the stage reads it has made, been handed, or stores.
  void check(std::size_t stage, const StageRange& range) {
    std::set<TensorId> there;
    const auto add = [&](const std::vector<TensorId>& tensors) {
      there.insert(tensors.begin(), tensors.end());
    };
    std::set<std::int32_t> kinds;
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      kinds.insert(workload_.order[i].block);
    }
    for (const std::int32_t b : kinds) {
      const Block& block = workload_.blocks[at(b)];
      add(block.carries_in);
      for (const Op& op : block.forward) {
        for (const Operand& operand : op.operands) {
          const TensorId id = operand.tensor;
          const Tensor& tensor = workload_.tensors[at(id)];
          if (tensor.role == TensorRole::parameter) share(id, stage, b);
          if (tensor.role != TensorRole::activation || there.contains(id)) continue;
          fail(fmt::format("stage {} reads {}, which stage {} does not hand on", stage, tensor.name,
                           stage - 1));
        }
        for (const Operand& result : op.results) there.insert(result.tensor);
      }
    }
  }

  // The two stages of a copied parameter talk to each other: they are on different ranks.
  void check_copies() const {
    if (pipeline_.written ||
        schedule_kind(pipeline_.schedule.name, pipeline_.place).placement == StagePlacement::loop) {
      return;
    }
    for (const Tensor& tensor : workload_.tensors) {
      if (tensor.copy_of == no_tensor) continue;
      fail(
          fmt::format("{} has the first and the last stage on one rank, which tied parameters ({}) "
                      "are not supported on; \"tie_word_embeddings\": false in the model unties "
                      "them",
                      pipeline_.schedule.name, workload_.tensors[at(tensor.copy_of)].name));
    }
  }

  void share(TensorId parameter, std::size_t stage, std::int32_t block) {
    const Tensor& tensor = workload_.tensors[at(parameter)];
    if (workload_.blocks[at(block)].is_layer && tensor.block == block) return;
    const auto [owner, is_new] = owners_.try_emplace(parameter, stage);
    if (is_new || owner->second == stage) return;
    fail(
        fmt::format("{} is in stage {} and in stage {}: parameters that stages share are not "
                    "supported; \"tie_word_embeddings\": false in the model unties them",
                    tensor.name, owner->second, stage));
  }

  const Workload& workload_;
  const Pipeline& pipeline_;
  std::size_t before_ = 0;  // of what is no layer
  std::size_t layers_ = 0;
  std::map<TensorId, std::size_t> owners_;  // of parameters outside layers: their stage
};

}  // namespace

std::vector<StageRange> one_stage(const Workload& workload) { return {{0, workload.order.size()}}; }

std::vector<StageRange> stage_ranges(const Workload& workload, const Pipeline& pipeline) {
  if (!pipeline.stages.by_cost) return Cutter(workload, pipeline).run();
  return Cutter(workload, dealt_by_cost(workload, pipeline)).run();
}

}  // namespace shardsim
