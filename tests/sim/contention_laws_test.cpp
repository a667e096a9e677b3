// Laws of the engine that hold whatever runs beside what.
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/step/engine.hpp"

namespace shardsim::contention_laws_test {
namespace {

void law(bool passed) { CHECK(passed); }

constexpr ResourceId resources = 4;

// A work with a resource that bounds it.
Work arbitrary_work() {
  Work work;
  const std::int64_t hundreds = *rc::gen::inRange(0, 3);
  work.fixed = SimTime(100 * hundreds);
  work.shared = SimTime(*rc::gen::inRange(1, 10'000));
  const ResourceId bound = *rc::gen::inRange(0, resources);
  for (ResourceId id = 0; id < resources; ++id) {
    const int tenths = *rc::gen::inRange(0, 10);
    if (id != bound && tenths > 0) work.uses.push_back({id, part_of(tenths / 10.0)});
  }
  work.uses.push_back({bound, all_of_it});
  if (*rc::gen::inRange(0, 4) == 0) work.holds = {{*rc::gen::inRange(0, resources), part_of(0.2)}};
  return work;
}

struct Edge {
  std::int32_t before = 0;
  std::int32_t after = 0;
};

TaskGraph graph_of(const std::vector<Work>& works, std::vector<Edge> edges) {
  TaskGraph graph;
  graph.resources = resources;
  graph.works = works;
  const auto tasks = works.size();
  for (std::size_t i = 0; i < tasks; ++i) graph.tasks.push_back({static_cast<std::int32_t>(i)});
  graph.waits.assign(tasks, 0);
  graph.first_successor.assign(tasks + 1, 0);
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::pair(a.before, a.after) < std::pair(b.before, b.after);
  });
  for (const Edge& edge : edges) {
    ++graph.waits[static_cast<std::size_t>(edge.after)];
    ++graph.first_successor[static_cast<std::size_t>(edge.before) + 1];
    graph.successors.push_back(edge.after);
  }
  std::partial_sum(graph.first_successor.begin(), graph.first_successor.end(),
                   graph.first_successor.begin());
  return graph;
}

struct Step {
  std::vector<Work> works;
  std::vector<Edge> edges;
};

Step arbitrary_step() {
  Step step;
  const int tasks = *rc::gen::inRange(1, 12);
  for (int i = 0; i < tasks; ++i) {
    step.works.push_back(arbitrary_work());
    if (i > 0 && *rc::gen::inRange(0, 2) == 0) step.edges.push_back({*rc::gen::inRange(0, i), i});
  }
  return step;
}

SimTime alone(const Work& work) { return work.fixed + work.shared; }

TEST_CASE("nothing is faster than alone, and starts when what it waits for has ended") {
  law(rc::check("not faster", [] {
    const Step step = arbitrary_step();
    const Trace trace = run(graph_of(step.works, step.edges));
    RC_ASSERT(trace.stuck == -1);
    for (std::size_t i = 0; i < step.works.size(); ++i) {
      RC_ASSERT(trace.end[i] - trace.start[i] >= alone(step.works[i]));
      SimTime earliest{0};
      for (const Edge& edge : step.edges) {
        if (edge.after != static_cast<std::int32_t>(i)) continue;
        earliest = std::max(earliest, trace.end[static_cast<std::size_t>(edge.before)]);
      }
      RC_ASSERT(trace.start[i] == earliest);
    }
  }));
}

TEST_CASE("one after the other all take what they take alone, to the picosecond") {
  law(rc::check("alone", [] {
    const Step step = arbitrary_step();
    std::vector<Edge> chain;
    for (std::int32_t i = 1; i < static_cast<std::int32_t>(step.works.size()); ++i) {
      chain.push_back({i - 1, i});
    }
    std::vector<Work> works = step.works;
    for (Work& work : works) work.holds.clear();  // whose own pace that would slow
    const Trace trace = run(graph_of(works, chain));
    SimTime now{0};
    for (std::size_t i = 0; i < works.size(); ++i) {
      now += alone(works[i]);
      RC_ASSERT(trace.end[i] == now);
    }
  }));
}

// No resource gives more than all of it; and of works that all want all of one, one is always done
// at full pace in sum, but for the picosecond by which each end is rounded.
TEST_CASE("work is conserved") {
  law(rc::check("no more than all", [] {
    const Step step = arbitrary_step();
    const Trace trace = run(graph_of(step.works, step.edges));
    std::vector<double> taken(resources, 0);
    for (const Work& work : step.works) {
      for (const Use& use : work.uses) {
        taken[static_cast<std::size_t>(use.resource)] +=
            static_cast<double>(work.shared.count()) * use.part / all_of_it;
      }
    }
    const auto end =
        static_cast<double>(std::max_element(trace.end.begin(), trace.end.end())->count());
    for (const double sum : taken) RC_ASSERT(sum <= end * (1 + 1e-9) + 1e-3);
  }));
  law(rc::check("no less", [] {
    std::vector<Work> works;
    std::int64_t sum = 0;
    const int tasks = *rc::gen::inRange(1, 12);
    for (int i = 0; i < tasks; ++i) {
      works.push_back({SimTime(0), SimTime(*rc::gen::inRange(1, 10'000)), {{0, all_of_it}}, {}});
      sum += works.back().shared.count();
    }
    const Trace trace = run(graph_of(works, {}));
    const std::int64_t end = std::max_element(trace.end.begin(), trace.end.end())->count();
    RC_ASSERT(end >= sum);
    RC_ASSERT(end <= sum + tasks);
  }));
}

template <class T>
std::vector<T> shuffled(const std::vector<T>& values, const std::vector<std::int32_t>& to) {
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result[static_cast<std::size_t>(to[i])] = values[i];
  }
  return result;
}

std::vector<std::int32_t> arbitrary_order(std::size_t size) {
  std::vector<std::int32_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 1; i < size; ++i) {
    std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  }
  return order;
}

// Programs number tasks and resources: neither matters.
TEST_CASE("times do not depend on how tasks and resources are numbered") {
  law(rc::check("numbering", [] {
    const Step step = arbitrary_step();
    const Trace trace = run(graph_of(step.works, step.edges));
    const auto tasks = arbitrary_order(step.works.size());
    const auto names = arbitrary_order(resources);
    Step other{shuffled(step.works, tasks), step.edges};
    for (Work& work : other.works) {
      for (Uses* uses : {&work.uses, &work.holds}) {
        for (Use& use : *uses) use.resource = names[static_cast<std::size_t>(use.resource)];
      }
    }
    for (Edge& edge : other.edges) {
      edge = {tasks[static_cast<std::size_t>(edge.before)],
              tasks[static_cast<std::size_t>(edge.after)]};
    }
    const Trace again = run(graph_of(other.works, other.edges));
    RC_ASSERT(again.end == shuffled(trace.end, tasks));
  }));
}

}  // namespace
}  // namespace shardsim::contention_laws_test
