#include "sim/nccl/channel_walk.hpp"

#include <algorithm>
#include <cmath>

namespace shardsim::nccl {
namespace {

constexpr std::int64_t gigabyte = 1'000'000'000;

// Links of one GPU and of its NIC.
enum Link : std::size_t { nvlink_out, nvlink_in, pcie_out, pcie_in, nic_out, nic_in, link_kinds };

std::size_t link_of(int owner, Link link) {
  return static_cast<std::size_t>(owner) * link_kinds + link;
}

std::int64_t whole(Bandwidth bandwidth) { return std::llround(bandwidth.count()); }

}  // namespace

ChannelWalk::ChannelWalk(const SwitchNode& node, bool several_nodes)
    : gpus_(static_cast<int>(node.gpus)),
      gpus_per_pcie_switch_(static_cast<int>(node.gpus_per_pcie_switch)),
      several_nodes_(several_nodes),
      links_(static_cast<std::size_t>(gpus_) * link_kinds),
      nic_rate_(static_cast<std::size_t>(gpus_), whole(node.nic)) {
  for (int g = 0; g < gpus_; ++g) {
    for (const Link link : {nvlink_out, nvlink_in}) links_[link_of(g, link)] = whole(node.nvlink);
    for (const Link link : {pcie_out, pcie_in}) links_[link_of(g, link)] = whole(node.pcie);
    for (const Link link : {nic_out, nic_in}) {
      links_[link_of(g, link)] = whole(std::min(node.pcie, node.nic));
    }
  }
}

std::int64_t ChannelWalk::run(const WalkRules& rules, std::int64_t budget, Placed& best) {
  rules_ = rules;
  steps_ = budget;
  best_ = &best;
  next_channel();
  return steps_;
}

ChannelWalk::Plan ChannelWalk::plan_of(Order order) const {
  const bool ring = rules_.shape == Shape::ring;
  if (several_nodes_) return {ring ? gpus_ - 1 : 0, -1, order};
  return {-1, ring ? gpus_ - 1 : -1, order};
}

void ChannelWalk::next_channel() {
  const bool first = channels_.empty();
  channels_.push_back({std::vector<int>(static_cast<std::size_t>(gpus_)),
                       std::vector<bool>(static_cast<std::size_t>(gpus_)), -1, -1});
  if (several_nodes_) {
    const auto done = static_cast<int>(channels_.size()) - 1;
    for (int i = 0; i < gpus_; ++i) start_at_nic((done + i) % gpus_);
  } else {
    if (first) {
      start_at_gpu(0, Order::by_number);
    } else {
      start_at_gpu(channels_[channels_.size() - 2].gpus[0], Order::as_before);
    }
    if (first || !rules_.same_channels) {
      for (int g = 0; g < gpus_; ++g) start_at_gpu(g, Order::free);
    }
  }
  channels_.pop_back();
}

void ChannelWalk::start_at_gpu(int gpu, Order order) { enter(gpu, 0, {}, 0, plan_of(order)); }

void ChannelWalk::start_at_nic(int nic) {
  // NCCL counts a NIC's rate in whole GB/s here.
  const std::int64_t rate = rules_.inter / gigabyte * gigabyte;
  std::int64_t& left = nic_rate_[static_cast<std::size_t>(nic)];
  if (left < rate) return;
  const std::size_t done = channels_.size() - 1;
  const bool crossing = rules_.shape == Shape::ring && rules_.cross_nics;
  // Crossing rings come in pairs, the second the way back of the first.
  if (crossing && done % 2 == 1 && nic != channels_[done - 1].last_nic) return;
  channels_.back().first_nic = nic;
  left -= rate;
  if (done > 0 && rules_.same_channels) {
    const int gpu = channels_[done - 1].gpus[0];
    if (beside(gpu, nic)) {
      enter(gpu, 0, path_from_nic(nic, gpu), rules_.inter, plan_of(Order::as_before));
    }
  } else {
    enter(nic, 0, path_from_nic(nic, nic), rules_.inter, plan_of(Order::free));
    for (int g = 0; g < gpus_; ++g) {
      if (g == nic || !beside(g, nic)) continue;
      enter(g, 0, path_from_nic(nic, g), rules_.inter, plan_of(Order::free));
    }
  }
  left += rate;
}

void ChannelWalk::enter(int gpu, int position, const Path& path, std::int64_t speed,
                        const Plan& plan) {
  if (!take(path, speed)) return;
  const std::size_t channel = channels_.size() - 1;
  channels_[channel].used[static_cast<std::size_t>(gpu)] = true;
  visit(gpu, position, plan);
  channels_[channel].used[static_cast<std::size_t>(gpu)] = false;
  give(path, speed);
}

void ChannelWalk::visit(int gpu, int position, const Plan& plan) {
  if (steps_ <= 0) return;
  --steps_;
  if (position == gpus_) {
    channel_done();
    return;
  }
  channels_.back().gpus[static_cast<std::size_t>(position)] = gpu;
  if (position == plan.back_to_nic) {
    leave_by_nic(gpu, position, plan);
  } else if (position < gpus_ - 1) {
    go_on(gpu, position, plan);
  } else if (position == plan.back_to_first) {
    const int first = channels_.back().gpus[0];
    const Path path = path_to_gpu(gpu, first);
    if (!take(path, rules_.intra)) return;
    visit(first, gpus_, {});
    give(path, rules_.intra);
  } else {
    visit(gpu, gpus_, {});
  }
}

void ChannelWalk::leave_by_nic(int gpu, int position, const Plan& plan) {
  const bool balanced = rules_.shape == Shape::balanced_tree;
  const std::int64_t speed = balanced ? rules_.inter / 2 : rules_.inter;
  Plan rest = plan;
  rest.back_to_nic = balanced && position == 0 ? 1 : -1;
  for (const int nic : nics_of(gpu)) {
    if (!may_leave_by(nic, position)) continue;
    const Path path = path_to_nic(gpu, nic);
    if (!take(path, speed)) continue;
    channels_.back().last_nic = nic;
    visit(gpu, position, rest);
    give(path, speed);
  }
}

void ChannelWalk::go_on(int gpu, int position, const Plan& plan) {
  Hops next;
  const auto after = static_cast<std::size_t>(position) + 1;
  switch (plan.order) {
    case Order::by_number:
      next.add(position + 1);
      break;
    case Order::as_before:
      next.add(channels_[channels_.size() - 2].gpus[after]);
      break;
    case Order::free:
      next = neighbours(gpu);
      break;
  }
  for (std::size_t i = 0; i < next.count; ++i) {
    const int to = next.gpus[i];
    enter(to, position + 1, path_to_gpu(gpu, to), rules_.intra, plan);
  }
}

void ChannelWalk::channel_done() {
  const auto done = static_cast<std::int64_t>(channels_.size());
  const bool more = done * rules_.intra > best_->channels * best_->rules.intra;
  if (done >= rules_.fewest && more) {
    *best_ = {done, rules_};
    if (done == rules_.most) steps_ = -1;
  }
  if (done < rules_.most) next_channel();
}

// A switch likes few peers: only the GPUs next by number are tried. Rings go downwards first, trees
// upwards, plain trees upwards only.
ChannelWalk::Hops ChannelWalk::neighbours(int gpu) const {
  const int up = (gpu + 1) % gpus_;
  const int down = (gpu + gpus_ - 1) % gpus_;
  const std::vector<bool>& used = channels_.back().used;
  Hops hops;
  const auto try_next = [&](int g) {
    if (!used[static_cast<std::size_t>(g)]) hops.add(g);
  };
  const bool both = rules_.shape != Shape::plain_tree && up != down;
  if (both && rules_.shape == Shape::ring) try_next(down);
  try_next(up);
  if (both && rules_.shape == Shape::balanced_tree) try_next(down);
  return hops;
}

std::vector<int> ChannelWalk::nics_of(int gpu) const {
  std::vector<int> nics = {gpu};
  for (int nic = 0; nic < gpus_; ++nic) {
    if (nic != gpu && beside(gpu, nic)) nics.push_back(nic);
  }
  // Nothing returns over another GPU: trees leave such NICs out.
  if (rules_.shape != Shape::ring || rules_.farthest < PathType::gpu_beside_nic) return nics;
  for (int nic = 0; nic < gpus_; ++nic) {
    if (!beside(gpu, nic)) nics.push_back(nic);
  }
  return nics;
}

bool ChannelWalk::may_leave_by(int nic, int position) const {
  const Channel& channel = channels_.back();
  if (rules_.shape == Shape::balanced_tree && position != 0 && nic != channel.last_nic) {
    return false;
  }
  if (rules_.shape == Shape::plain_tree || !rules_.cross_nics) return nic == channel.first_nic;
  if (rules_.shape != Shape::ring) return true;
  const std::size_t done = channels_.size() - 1;
  return done % 2 == 0 || nic == channels_[done - 1].first_nic;
}

bool ChannelWalk::beside(int gpu, int nic) const {
  return gpu / gpus_per_pcie_switch_ == nic / gpus_per_pcie_switch_;
}

ChannelWalk::Path ChannelWalk::path_to_gpu(int from, int to) const {
  return {{link_of(from, nvlink_out), link_of(to, nvlink_in)}, 2};
}

ChannelWalk::Path ChannelWalk::path_to_nic(int gpu, int nic) const {
  if (beside(gpu, nic)) return {{link_of(gpu, pcie_out), link_of(nic, nic_out)}, 2};
  return {{link_of(gpu, nvlink_out), link_of(nic, nvlink_in), link_of(nic, pcie_out),
           link_of(nic, nic_out)},
          4};
}

ChannelWalk::Path ChannelWalk::path_from_nic(int nic, int gpu) const {
  return {{link_of(nic, nic_in), link_of(gpu, pcie_in)}, 2};
}

bool ChannelWalk::take(const Path& path, std::int64_t speed) {
  for (std::size_t i = 0; i < path.count; ++i) {
    if (links_[path.links[i]] < speed) return false;
  }
  give(path, -speed);
  return true;
}

void ChannelWalk::give(const Path& path, std::int64_t speed) {
  for (std::size_t i = 0; i < path.count; ++i) links_[path.links[i]] += speed;
}

}  // namespace shardsim::nccl
