#include <catch2/catch.hpp>

#include "sim/event_queue.hpp"
#include "sim/link_sharing.hpp"

namespace shardsim {
namespace {

TEST_CASE("events come by time, then phase, then as they were scheduled") {
  EventQueue queue;
  queue.push(SimTime(5), EventPhase::take_links, 1);
  queue.push(SimTime(5), EventPhase::take_links, 2);
  queue.push(SimTime(5), EventPhase::finish, 3);
  queue.push(SimTime(4), EventPhase::take_links, 4);
  queue.push(SimTime(5), EventPhase::finish, 5);
  queue.push(SimTime(5), EventPhase::finish, 6);
  std::vector<std::int32_t> order;
  while (!queue.empty()) order.push_back(queue.pop().task);
  CHECK(order == std::vector<std::int32_t>{4, 3, 5, 6, 1, 2});
}

// 5 ps and 9 ps join at 0: at half speed they would end at 10 and 18. At 5 a third joins: the first
// has 2.5 ps left, rounded up to 3, the second 6.5, rounded up to 7; at a third of the speed they
// end at 5 + 9 and 5 + 21.
TEST_CASE("what is left of a flow is rounded up when its share changes") {
  LinkSharing links(1);
  std::vector<Flow> moved;
  const auto flow = [](std::int32_t task) {
    return Flow{task, 0, 0, outgoing(1), incoming(1), 1, SimTime(0)};
  };
  links.join(flow(0), SimTime(0), SimTime(5), moved);
  links.join(flow(1), SimTime(0), SimTime(9), moved);
  moved.clear();
  links.join(flow(2), SimTime(5), SimTime(1), moved);
  REQUIRE(moved.size() == 3);
  CHECK(moved[0].end == SimTime(14));
  CHECK(moved[1].end == SimTime(26));
  CHECK(moved[2].end == SimTime(8));
  CHECK_FALSE(links.leave(0, SimTime(10), moved));  // the old end is stale
  CHECK(links.leave(2, SimTime(8), moved));
}

}  // namespace
}  // namespace shardsim
