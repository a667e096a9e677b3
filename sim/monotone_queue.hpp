// Events by time, all those of one moment at once. Time never goes back, which makes it a radix
// heap (Ahuja, Mehlhorn, Orlin and Tarjan, Journal of the ACM 37(2), 1990): an event lies in the
// bucket of the highest bit in which its time differs from the last moment's, and comes down to
// lower ones as time goes on. O(bits) for an event in all; nothing is compared.
//
//   queue.push({FlowTime(5), ...});
//   for (const Event& event : queue.pop_moment()) ...   // in the order in which they were pushed
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardsim {

// Event: with a `time`, a Quantity of whole numbers not below zero.
template <class Event>
class MonotoneQueue {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }

  // Not before the last moment.
  void push(const Event& event) {
    assert(event.time.count() >= last_);
    buckets_[bucket_of(event)].push_back(event);
    ++size_;
  }

  // Those of the earliest time; valid until the next call. Not when empty().
  const std::vector<Event>& pop_moment() {
    if (buckets_.front().empty()) refill();
    moment_.swap(buckets_.front());
    buckets_.front().clear();
    size_ -= moment_.size();
    return moment_;
  }

 private:
  static constexpr std::size_t buckets = 64;  // for the 63 bits of a time, and those of the moment

  [[nodiscard]] std::size_t bucket_of(const Event& event) const {
    return static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(event.time.count() ^ last_)));
  }

  void refill() {
    assert(!empty());
    std::vector<Event>& first =
        *std::find_if(buckets_.begin(), buckets_.end(), [](const auto& b) { return !b.empty(); });
    const auto earlier = [](const Event& a, const Event& b) { return a.time < b.time; };
    last_ = std::min_element(first.begin(), first.end(), earlier)->time.count();
    for (const Event& event : first) buckets_[bucket_of(event)].push_back(event);
    first.clear();
  }

  std::array<std::vector<Event>, buckets> buckets_;
  std::vector<Event> moment_;
  std::int64_t last_ = 0;
  std::size_t size_ = 0;
};

}  // namespace shardsim
