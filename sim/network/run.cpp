// run(): every stream sends its messages as fast as what they wait for lets it.
#include <algorithm>
#include <bit>
#include <cassert>
#include <deque>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/index.hpp"
#include "sim/network/link_recorder.hpp"
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

  // Rounds are not skipped then.
  void record(LinkRecorder& recorder) {
    skips_ = false;
    flows_.record(recorder);
  }

  FlowTime run() {
    for (std::size_t id = 0; id < states_.size(); ++id) go_on(static_cast<StreamId>(id));
    FlowTime end{0};
    while (flows_.advance()) {
      end = flows_.now();
      for (const FlowId flow : flows_.finished()) end_message(stream_[at(flow)]);
      if (skips_) look_for_rounds();
    }
    assert(std::all_of(states_.begin(), states_.end(), [](const State& s) { return s.rest == 0; }));
    return sum(end, skipped_);
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
    const std::int64_t sent = state(id).done + (state(id).sends ? 1 : 0);
    if (end > (ready.empty() ? sent : ready.back().end)) ready.push_back({flows_.now(), end});
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

  // Looks at the moments at which some stream, the pacemaker, has a message done: those numbered
  // 1, 2, 4, 8, ... and the one after each. Chunks that are ready would have to be compared, too:
  // where there are any it looks at nothing.
  void look_for_rounds() {
    if (!ready_.empty()) return;
    if (pacemaker_ == nobody || state(pacemaker_).rest == 0) return choose_pacemaker();
    if (state(pacemaker_).done == paced_) return;
    paced_ = state(pacemaker_).done;
    const auto beat = static_cast<std::uint64_t>(++beats_);
    if (has_moment_) skip_rounds();
    has_moment_ = std::has_single_bit(beat);
    if (has_moment_) moment_ = moment_now();
  }

  void choose_pacemaker() {
    pacemaker_ = nobody;
    has_moment_ = false;
    for (const FlowId flow : flows_.finished()) {
      const StreamId id = stream_[at(flow)];
      if (state(id).rest < 3) continue;  // nothing to skip
      pacemaker_ = id;
      paced_ = state(id).done;
      beats_ = 0;
      return;
    }
  }

  struct Sending {
    StreamId stream = 0;
    FlowSimulation::Situation situation;
  };
  // All that decides how things go on, but for how many messages are left.
  struct Moment {
    FlowTime time{0};
    std::vector<std::int64_t> done;  // by stream
    std::vector<Sending> sending;    // by stream, too
  };

  [[nodiscard]] Moment moment_now() const {
    Moment moment{flows_.now(), {}, {}};
    for (const State& each : states_) moment.done.push_back(each.done);
    for (const FlowSimulation::Situation& situation : flows_.situations()) {
      moment.sending.push_back({stream_[at(situation.flow)], situation});
    }
    std::sort(moment.sending.begin(), moment.sending.end(),
              [](const Sending& a, const Sending& b) { return a.stream < b.stream; });
    return moment;
  }

  static bool are_alike(const Sending& a, const Sending& b) {
    const FlowSimulation::Situation& first = a.situation;
    const FlowSimulation::Situation& second = b.situation;
    return a.stream == b.stream && first.flows == second.flows && first.left == second.left &&
           first.passed == second.passed && first.rest == second.rest && first.rate == second.rate;
  }

  // If all that is under way is as it was a beat ago, rounds go on like this one for a while.
  void skip_rounds() {
    const Moment now = moment_now();
    const std::int64_t rounds = rounds_alike(now);
    if (rounds <= 0) return;
    for (std::size_t id = 0; id < states_.size(); ++id) {
      const std::int64_t messages = rounds * pace_of(id);
      states_[id].done += messages;
      states_[id].rest -= messages;
    }
    paced_ = state(pacemaker_).done;
    const FlowTime length = now.time - moment_.time;
    const FlowTime most(std::numeric_limits<std::int64_t>::max());
    if (rounds > (most - skipped_).count() / length.count()) {
      throw std::range_error("flows take longer than 2.5 hours");
    }
    skipped_ += rounds * length;
  }

  // Until a stream has its last message done, or catches up with one that it waits for and that
  // does not go on. None where a stream waits for one that goes at another pace. Who does not go on
  // waits for one that does not either, or for the last message of one that does: it does not join
  // before.
  [[nodiscard]] std::int64_t rounds_alike(const Moment& now) const {
    if (!std::equal(now.sending.begin(), now.sending.end(), moment_.sending.begin(),
                    moment_.sending.end(), are_alike)) {
      return 0;
    }
    std::int64_t rounds = std::numeric_limits<std::int64_t>::max();
    for (std::size_t id = 0; id < states_.size(); ++id) {
      const State& sender = states_[id];
      const std::int64_t pace = pace_of(id);
      if (pace == 0 && sender.sends) return 0;
      if (pace == 0) continue;
      rounds = std::min(rounds, (sender.rest - 1) / pace);
      for (const Wait& wait : traffic_.waits_of(traffic_.streams[id])) {
        if (wait.until == Until::last) continue;
        const std::int64_t awaited = pace_of(at(wait.stream));
        const std::int64_t ahead = states_[at(wait.stream)].done - sender.done;
        if (awaited == 0) rounds = std::min(rounds, (ahead - 2) / pace);
        if (awaited != 0 && awaited != pace) return 0;
      }
    }
    return rounds;
  }

  // Messages since the last beat.
  [[nodiscard]] std::int64_t pace_of(std::size_t id) const {
    return states_[id].done - moment_.done[id];
  }

  const Traffic& traffic_;
  Dependents dependents_;
  bool skips_;
  FlowSimulation flows_;
  std::vector<State> states_;
  std::vector<std::deque<Ready>> ready_;  // by stream; empty where nothing is cut
  std::vector<Bytes> bytes_;              // of a message, by kind
  std::vector<StreamId> stream_;          // by flow
  // Of looking for rounds.
  StreamId pacemaker_ = nobody;
  std::int64_t paced_ = 0;  // messages of the pacemaker at the last beat
  std::int64_t beats_ = 0;
  bool has_moment_ = false;
  Moment moment_;  // of the last beat
  FlowTime skipped_{0};
};

}  // namespace

FlowTime run(const Traffic& traffic, Bytes payload, Repeats repeats) {
  return Run(traffic, payload, repeats).run();
}

std::vector<LinkHistory> links_over_time(const Traffic& traffic, Bytes payload, FlowTime whole,
                                         std::size_t bins) {
  LinkRecorder recorder(traffic.capacities, whole, bins);
  Run run(traffic, payload, Repeats::simulated);
  run.record(recorder);
  [[maybe_unused]] const FlowTime end = run.run();
  assert(end == whole);
  return std::move(recorder).histories();
}

}  // namespace shardsim::network
