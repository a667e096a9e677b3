// Chakra's files read back, by the reader of the library that writes them, and held to what the
// plan and the simulation say.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <protozero/pbf_message.hpp>
#include <set>
#include <tuple>

#include "base/index.hpp"
#include "base/json.hpp"
#include "reports/traces/chakra.hpp"
#include "reports/traces/chakra_fields.hpp"
#include "tests/sim/plan_builder.hpp"
#include "traced.hpp"

namespace shardsim::chakra_test {
namespace {

using testing::PlanBuilder;

// A rank's file, its messages parted by their lengths and its attributes by name.
struct ReadNode {
  std::uint64_t id = 0;
  std::string name;
  chakra::NodeType type{};
  std::vector<std::uint64_t> control;
  std::vector<std::uint64_t> data;
  std::uint64_t start = 0;
  std::uint64_t duration = 0;
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, std::string> texts;
};

ReadNode read_node(protozero::pbf_message<chakra::Node> message) {
  ReadNode node;
  while (message.next()) {
    switch (message.tag()) {
      case chakra::Node::id:
        node.id = message.get_uint64();
        break;
      case chakra::Node::name:
        node.name = message.get_string();
        break;
      case chakra::Node::type:
        node.type = static_cast<chakra::NodeType>(message.get_enum());
        break;
      case chakra::Node::control_dependencies:
        for (const std::uint64_t id : message.get_packed_uint64()) node.control.push_back(id);
        break;
      case chakra::Node::data_dependencies:
        for (const std::uint64_t id : message.get_packed_uint64()) node.data.push_back(id);
        break;
      case chakra::Node::start_time_micros:
        node.start = message.get_uint64();
        break;
      case chakra::Node::duration_micros:
        node.duration = message.get_uint64();
        break;
      case chakra::Node::attributes: {
        protozero::pbf_message<chakra::Attribute> attribute(message.get_message());
        std::string name;
        while (attribute.next()) {
          switch (attribute.tag()) {
            case chakra::Attribute::name:
              name = attribute.get_string();
              break;
            case chakra::Attribute::string_value:
              node.texts[name] = attribute.get_string();
              break;
            default:  // all whole numbers here
              node.numbers[name] = attribute.get_int64();
          }
        }
        break;
      }
    }
  }
  return node;
}

std::vector<ReadNode> read_rank(const ChakraTraces& traces, std::int64_t rank) {
  const std::string bytes = traces.rank(rank);
  std::vector<ReadNode> nodes;
  const char* here = bytes.data();
  const char* const end = here + bytes.size();
  bool is_metadata = true;
  while (here < end) {
    const std::uint64_t size = protozero::decode_varint(&here, end);
    REQUIRE(size <= static_cast<std::uint64_t>(end - here));
    const protozero::data_view view(here, size);
    here += size;
    if (is_metadata) {
      protozero::pbf_message<chakra::Metadata> metadata(view);
      REQUIRE(metadata.next(chakra::Metadata::version));
      CHECK(metadata.get_string() == "0.0.4");
    } else {
      nodes.push_back(read_node(protozero::pbf_message<chakra::Node>(view)));
    }
    is_metadata = false;
  }
  return nodes;
}

// What a reader needs so that every node is run: nodes wait for earlier ones that are there.
void check_order(const std::vector<ReadNode>& nodes) {
  std::set<std::uint64_t> ids;
  for (const ReadNode& node : nodes) {
    for (const std::uint64_t id : node.control) CHECK(ids.count(id) == 1);
    for (const std::uint64_t id : node.data) CHECK(ids.count(id) == 1);
    CHECK(ids.insert(node.id).second);
    CHECK(node.numbers.at("is_cpu_op") == 0);
  }
}

std::map<CollectiveKind, chakra::CollectiveType> collective_types() {
  return {{CollectiveKind::all_reduce, chakra::CollectiveType::all_reduce},
          {CollectiveKind::all_gather, chakra::CollectiveType::all_gather},
          {CollectiveKind::reduce_scatter, chakra::CollectiveType::reduce_scatter},
          {CollectiveKind::all_to_all, chakra::CollectiveType::all_to_all}};
}

TEST_CASE("A rank's Chakra file has the work of the plan") {
  for (const Prediction* prediction : traced::examples()) {
    const Plan& plan = prediction->step.plan;
    const ChakraTraces traces(plan, &prediction->result);
    const std::vector<ReadNode> nodes = read_rank(traces, 0);
    check_order(nodes);
    std::map<std::int64_t, std::int64_t> expected_bytes;  // by comm_type
    double expected_flops = 0;
    std::int64_t kernels = 0;
    for (const Task& task : plan.programs[0].tasks) {
      if (task.kind == TaskKind::kernel) {
        ++kernels;
        expected_flops += std::max(1.0, plan.kernels[at(task.work)].flops.count());
        continue;
      }
      const Collective& collective = plan.collectives[at(task.work)];
      const std::int64_t size = group_size(plan, collective);
      const bool gathers = collective.kind == CollectiveKind::all_gather;
      REQUIRE(collective.payload.count() % (gathers ? size : 1) == 0);
      expected_bytes[static_cast<std::int64_t>(collective_types().at(collective.kind))] +=
          collective.payload.count() / (gathers ? size : 1);
    }
    std::map<std::int64_t, std::int64_t> bytes;
    double flops = 0;
    std::uint64_t last_end = 0;
    for (const ReadNode& node : nodes) {
      last_end = std::max(last_end, node.start + node.duration);
      if (node.type == chakra::NodeType::compute) {
        --kernels;
        flops += static_cast<double>(node.numbers.at("num_ops"));
        CHECK(node.numbers.at("tensor_size") >= 1);
      } else {
        REQUIRE(node.type == chakra::NodeType::collective);
        bytes[node.numbers.at("comm_type")] += node.numbers.at("comm_size");
        CHECK_FALSE(node.texts.at("pg_name").empty());
      }
    }
    CHECK(kernels == 0);
    CHECK(flops == Approx(expected_flops).epsilon(1e-9));
    CHECK(bytes == expected_bytes);
    CHECK(last_end == static_cast<std::uint64_t>(
                          std::llround(to_seconds(prediction->result.step_time).count() * 1e6)));
    for (const ReadNode& node : read_rank(ChakraTraces(plan, nullptr), 0)) {
      CHECK(node.start + node.duration == 0);
    }
  }
}

// The law that keeps a reader from waiting for ever: whoever is in a group runs the same calls in
// it, in one order.
TEST_CASE("All ranks of a communicator agree on its collectives") {
  const Plan& plan = traced::fsdp_and_tp().step.plan;
  const ChakraTraces traces(plan, nullptr);
  const Json groups = Json::parse(traces.communicators());
  using Call = std::pair<std::int64_t, std::int64_t>;
  std::map<std::string, std::map<std::int64_t, std::vector<Call>>> calls;  // by group, then rank
  for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
    for (const ReadNode& node : read_rank(traces, rank)) {
      if (node.type != chakra::NodeType::collective) continue;
      calls[node.texts.at("pg_name")][rank].emplace_back(node.numbers.at("comm_type"),
                                                         node.numbers.at("comm_size"));
    }
  }
  CHECK(calls.size() == groups.size());
  for (const auto& [group, by_rank] : calls) {
    INFO("group " << group);
    std::vector<std::int64_t> ranks;
    for (const auto& [rank, list] : by_rank) {
      ranks.push_back(rank);
      CHECK(list == by_rank.begin()->second);
    }
    CHECK(groups.at(group).get<std::vector<std::int64_t>>() == ranks);
  }
  // fsdp=4,model=2: two groups of four, four of two; and the sums over all eight.
  std::multiset<std::size_t> sizes;
  for (const Json& ranks : groups) sizes.insert(ranks.size());
  CHECK(sizes.count(4) == 2);
  CHECK(sizes.count(2) == 4);
}

// 2,147 * 1,000,000 is below 2^31 = 2,147,483,648, one more is not.
TEST_CASE("More communicators than ASTRA-sim can number are told") {
  const auto warning = [](std::int64_t groups) {
    PlanBuilder b({{"x", 2}, {"y", groups}});
    b.gather(1);
    return ChakraTraces(b.plan, nullptr).warning();
  };
  CHECK(warning(2147).empty());
  CHECK(warning(2148) ==
        "2,148 communicators are more than the 2,147 whose streams ASTRA-sim can number");
}

using Message = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

// Sent and received, of all ranks: source, target, tag, bytes.
std::pair<std::multiset<Message>, std::multiset<Message>> messages(const ChakraTraces& traces) {
  std::pair<std::multiset<Message>, std::multiset<Message>> result;
  for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
    for (const ReadNode& node : read_rank(traces, rank)) {
      const bool sends = node.type == chakra::NodeType::send;
      if (!sends && node.type != chakra::NodeType::receive) continue;
      CHECK(node.numbers.at(sends ? "comm_src" : "comm_dst") == rank);
      (sends ? result.first : result.second)
          .insert({node.numbers.at("comm_src"), node.numbers.at("comm_dst"),
                   node.numbers.at("comm_tag"), node.numbers.at("comm_size")});
    }
  }
  return result;
}

TEST_CASE("Messages between stages go from rank to rank") {
  const Plan plan = traced::two_stages();
  const ChakraTraces traces(plan, nullptr);
  const auto [sent, received] = messages(traces);
  CHECK(sent == std::multiset<Message>{{0, 2, 0, 30}, {1, 3, 0, 30}, {2, 0, 0, 10}, {3, 1, 0, 10}});
  CHECK(received == sent);
  CHECK(traces.first_of_each_class() == std::vector<std::int64_t>{0, 2});
  // Only the first stage gathers: 40 bytes over two ranks, of which each has 20.
  CHECK(Json::parse(traces.communicators()) == Json({{"1", {0, 1}}}));
  const std::vector<ReadNode> nodes = read_rank(traces, 1);
  check_order(nodes);
  REQUIRE(nodes.size() == 5);
  CHECK(nodes[1].numbers.at("comm_size") == 20);
  CHECK(nodes[1].texts.at("pg_name") == "1");
  CHECK(nodes[1].data == std::vector<std::uint64_t>{nodes[0].id});
  // The send waits for the gather, which is before it on the stream, too.
  CHECK(nodes[2].control == std::vector<std::uint64_t>{nodes[1].id});
}

// Pairs 0 -> 1, 1 -> 0 and 3 -> 3; rank 2 has no part in it, rank 3 keeps what it has. The permute
// comes after the first kernel because it reads what that makes, or is next on its stream.
Plan a_permute_between_kernels(bool reads) {
  PlanBuilder b({{"x", 4}});
  const TaskId before = b.kernel(5, {}, reads ? 0 : 1);
  Collective permute;
  permute.kind = CollectiveKind::collective_permute;
  permute.source_targets = {{0, 1}, {1, 0}, {3, 3}};
  permute.payload = Bytes(8);
  b.plan.collectives.push_back(permute);
  Task task;
  task.kind = TaskKind::collective;
  task.stream = 1;
  const auto read = reads ? std::vector<TaskId>{before} : std::vector<TaskId>{};
  (void)b.plan.programs[0].add_task(task, read);
  b.kernel(5, {1});
  verify(b.plan);
  return b.plan;
}

TEST_CASE("A permute is messages, and who has no part in it does not wait") {
  const Plan plan = a_permute_between_kernels(/*reads=*/true);
  const ChakraTraces traces(plan, nullptr);
  const auto [sent, received] = messages(traces);
  CHECK(sent == std::multiset<Message>{{0, 1, 1, 8}, {1, 0, 1, 8}});
  CHECK(received == sent);
  const std::vector<ReadNode> first = read_rank(traces, 0);
  check_order(first);
  REQUIRE(first.size() == 4);
  // Sent before received: readers that run one at a time would wait for each other else.
  CHECK(first[1].type == chakra::NodeType::send);
  CHECK(first[2].type == chakra::NodeType::receive);
  CHECK(first[3].data == std::vector<std::uint64_t>{first[1].id, first[2].id});
}

TEST_CASE("What waits for a permute waits for what is before it where it is nothing") {
  for (const bool reads : {true, false}) {
    const Plan plan = a_permute_between_kernels(reads);
    const ChakraTraces traces(plan, nullptr);
    for (const std::int64_t rank : {2, 3}) {
      const std::vector<ReadNode> other = read_rank(traces, rank);
      check_order(other);
      REQUIRE(other.size() == 2);
      CHECK(other[1].data == std::vector<std::uint64_t>{other[0].id});
    }
  }
}

TEST_CASE("Groups that no axes describe are communicators") {
  PlanBuilder b({{"x", 4}});
  b.gather(10);
  b.plan.collectives[0].axes.clear();
  b.plan.collectives[0].groups = {{0, 3}, {1, 2}};
  verify(b.plan);
  CHECK(Json::parse(ChakraTraces(b.plan, nullptr).communicators()) ==
        Json({{"1", {0, 3}}, {"2", {1, 2}}}));
}

TEST_CASE("Whatever the plan, its Chakra files agree") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    const Prediction prediction = traced::simulated(traced::random_plan(seed));
    const Plan& plan = prediction.step.plan;
    const ChakraTraces traces(plan, &prediction.result);
    for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
      check_order(read_rank(traces, rank));
    }
    const auto [sent, received] = messages(traces);
    CHECK(sent == received);
  }
}

TEST_CASE("Messages between stages of different size have no counterparts") {
  Plan plan = traced::two_stages();
  plan.programs[1].devices = {2};
  CHECK_THROWS_WITH(ChakraTraces(plan, nullptr),
                    "program first: messages between 2 devices and 1 of second have no "
                    "counterparts that a trace could name");
}

TEST_CASE("Host copies are loads and stores") {
  PlanBuilder b;
  const TaskId stored = b.host_copy(TaskKind::to_host, 64);
  b.host_copy(TaskKind::from_host, 32, {stored});
  const ChakraTraces traces(b.plan, nullptr);
  const std::vector<ReadNode> nodes = read_rank(traces, 0);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].type == chakra::NodeType::memory_store);
  CHECK(nodes[0].numbers.at("tensor_size") == 64);
  CHECK(nodes[1].type == chakra::NodeType::memory_load);
  CHECK(nodes[1].numbers.at("tensor_size") == 32);
}

}  // namespace
}  // namespace shardsim::chakra_test
