#include "workloads/networks/blueprint_layers.hpp"

#include <algorithm>

namespace shardsim::models {
namespace {

bool is_mark(const BlueprintStep& step) {
  return std::holds_alternative<LayerMark>(step.what) ||
         std::holds_alternative<OutsideMark>(step.what);
}

// As hands_on has it.
Ref within(const BlueprintBlock& block, Ref ref) {
  if (static_cast<std::size_t>(ref) >= block.begin) {
    return -1 - (ref - static_cast<Ref>(block.begin));
  }
  const auto found = std::lower_bound(block.live.begin(), block.live.end(), ref);
  return static_cast<Ref>(found - block.live.begin());
}

// What a step needs the value of; of a part of rows the second says only how many there are.
std::size_t values_read(const BlueprintStep& step) {
  return std::holds_alternative<RowsPart>(step.what) ? 1 : step.reads.size();
}

std::vector<BlueprintBlock> single_blocks(const Blueprint& net) {
  std::vector<BlueprintBlock> blocks{{}};
  for (std::size_t i = 0; i < net.steps.size(); ++i) {
    if (is_mark(net.steps[i]) && i > 0) {
      blocks.back().end = i;
      blocks.push_back({.begin = i});
    }
  }
  blocks.back().end = net.steps.size();
  std::vector<std::size_t> last_read(net.steps.size(), 0);
  for (std::size_t i = 0; i < net.steps.size(); ++i) {
    for (std::size_t n = 0; n < values_read(net.steps[i]); ++n) {
      last_read[static_cast<std::size_t>(net.steps[i].reads[n])] = i;
    }
  }
  for (BlueprintBlock& block : blocks) {
    for (std::size_t i = 0; i < block.begin; ++i) {
      if (last_read[i] >= block.begin) block.live.push_back(static_cast<Ref>(i));
    }
    if (const auto* mark = std::get_if<LayerMark>(&net.steps[block.begin].what)) {
      block.numbers.push_back(static_cast<std::int32_t>(mark->number));
    }
  }
  for (std::size_t b = 0; b + 1 < blocks.size(); ++b) {
    for (const Ref ref : blocks[b + 1].live) blocks[b].hands_on.push_back(within(blocks[b], ref));
  }
  return blocks;
}

bool alike(const Blueprint& net, const BlueprintBlock& a, const BlueprintBlock& b) {
  if (a.numbers.empty() || b.numbers.empty() || a.end - a.begin != b.end - b.begin ||
      a.live.size() != b.live.size() || a.hands_on != b.hands_on ||
      a.hands_on.size() != a.live.size() || a.numbers.back() + 1 != b.numbers.front()) {
    return false;
  }
  if (std::get<LayerMark>(net.steps[a.begin].what).prefix !=
      std::get<LayerMark>(net.steps[b.begin].what).prefix) {
    return false;
  }
  for (std::size_t i = 1; i < a.end - a.begin; ++i) {
    const BlueprintStep& one = net.steps[a.begin + i];
    const BlueprintStep& other = net.steps[b.begin + i];
    if (!(one.what == other.what) || one.mark != other.mark ||
        one.reads.size() != other.reads.size()) {
      return false;
    }
    for (std::size_t n = 0; n < values_read(one); ++n) {
      if (within(a, one.reads[n]) != within(b, other.reads[n])) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<BlueprintBlock> blocks_of(const Blueprint& net) {
  std::vector<BlueprintBlock> kinds;
  for (BlueprintBlock& block : single_blocks(net)) {
    if (!kinds.empty() && alike(net, kinds.back(), block)) {
      kinds.back().numbers.push_back(block.numbers.front());
    } else {
      kinds.push_back(std::move(block));
    }
  }
  return kinds;
}

}  // namespace shardsim::models
