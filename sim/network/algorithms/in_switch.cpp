#include "sim/network/algorithms/in_switch.hpp"

#include "sim/network/algorithms/tree.hpp"

namespace shardsim::network {
namespace {

Messages whole() { return {.chunk = slice}; }
Messages part(std::int64_t ranks) { return {.parts = ranks, .chunk = slice}; }

// From every rank to the switch; each waits for the stream that its rank has received, if any.
std::vector<Wait> add_up(std::int64_t ranks, std::uint32_t kind, const std::vector<Wait>& received,
                         Schedule& schedule) {
  const auto hub = static_cast<std::int32_t>(ranks);
  std::vector<Wait> sent;
  for (std::int32_t rank = 0; rank < hub; ++rank) {
    std::vector<Wait> waits;
    if (!received.empty()) waits.push_back(received[static_cast<std::size_t>(rank)]);
    sent.push_back({schedule.add(rank, hub, kind, waits), Until::same});
  }
  return sent;
}

// From the switch to every rank, as soon as it has the chunk from all.
std::vector<Wait> add_down(std::int64_t ranks, std::uint32_t kind, const std::vector<Wait>& sent,
                           Schedule& schedule) {
  const auto hub = static_cast<std::int32_t>(ranks);
  std::vector<Wait> received;
  for (std::int32_t rank = 0; rank < hub; ++rank) {
    received.push_back({schedule.add(hub, rank, kind, sent), Until::same});
  }
  return received;
}

std::vector<Wait> add_reduce_scatter(std::int64_t ranks, Schedule& schedule) {
  const std::uint32_t up = schedule.kind(whole());
  const std::uint32_t down = schedule.kind(part(ranks));
  return add_down(ranks, down, add_up(ranks, up, {}, schedule), schedule);
}

void add_all_gather(std::int64_t ranks, const std::vector<Wait>& received, Schedule& schedule) {
  const std::uint32_t up = schedule.kind(part(ranks));
  const std::uint32_t down = schedule.kind(whole());
  add_down(ranks, down, add_up(ranks, up, received, schedule), schedule);
}

}  // namespace

Schedule in_switch_all_gather(std::int64_t ranks) {
  Schedule schedule;
  add_all_gather(ranks, {}, schedule);
  return schedule;
}

Schedule in_switch_reduce_scatter(std::int64_t ranks) {
  Schedule schedule;
  add_reduce_scatter(ranks, schedule);
  return schedule;
}

Schedule in_switch_all_reduce(std::int64_t ranks) {
  Schedule schedule;
  const std::vector<Wait> received = add_reduce_scatter(ranks, schedule);
  add_all_gather(ranks, received, schedule);
  return schedule;
}

std::optional<Seconds> in_switch_all_reduce_time(std::int64_t ranks, Bytes payload,
                                                 const Wire& hop) {
  const auto chunks = static_cast<double>(whole().count(payload));
  const Seconds chunk = whole().bytes(payload) / hop.bandwidth;
  const Seconds sum = part(ranks).bytes(payload) / hop.bandwidth;
  const bool is_in_time = hop.latency * 2.0 + sum * 3.0 <= chunk;
  if (chunks < 3 || !is_in_time) return std::nullopt;
  return hop.latency * 4.0 + chunk * (chunks + 1) + sum * (chunks + 3);
}

FlowTime in_switch_time(std::int64_t ranks, Bytes payload, const Way& hop) {
  const std::int64_t chunks = whole().count(payload);
  return 2 * hop.latency() + chunks * hop.transfer(whole().bytes(payload)) +
         hop.transfer(part(ranks).bytes(payload));
}

}  // namespace shardsim::network
