// Which algorithm a collective takes when it is told one: the machine decides which names there
// are, the collective's kind and axes which of them holds.
#include "sim/collectives/told_algorithms.hpp"

#include <catch2/catch.hpp>

#include "sim/collectives/collective_cost.hpp"
#include "sim/collectives/xla_sol.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim::told_algorithms_test {
namespace {

using Catch::Contains;
using Catch::Equals;

const Place place{"", "/algorithms"};

ToldAlgorithm told(CollectiveKind kind, std::vector<std::string> axes, std::string algorithm,
                   std::string protocol = "") {
  return {kind, std::move(axes), std::move(algorithm), std::move(protocol), place, place};
}

constexpr auto reduce = CollectiveKind::all_reduce;
constexpr auto gather = CollectiveKind::all_gather;

const Mesh nodes_by_tensor({{"data", 2}, {"tensor", 8}});

Collective over(const std::vector<std::string>& axes, CollectiveKind kind = reduce) {
  Collective collective;
  collective.kind = kind;
  collective.payload = Bytes(GiB);
  for (const std::string& axis : axes) collective.axes.push_back(*nodes_by_tensor.parse(axis));
  return collective;
}

Placement on_h100(CollectiveModel model = collective_models::simulated,
                  const DeviceOrder& order = {}) {
  return {nodes_by_tensor, make_machine(load_profile("dgx-h100", {}), 16, std::nullopt, {}), model,
          order};
}

std::string mistake(const Placement& placement, const std::vector<ToldAlgorithm>& all) {
  return testing::mistake_of([&] { return CollectiveCosts(placement, {Folding::folded, all}); });
}

std::string taken(CollectiveCosts& costs, const Collective& collective) {
  const CostBreakdown cost = costs.cost(collective);
  return cost.algorithm + " " + cost.protocol;
}

}  // namespace

TEST_CASE("what is told for axes comes before what is told for the kind") {
  const Placement placement = on_h100();
  CollectiveCosts costs(placement,
                        {Folding::folded,
                         {told(reduce, {}, "Tree"), told(reduce, {"tensor"}, "Ring", "LL"),
                          told(reduce, {"tensor", "data"}, "", "LL128")}});
  CHECK(taken(costs, over({"tensor"})) == "Ring LL");
  CHECK(taken(costs, over({"data"})) == "Tree Simple");
  // Axes have no order.
  CHECK_THAT(taken(costs, over({"data", "tensor"})), Contains("LL128"));
  // Nobody has told all-gathers.
  CollectiveCosts free(placement);
  CHECK(taken(costs, over({"tensor"}, gather)) == taken(free, over({"tensor"}, gather)));
  CHECK(taken(free, over({"tensor"})) == "NVLS Simple");
}

TEST_CASE("the names are those of the mesh, however its devices are ordered") {
  const Placement placement =
      on_h100(collective_models::simulated, {DeviceOrder::Kind::axes, {"data", "tensor"}, {}, {}});
  CollectiveCosts costs(placement, {Folding::folded, {told(reduce, {"tensor"}, "Tree")}});
  CHECK(taken(costs, over({"tensor"})) == "Tree Simple");
  CHECK(taken(costs, over({"data"})) != "Tree Simple");
}

TEST_CASE("parts of axes have names of their own") {
  const Placement placement = on_h100();
  CollectiveCosts costs(placement,
                        {Folding::folded, {told(reduce, {"tensor:(1)4"}, "Ring", "LL")}});
  CHECK(taken(costs, over({"tensor:(1)4"})) == "Ring LL");
  CHECK(taken(costs, over({"tensor"})) == "NVLS Simple");
}

TEST_CASE("what no collective asks for is known") {
  const Placement placement = on_h100();
  CollectiveCosts costs(
      placement, {Folding::folded, {told(reduce, {}, "Tree"), told(gather, {"data"}, "Ring")}});
  CHECK(costs.unused_algorithms() ==
        std::vector<std::string>{"all-gather over data", "all-reduce"});
  static_cast<void>(costs.cost(over({"data"})));
  CHECK(costs.unused_algorithms() == std::vector<std::string>{"all-gather over data"});
}

// What SGLang measured with such kernels on H100 (one_shot.hpp): 4 KiB on 8 GPUs in 5.7 us, 32 KiB
// in 7.8 us; on 2 in 3.9 and 4.5 us.
TEST_CASE("engines' own all-reduces are told by name") {
  const Placement placement = on_h100();
  CollectiveCosts costs(placement, {Folding::folded, {told(reduce, {"tensor"}, "one-shot")}});
  const auto of = [&](std::int64_t bytes) {
    Collective collective = over({"tensor"});
    collective.payload = Bytes(bytes);
    return costs.cost(collective);
  };
  CHECK(of(4096).algorithm == "one-shot");
  CHECK(of(4096).total().count() == Approx(5.7e-6).epsilon(0.1));
  CHECK(of(32768).total().count() == Approx(7.8e-6).epsilon(0.2));
  CHECK_THAT(mistake(placement, {told(gather, {}, "one-shot")}),
             Equals("/algorithms: one-shot is a way of all-reduces"));
  CHECK_THAT(mistake(placement, {told(reduce, {}, "one-shot", "LL")}),
             Equals("/algorithms: is NCCL's; one-shot all-reduces have none"));
  CollectiveCosts across(placement, {Folding::folded, {told(reduce, {"data"}, "one-shot")}});
  CHECK_THROWS_WITH(across.cost(over({"data"})),
                    Contains("a group lies in one node, this one in 2"));
}

TEST_CASE("flows are told algorithms of ours") {
  const Placement placement = on_h100(collective_models::flows);
  CollectiveCosts costs(placement,
                        {Folding::folded, {told(reduce, {"tensor"}, "halving-doubling")}});
  CHECK(costs.cost(over({"tensor"})).algorithm == "halving-doubling");
  CHECK(costs.cost(over({"data"})).algorithm == "ring");
  CHECK_THAT(mistake(placement, {told(reduce, {}, "NVLS")}), Contains("/algorithms: "));
  CHECK_THAT(mistake(placement, {told(reduce, {}, "ring", "LL")}),
             Equals("/algorithms: is NCCL's; what is simulated link by link has none"));
  CHECK_THAT(mistake(placement, {told(reduce, {}, "", "LL")}), Contains("has none"));
}

TEST_CASE("what cannot be told says why") {
  const Placement h100 = on_h100();
  CHECK_THAT(mistake(h100, {told(reduce, {}, "Rnig")}), Contains("did you mean \"Ring\"?"));
  CHECK_THAT(mistake(h100, {told(reduce, {"tesnor"}, "Ring")}),
             Equals("/algorithms: unknown axis \"tesnor\"; the mesh has data, tensor, did you mean "
                    "\"tensor\"?"));
  CHECK_THAT(mistake(h100, {told(reduce, {"data", "tensor"}, "Ring"),
                            told(reduce, {"tensor", "data"}, "Tree")}),
             Equals("/algorithms: all-reduce over data+tensor is told twice"));
  CHECK_THAT(mistake(h100, {told(CollectiveKind::all_to_all, {}, "Ring")}),
             Equals("/algorithms: NCCL has one way only for an all-to-all"));
  CHECK_THAT(mistake(on_h100(collective_models::xla_sol), {told(reduce, {}, "Ring")}),
             Equals("/algorithms: the model \"xla-sol\" is told no algorithm: it has its own "
                    "times"));
  const Placement slice(nodes_by_tensor,
                        make_machine(load_profile("tpu-v5e", {}), 16, std::nullopt, {}));
  CHECK_THAT(mistake(slice, {told(reduce, {}, "Ring")}),
             Equals("/algorithms: NCCL, which could be told to take one, does not run on tpu-v5e"));
}

TEST_CASE("XLA's estimate is the launch and the rest") {
  const Placement placement = on_h100(collective_models::xla_sol);
  const CostBreakdown cost = collective_cost(placement, over({"tensor"}));
  const XlaSolConfig config = xla_sol_config(placement.machine().profile.device);
  // The eight of a node.
  const Seconds whole = xla_sol_estimate(config, {reduce, Bytes(GiB), 8, 1});
  CHECK((cost.launch + cost.transfer).count() == Approx(whole.count()).epsilon(1e-9));
}

}  // namespace shardsim::told_algorithms_test
