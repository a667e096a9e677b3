#include "sim/nccl/graph_search.hpp"

#include "sim/nccl/tuner_constants.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace shardsim::nccl {
namespace {

constexpr std::int64_t most_channels = 64;  // MAXCHANNELS (src/include/device.h)
constexpr std::int64_t steps_alike = std::int64_t{1} << 8;
constexpr std::int64_t steps_unlike = std::int64_t{1} << 14;
constexpr std::int64_t steps_in_all = std::int64_t{1} << 19;
constexpr double slowest_worth_trying = 0.49;  // of the speed found

// Channels at least this fast are split in two; from Hopper on those between the two speeds only
// where there are few (src/graph/search.cc, ncclTopoDupChannels).
constexpr Bandwidth fast_enough_to_split{25e9};
constexpr Bandwidth always_split{50e9};
constexpr std::int64_t few_channels = 4;
// Rings between nodes that are faster and fewer than this get more blocks (src/graph/connect.cc).
constexpr Bandwidth fast_ring{45e9};
constexpr std::int64_t few_ring_channels = 16;

// What one channel may have, in GB/s, fastest first (src/graph/search.cc: speedArrayIntra,
// speedArrayInter, sm90SpeedArrayIntra, ..., sm100SpeedArrayInter).
const std::vector<double> speeds_in_node = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
const std::vector<double> speeds_across = {48, 30, 28, 24, 20, 18,  15,  12,   10,  9,
                                           7,  6,  5,  4,  3,  2.4, 1.2, 0.24, 0.12};
const std::vector<double> hopper_speeds_in_node = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
const std::vector<double> hopper_speeds_across = {48, 45, 42, 40, 30,  24,  22,   20,  17.5,
                                                  15, 12, 6,  3,  2.4, 1.2, 0.24, 0.12};
const std::vector<double> blackwell_speeds_in_node = {90, 80, 70, 60, 50, 45,
                                                      40, 30, 24, 20, 19, 18};
const std::vector<double> blackwell_speeds_across = {
    96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};

Bandwidth bandwidth_of(std::int64_t speed) { return Bandwidth(static_cast<double>(speed)); }

class GraphSearch {
 public:
  GraphSearch(const SwitchNode& node, bool several_nodes)
      : node_(node),
        several_nodes_(several_nodes),
        speeds_(channel_speeds(node.compute_capability, several_nodes)),
        walk_(node, several_nodes) {
    const Bandwidth to_nic = std::min(node.pcie, node.nic);
    fastest_ = std::llround((several_nodes ? to_nic : node.nvlink).count());
    total_ = std::llround((several_nodes ? std::max(node.pcie, node.nvlink) : node.nvlink).count());
  }

  [[nodiscard]] Placed find(Shape shape, std::int64_t fewest, std::int64_t most);
  [[nodiscard]] ChannelGraph find_nvls() const;
  [[nodiscard]] Placed find_collnet_direct();

 private:
  // The first speed that one channel, and all that there must be, could have.
  [[nodiscard]] std::size_t first_speed(Shape shape, std::int64_t fewest) const;
  // The first speed that is not above `speed`.
  [[nodiscard]] std::size_t index_of(std::int64_t speed) const;
  // All that relaxes at one speed. True when the search is over.
  bool at_speed(WalkRules rules, Shape shape);
  bool at_distance(WalkRules rules, Shape shape);
  bool in_shapes(WalkRules rules, Shape shape);
  bool alike_or_not(WalkRules rules);
  void double_channels();
  void speed_up(Shape shape);
  // So many heads of CollNetDirect at these speeds.
  [[nodiscard]] bool fits_heads(std::int64_t heads, std::int64_t intra, std::int64_t inter) const;

  const SwitchNode& node_;
  bool several_nodes_;
  std::vector<std::int64_t> speeds_;
  ChannelWalk walk_;
  std::int64_t fastest_ = 0;
  std::int64_t total_ = 0;
  std::int64_t steps_left_ = 0;
  Placed best_;
};

std::size_t GraphSearch::index_of(std::int64_t speed) const {
  std::size_t i = 0;
  while (i + 1 < speeds_.size() && speeds_[i] > speed) ++i;
  return i;
}

std::size_t GraphSearch::first_speed(Shape shape, std::int64_t fewest) const {
  // A chain has one hop less than a ring: its GPUs' links look that much wider.
  const auto n = static_cast<double>(node_.gpus);
  const double wider = shape != Shape::ring && node_.gpus > 1 ? n / (n - 1) : 1;
  const double total = static_cast<double>(total_) * wider;
  const auto too_fast = [&](std::int64_t speed) {
    return speed > fastest_ || static_cast<double>(speed * fewest) > total;
  };
  std::size_t i = 0;
  while (i + 1 < speeds_.size() && too_fast(speeds_[i])) ++i;
  return i;
}

bool GraphSearch::alike_or_not(WalkRules rules) {
  for (const bool same : {true, false}) {
    rules.same_channels = same;
    const std::int64_t budget = same ? steps_alike : steps_unlike;
    steps_left_ -= budget;
    const std::int64_t left = walk_.run(rules, budget, best_);
    if (left == -1 || best_.channels * best_.rules.inter >= total_) return true;
    if (!same) steps_left_ += left;
  }
  return steps_left_ < 0 && best_.channels > 0;
}

bool GraphSearch::in_shapes(WalkRules rules, Shape shape) {
  if (alike_or_not(rules)) return true;
  if (shape != Shape::balanced_tree || node_.compute_capability < hopper_capability) return false;
  rules.shape = Shape::plain_tree;
  return alike_or_not(rules);
}

bool GraphSearch::at_distance(WalkRules rules, Shape shape) {
  // NCCL relaxes the paths inside the node, too. Behind a switch that changes nothing, but uses up
  // its steps as long as nothing is found.
  for (auto inside = PathType::nvlink;;
       inside = static_cast<PathType>(static_cast<int>(inside) + 1)) {
    if (in_shapes(rules, shape)) return true;
    if (!several_nodes_ || inside >= rules.farthest || best_.channels > 0) return false;
  }
}

bool GraphSearch::at_speed(WalkRules rules, Shape shape) {
  for (const bool cross : {false, true}) {
    if (cross && (!several_nodes_ || node_.gpus == 1 || shape == Shape::plain_tree)) break;
    rules.cross_nics = cross;
    for (rules.farthest = PathType::pcie_switch;;
         rules.farthest = static_cast<PathType>(static_cast<int>(rules.farthest) + 1)) {
      if (at_distance(rules, shape)) return true;
      if (!several_nodes_ || rules.farthest >= PathType::gpu_beside_nic) break;
    }
  }
  return false;
}

Placed GraphSearch::find(Shape shape, std::int64_t fewest, std::int64_t most) {
  best_ = {};
  steps_left_ = steps_in_all;
  for (std::size_t i = first_speed(shape, fewest); i < speeds_.size(); ++i) {
    const double share = best_.channels == 0 ? 1
                                             : static_cast<double>(speeds_[i]) /
                                                   static_cast<double>(best_.rules.inter);
    if (share <= slowest_worth_trying) break;
    WalkRules rules;
    rules.shape = shape;
    rules.intra = rules.inter = speeds_[i];
    rules.fewest = fewest;
    rules.most = most;
    if (at_speed(rules, shape)) break;
  }
  if (best_.channels == 0) return best_;
  double_channels();
  speed_up(shape);
  return best_;
}

void GraphSearch::double_channels() {
  const Bandwidth speed = bandwidth_of(best_.rules.intra);
  if (!are_doubled(best_.channels, speed, node_.compute_capability)) return;
  const std::int64_t doubled = std::min(best_.channels * 2, best_.rules.most);
  const std::int64_t parts = ceil_div(doubled, best_.channels);
  best_.rules.intra /= parts;
  best_.rules.inter /= parts;
  best_.channels = doubled;
}

// Rings as a whole; of trees the part inside the node, to less than twice the speed across.
void GraphSearch::speed_up(Shape shape) {
  WalkRules rules = best_.rules;
  rules.fewest = best_.channels;
  std::size_t i = index_of(best_.rules.inter);
  rules.intra = rules.inter = speeds_[i];
  while (i > 0) {
    if (shape == Shape::ring) {
      rules.intra = rules.inter = speeds_[--i];
    } else {
      if (rules.intra != best_.rules.intra || rules.intra >= 2 * rules.inter) return;
      rules.intra = speeds_[--i];
    }
    if (walk_.run(rules, rules.same_channels ? steps_alike : steps_unlike, best_) == 0) return;
  }
}

ChannelGraph GraphSearch::find_nvls() const {
  ChannelGraph graph;
  if (node_.compute_capability < hopper_capability || node_.gpus < 2) return graph;
  const std::int64_t most = std::min(node_.gpus, most_nvls_ranks);
  const std::int64_t fewest = several_nodes_ ? 1 : most;
  std::int64_t intra = 0;
  for (std::size_t i = first_speed(Shape::plain_tree, fewest); i < speeds_.size(); ++i) {
    if (graph.channels > 0 &&
        static_cast<double>(speeds_[i]) <= slowest_worth_trying * static_cast<double>(intra)) {
      break;
    }
    const std::int64_t channels = std::min(most, total_ / speeds_[i] - 1);
    const bool better = channels > graph.channels || channels * speeds_[i] > graph.channels * intra;
    if (channels < fewest || !better) continue;
    graph.channels = channels;
    intra = speeds_[i];
    if (channels == most || channels * intra >= total_) break;
  }
  if (graph.channels == 0) return graph;
  std::int64_t inter = intra;
  for (std::size_t i = index_of(intra); i > 0 && inter < 2 * intra; --i) {
    if (several_nodes_ && speeds_[i - 1] > fastest_) break;
    inter = speeds_[i - 1];
  }
  graph.intra = bandwidth_of(intra);
  graph.inter = bandwidth_of(inter);
  graph.same_channels = false;
  graph.network_latency = several_nodes_ ? node_.nic_latency : Seconds(0);
  return graph;
}

bool GraphSearch::fits_heads(std::int64_t heads, std::int64_t intra, std::int64_t inter) const {
  const std::int64_t others = node_.gpus - 1;
  return inter <= fastest_ &&
         intra * (others + heads - 1) <= std::llround(node_.nvlink.count()) * others;
}

Placed GraphSearch::find_collnet_direct() {
  if (node_.gpus == 1) return find(Shape::plain_tree, 1, 1);
  best_ = {};
  const std::int64_t most = std::min(node_.gpus, most_collnet_ranks);
  for (std::size_t i = first_speed(Shape::plain_tree, 1); i < speeds_.size(); ++i) {
    const auto found = static_cast<double>(best_.rules.inter);
    if (best_.channels > 0 && static_cast<double>(speeds_[i]) <= slowest_worth_trying * found)
      break;
    std::int64_t heads = most;
    while (heads > 0 && !fits_heads(heads, speeds_[i], speeds_[i])) --heads;
    if (heads * speeds_[i] <= best_.channels * best_.rules.intra) continue;
    best_.channels = heads;
    best_.rules.intra = best_.rules.inter = speeds_[i];
    best_.rules.most = most;
    if (heads == most || heads * speeds_[i] >= total_) break;
  }
  if (best_.channels == 0) return best_;
  double_channels();
  const std::int64_t inter = best_.rules.inter;
  for (std::size_t i = index_of(inter); i > 0 && best_.rules.intra < 2 * inter; --i) {
    if (!fits_heads(best_.channels, speeds_[i - 1], inter)) break;
    best_.rules.intra = speeds_[i - 1];
  }
  return best_;
}

ChannelGraph graph_of(const Placed& placed, const SwitchNode& node, bool several_nodes) {
  ChannelGraph graph;
  graph.channels = placed.channels;
  graph.intra = bandwidth_of(placed.rules.intra);
  graph.inter = bandwidth_of(placed.rules.inter);
  graph.intra_path = node.gpus == 1 ? PathType::local : PathType::nvlink;
  graph.inter_path = placed.rules.farthest;
  graph.same_channels = placed.rules.same_channels;
  graph.network_latency = several_nodes ? node.nic_latency : Seconds(0);
  return graph;
}

}  // namespace

std::vector<std::int64_t> channel_speeds(int compute_capability, bool several_nodes) {
  const std::vector<double>& list =
      compute_capability >= blackwell_capability
          ? (several_nodes ? blackwell_speeds_across : blackwell_speeds_in_node)
      : compute_capability >= hopper_capability
          ? (several_nodes ? hopper_speeds_across : hopper_speeds_in_node)
          : (several_nodes ? speeds_across : speeds_in_node);
  std::vector<std::int64_t> speeds;
  for (const double gigabytes : list) speeds.push_back(std::llround(gigabytes * 1e9));
  return speeds;
}

bool are_doubled(std::int64_t channels, Bandwidth speed, int compute_capability) {
  if (speed < fast_enough_to_split) return false;
  return compute_capability <= ampere_capability || speed >= always_split ||
         channels <= few_channels;
}

std::int64_t ring_blocks(std::int64_t channels) { return std::min(most_channels, 2 * channels); }

std::int64_t blocks_between_nodes(std::int64_t blocks, Bandwidth speed, int compute_capability) {
  const bool are_few =
      compute_capability >= hopper_capability && speed > fast_ring && blocks < few_ring_channels;
  return are_few ? 2 * blocks : blocks;
}

std::optional<NodeGraphs> search_graphs(const SwitchNode& node, bool several_nodes) {
  assert(node.gpus > 1 || several_nodes);
  assert(node.compute_capability >= ampere_capability || !several_nodes);
  GraphSearch search(node, several_nodes);
  const Placed ring = search.find(Shape::ring, 1, most_channels / 2);
  const Shape shape = node.gpus == 1 ? Shape::plain_tree : Shape::balanced_tree;
  const Placed tree = search.find(shape, ring.channels, ring.channels);
  if (ring.channels == 0 || tree.channels == 0) return std::nullopt;
  NodeGraphs graphs;
  graphs.ring = graph_of(ring, node, several_nodes);
  graphs.tree = graph_of(tree, node, several_nodes);
  graphs.nvls = search.find_nvls();
  graphs.plain_tree = tree.rules.shape == Shape::plain_tree;
  graphs.ring.channels = graphs.tree.channels = std::min(ring.channels, tree.channels);
  graphs.ring_channels = ring_blocks(graphs.ring.channels);
  if (several_nodes && node.network_reduces) {
    graphs.collnet_chain =
        graph_of(search.find(Shape::plain_tree, ring.channels, ring.channels), node, several_nodes);
    graphs.collnet_direct = graph_of(search.find_collnet_direct(), node, several_nodes);
    // src/graph/connect.cc: half as many again, to make use of a faster node.
    const bool is_faster = graphs.collnet_chain.intra > graphs.collnet_chain.inter;
    if (is_faster && node.gpus > 1) {
      graphs.ring_channels = std::min(most_channels, graphs.ring_channels * 3 / 2);
    }
  }
  if (several_nodes) {
    graphs.ring_channels =
        blocks_between_nodes(graphs.ring_channels, graphs.ring.intra, node.compute_capability);
  }
  return graphs;
}

void use_graphs(const NodeGraphs& graphs, Communicator& communicator) {
  communicator.ring = graphs.ring;
  communicator.tree = graphs.tree;
  communicator.nvls = graphs.nvls;
  communicator.collnet_direct = graphs.collnet_direct;
  communicator.collnet_chain = graphs.collnet_chain;
  communicator.plain_tree = graphs.plain_tree;
  communicator.ring_channels = graphs.ring_channels;
}

}  // namespace shardsim::nccl
