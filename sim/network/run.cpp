// run(): every stream sends its messages as fast as what they wait for lets it.
#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <stdexcept>

#include "base/index.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::network {
namespace {

// Who waits for a stream, by stream; in one list.
class Dependents {
 public:
  explicit Dependents(const Traffic& traffic) : first_(traffic.streams.size() + 1, 0) {
    for (const Wait& wait : traffic.waits) ++first_[at(wait.stream) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    waiting_.resize(traffic.waits.size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t id = 0; id < traffic.streams.size(); ++id) {
      for (const Wait& wait : traffic.waits_of(traffic.streams[id])) {
        waiting_[next[at(wait.stream)]++] = {static_cast<StreamId>(id), wait.until};
      }
    }
  }

  [[nodiscard]] std::span<const Wait> of(StreamId id) const {
    return std::span(waiting_).subspan(first_[at(id)], first_[at(id) + 1] - first_[at(id)]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<Wait> waiting_;
};

class Run {
 public:
  Run(const Traffic& traffic, Bytes payload, Repeats repeats)
      : traffic_(traffic),
        dependents_(traffic),
        skips_(repeats == Repeats::skipped),
        flows_(traffic.capacities),
        states_(traffic.streams.size()) {
    for (const Messages& kind : traffic.kinds) bytes_.push_back(kind.bytes(payload));
    for (std::size_t id = 0; id < states_.size(); ++id) {
      const Messages& kind = traffic.kinds[traffic.streams[id].kind];
      states_[id].rest = kind.count(payload);
      states_[id].is_cut = kind.chunk > Bytes(0);
      if (states_[id].is_cut && ready_.empty()) ready_.resize(states_.size());
    }
  }

  FlowTime run() {
    for (std::size_t id = 0; id < states_.size(); ++id) go_on(static_cast<StreamId>(id));
    FlowTime end{0};
    while (flows_.advance()) {
      end = flows_.now();
      under_way_ -= flows_.finished().size();
      const bool is_quiet = under_way_ == 0;
      begun_.clear();
      for (const FlowId flow : flows_.finished()) end_message(stream_[at(flow)]);
      if (skips_) skip_rounds(is_quiet);
    }
    assert(std::all_of(states_.begin(), states_.end(), [](const State& s) { return s.rest == 0; }));
    return end + skipped_;
  }

 private:
  struct State {
    std::int64_t done = 0;  // messages that have arrived
    std::int64_t rest = 0;  // the others
    bool sends = false;
    bool is_cut = false;  // in chunks
  };
  // When chunks became ready to be sent.
  struct Ready {
    FlowTime time{0};
    std::int64_t end = 0;  // the first that is later
  };

  [[nodiscard]] State& state(StreamId id) { return states_[at(id)]; }

  [[nodiscard]] bool is_ready(StreamId id) {
    const std::int64_t number = state(id).done;
    const auto waits = traffic_.waits_of(traffic_.streams[at(id)]);
    return std::all_of(waits.begin(), waits.end(), [&](const Wait& wait) {
      const State& awaited = state(wait.stream);
      if (wait.until == Until::previous) return awaited.done >= number;
      if (wait.until == Until::same) return awaited.done > number;
      return awaited.rest == 0;
    });
  }

  // Sends the next message if there is one, and nothing more to wait for.
  void go_on(StreamId id) {
    if (state(id).is_cut) return go_on_with_chunks(id);
    if (state(id).sends || state(id).rest == 0 || !is_ready(id)) return;
    send(id, flows_.now() + traffic_.streams[at(id)].latency);
  }

  // A chunk is on its way while the one before is still received: it takes its latency from when it
  // was ready, and its bytes follow those of the one before.
  void go_on_with_chunks(StreamId id) {
    std::deque<Ready>& ready = ready_[at(id)];
    const std::int64_t end = ready_chunks(id);
    if (end > (ready.empty() ? state(id).done : ready.back().end)) {
      ready.push_back({flows_.now(), end});
    }
    if (state(id).sends || state(id).rest == 0 || ready.empty()) return;
    send(id, std::max(flows_.now(), ready.front().time + traffic_.streams[at(id)].latency));
    if (ready.front().end == state(id).done + 1) ready.pop_front();
  }

  // How many have come that are to be passed on, or all.
  [[nodiscard]] std::int64_t ready_chunks(StreamId id) {
    std::int64_t end = state(id).done + state(id).rest;
    for (const Wait& wait : traffic_.waits_of(traffic_.streams[at(id)])) {
      const State& awaited = state(wait.stream);
      assert(wait.until != Until::previous);
      if (wait.until == Until::same) end = std::min(end, awaited.done);
      if (wait.until == Until::last && awaited.rest > 0) end = 0;
    }
    return end;
  }

  void send(StreamId id, FlowTime begin) {
    state(id).sends = true;
    const TrafficStream& stream = traffic_.streams[at(id)];
    const FlowId flow = flows_.start(begin, bytes_[stream.kind], traffic_.crossings_of(stream));
    if (at(flow) >= stream_.size()) stream_.resize(at(flow) + 1);
    stream_[at(flow)] = id;
    ++under_way_;
    if (skips_) begun_.push_back(id);
  }

  void end_message(StreamId id) {
    State& sender = state(id);
    sender.sends = false;
    ++sender.done;
    --sender.rest;
    go_on(id);
    for (const Wait& wait : dependents_.of(id)) {
      if (wait.until != Until::last || sender.rest == 0) go_on(wait.stream);
    }
  }

  // What has been sent now is all that is under way. If it is what was sent when that was so the
  // last time, with nothing in between, rounds go on like this one for a while.
  void skip_rounds(bool is_quiet) {
    if (!is_quiet || begun_.empty() || !ready_.empty()) {
      round_.clear();
      return;
    }
    if (begun_ != round_) {
      round_ = begun_;
      round_begin_ = flows_.now();
      return;
    }
    const std::int64_t rounds = rounds_alike();
    for (const StreamId id : begun_) {
      state(id).done += rounds;
      state(id).rest -= rounds;
    }
    const FlowTime length = flows_.now() - round_begin_;
    const FlowTime most(std::numeric_limits<std::int64_t>::max() / 2);
    if (length > FlowTime(0) && rounds > (most - skipped_).count() / length.count()) {
      throw std::range_error("flows take longer than 2.5 hours");
    }
    skipped_ += rounds * length;
    round_.clear();
  }

  // Until a stream sends its last message, or one that waits for a stream which does not go on. Who
  // is not in the round does not join it before: it waits for another one that is not, or for the
  // last message of one that is.
  [[nodiscard]] std::int64_t rounds_alike() {
    std::int64_t rounds = std::numeric_limits<std::int64_t>::max();
    for (const StreamId id : begun_) {
      rounds = std::min(rounds, state(id).rest - 1);
      for (const Wait& wait : traffic_.waits_of(traffic_.streams[at(id)])) {
        const State& awaited = state(wait.stream);
        if (wait.until == Until::last || awaited.sends) continue;
        const std::int64_t ahead = awaited.done - state(id).done;
        rounds = std::min(rounds, wait.until == Until::same ? ahead - 1 : ahead);
      }
    }
    return rounds;
  }

  const Traffic& traffic_;
  Dependents dependents_;
  bool skips_;
  FlowSimulation flows_;
  std::vector<State> states_;
  std::vector<std::deque<Ready>> ready_;  // by stream; empty where nothing is cut
  std::vector<Bytes> bytes_;              // of a message, by kind
  std::vector<StreamId> stream_;          // by flow
  std::size_t under_way_ = 0;             // messages
  std::vector<StreamId> begun_;           // sent in this moment
  std::vector<StreamId> round_;           // sent in the quiet moment before
  FlowTime round_begin_{0};
  FlowTime skipped_{0};
};

}  // namespace

FlowTime run(const Traffic& traffic, Bytes payload, Repeats repeats) {
  return Run(traffic, payload, repeats).run();
}

}  // namespace shardsim::network
