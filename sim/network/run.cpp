// run(): every rank goes through its steps as fast as its partners let it.
#include <algorithm>

#include "base/index.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::network {
namespace {

class Run {
 public:
  explicit Run(const Traffic& traffic)
      : traffic_(traffic), flows_(traffic.capacities), ranks_(traffic.ranks.size()) {
    for (const TrafficPhase& phase : traffic.phases) steps_ += phase.steps;
  }

  FlowTime run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) go_on(static_cast<RankId>(rank));
    while (flows_.advance()) {
      for (const FlowId flow : flows_.finished()) end_step(sender_[at(flow)]);
    }
    return flows_.now();
  }

 private:
  struct Rank {
    std::int64_t sent = 0;       // steps
    std::int64_t received = 0;   // the first step that is awaited
    std::int64_t phase_end = 0;  // step behind the phase
    std::int32_t phase = -1;
    bool sends = false;
    std::vector<std::int64_t> early;  // steps received behind the one that is awaited
  };

  // Begins the next step if the one before is done, passing over those in which it does not send.
  void go_on(RankId id) {
    Rank& rank = ranks_[at(id)];
    while (!rank.sends && rank.received >= rank.sent && rank.sent < steps_) {
      while (rank.sent == rank.phase_end) rank.phase_end += traffic_.phases[at(++rank.phase)].steps;
      const TrafficPhase& phase = traffic_.phases[at(rank.phase)];
      if (phase.senders[at(id)] == nobody) receive(rank, rank.sent);
      const Send& send = phase.sends[at(id)];
      if (send.receiver == nobody) {
        ++rank.sent;
        continue;
      }
      rank.sends = true;
      const FlowId flow =
          flows_.start(flows_.now() + send.latency, phase.bytes, traffic_.crossings_of(send));
      if (at(flow) >= sender_.size()) sender_.resize(at(flow) + 1);
      sender_[at(flow)] = id;
    }
  }

  void end_step(RankId id) {
    Rank& rank = ranks_[at(id)];
    const RankId receiver = traffic_.phases[at(rank.phase)].sends[at(id)].receiver;
    rank.sends = false;
    receive(ranks_[at(receiver)], rank.sent++);
    go_on(id);
    if (receiver != id) go_on(receiver);
  }

  static void receive(Rank& rank, std::int64_t step) {
    if (step != rank.received) return rank.early.push_back(step);
    ++rank.received;
    while (!rank.early.empty()) {
      const auto next = std::find(rank.early.begin(), rank.early.end(), rank.received);
      if (next == rank.early.end()) break;
      rank.early.erase(next);
      ++rank.received;
    }
  }

  const Traffic& traffic_;
  FlowSimulation flows_;
  std::vector<Rank> ranks_;
  std::vector<RankId> sender_;  // by flow
  std::int64_t steps_ = 0;
};

}  // namespace

FlowTime run(const Traffic& traffic) { return Run(traffic).run(); }

}  // namespace shardsim::network
