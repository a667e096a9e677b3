#include <catch2/catch.hpp>

#include "sim/monotone_queue.hpp"
#include "sim/step/engine.hpp"

namespace shardsim {
namespace {

constexpr ResourceId first = 0;
constexpr ResourceId second = 1;

Use all_of(ResourceId resource) { return {resource, all_of_it}; }
Use half_of(ResourceId resource) { return {resource, part_of(0.5)}; }

TEST_CASE("events come by time, those of one moment at once, as they were pushed") {
  struct Event {
    SimTime time{0};
    int number = 0;
  };
  MonotoneQueue<Event> queue;
  for (const Event& event : {Event{SimTime(5), 1}, {SimTime(9), 2}, {SimTime(5), 3}}) {
    queue.push(event);
  }
  std::vector<int> order;
  while (!queue.empty()) {
    for (const Event& event : queue.pop_moment()) order.push_back(event.number);
    order.push_back(0);
  }
  CHECK(order == std::vector<int>{1, 3, 0, 2, 0});
}

// work_sharing.hpp's example: 1.25 x = 1.
TEST_CASE("works grow at one pace until a resource is full") {
  const Uses a{all_of(first)};
  const Uses b{all_of(second), {first, part_of(0.25)}};
  WorkSharing sharing(2);
  const Slot of_a = sharing.join(a);
  CHECK(sharing.update_rates().size() == 1);
  CHECK(sharing.pace(of_a) == 1);
  const Slot of_b = sharing.join(b);
  CHECK(sharing.update_rates().size() == 2);
  CHECK(sharing.pace(of_a) == Approx(0.8));
  CHECK(sharing.pace(of_b) == Approx(0.8));

  const Uses held{half_of(first)};
  sharing.hold(held);
  sharing.update_rates();
  CHECK(sharing.pace(of_a) == Approx(0.4));
  CHECK(sharing.pace(of_b) == Approx(0.4));

  sharing.release(held);
  sharing.leave(of_b);
  sharing.update_rates();
  CHECK(sharing.pace(of_a) == 1);
}

// A and B fill the first resource at 0.5 each; C, on the second with half of B, has 0.75 of it.
TEST_CASE("what a work leaves that is held elsewhere goes to others") {
  const Uses a{all_of(first)};
  const Uses b{all_of(first), half_of(second)};
  const Uses c{all_of(second)};
  WorkSharing sharing(2);
  const std::vector<Slot> slots = {sharing.join(a), sharing.join(b), sharing.join(c)};
  sharing.update_rates();
  CHECK(sharing.pace(slots[0]) == Approx(0.5));
  CHECK(sharing.pace(slots[1]) == Approx(0.5));
  CHECK(sharing.pace(slots[2]) == Approx(0.75));
}

// Three that each take 0.6 of two of three resources in a ring: 1.2 x = 1. With only two of them
// 1.2 x = 1, too; alone a work goes at 1 and not at 1 / 0.6.
TEST_CASE("no work goes faster than alone") {
  const auto part = part_of(0.6);
  const Uses a{{0, part}, {1, part}};
  const Uses b{{1, part}, {2, part}};
  WorkSharing sharing(3);
  const Slot of_a = sharing.join(a);
  const Slot of_b = sharing.join(b);
  sharing.update_rates();
  CHECK(sharing.pace(of_a) == Approx(1 / 1.2));
  CHECK(sharing.pace(of_b) == Approx(1 / 1.2));
  // The third resource is held but for 0.06: b has 0.1, and a could have 0.94 / 0.6.
  const Uses held{{2, part_of(0.94)}};
  sharing.hold(held);
  sharing.update_rates();
  CHECK(sharing.pace(of_b) == Approx(0.1));
  CHECK(sharing.pace(of_a) == 1);
}

TEST_CASE("who is left nothing waits") {
  const Uses a{all_of(first)};
  const Uses held{all_of(first), half_of(second)};
  WorkSharing sharing(2);
  const Slot of_a = sharing.join(a);
  sharing.hold(held);
  sharing.hold(held);
  sharing.update_rates();
  CHECK(sharing.pace(of_a) == 0);
  sharing.release(held);
  sharing.release(held);
  sharing.update_rates();
  CHECK(sharing.pace(of_a) == 1);
}

TaskGraph side_by_side(std::vector<Work> works) {
  TaskGraph graph;
  graph.resources = 2;
  for (std::size_t i = 0; i < works.size(); ++i) {
    graph.tasks.push_back({static_cast<std::int32_t>(i)});
  }
  graph.works = std::move(works);
  graph.waits.assign(graph.tasks.size(), 0);
  graph.first_successor.assign(graph.tasks.size() + 1, 0);
  return graph;
}

// 5 ps, 9 ps and, from 5 on, 1 ps on one link. At half pace the first has 2.5 ps left at 5, the
// second 6.5. At a third of the pace the third ends at 8; then the first has 1.5 left, at half pace
// until 11; then the second, which has had 1 and 1.5, has 4 left: 15.
TEST_CASE("an end is rounded up, what is left is not") {
  const Trace trace = run(side_by_side({{SimTime(0), SimTime(5), {all_of(first)}},
                                        {SimTime(0), SimTime(9), {all_of(first)}},
                                        {SimTime(5), SimTime(1), {all_of(first)}}}));
  CHECK(trace.end == std::vector<SimTime>{SimTime(11), SimTime(15), SimTime(8)});
  // 3 ps and 4 ps, the second half of the link: 1.5 x = 1; the first ends at 4.5, which is 5, when
  // the second has 4 - 5 / 1.5 = 0.67 left: 5.67.
  const Trace other = run(side_by_side(
      {{SimTime(0), SimTime(3), {all_of(first)}}, {SimTime(0), SimTime(4), {half_of(first)}}}));
  CHECK(other.end == std::vector<SimTime>{SimTime(5), SimTime(6)});
}

// The second holds a quarter from 0 to 20; the first needs all for 30: 20 * 0.75 = 15, and 15 more.
TEST_CASE("what is held is held from start to end") {
  const Trace trace =
      run(side_by_side({{SimTime(0), SimTime(30), {all_of(first)}},
                        {SimTime(10), SimTime(10), {all_of(second)}, {{first, part_of(0.25)}}}}));
  CHECK(trace.end == std::vector<SimTime>{SimTime(35), SimTime(20)});
}

}  // namespace
}  // namespace shardsim
