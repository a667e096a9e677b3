// Experts dealt out over devices: the groups against Megatron-Core's own order of ranks, what is
// sent and computed against laws of the routing.
#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"
#include "plan/row_visits.hpp"
#include "strategies/layout/expert_layout.hpp"

namespace shardsim::experts_test {
namespace {

using Catch::Matchers::Contains;

const Mesh mesh({{"dp", 8}, {"tp", 2}});
const AxisRef dp = mesh.whole(0);
const AxisRef tp = mesh.whole(1);

Json megatron(const Json& experts) {
  return {{"name", "megatron"}, {"sequence_parallel", true}, {"experts", experts}};
}

Strategy read(const Json& json) { return read_strategy(JsonReader(json, {"strategy", ""}), mesh); }

// Two layers of Mixtral 8x7B.
CompiledStep compile_with(const Json& experts) {
  const Json config = {{"base", "mixtral-8x7b"}, {"num_hidden_layers", 2}};
  const Strategy strategy = read(megatron(experts));
  Step step{.batch = 8, .sequence = 2048};
  if (strategy.experts) step.exchange = strategy.experts->exchange;
  const Workload workload =
      build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step);
  return compile(workload, step, mesh, strategy);
}

double routed_flops(const Plan& plan) {
  double flops = 0;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel) continue;
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
    if (kernel.op == "grouped_matmul") flops += kernel.flops.count();
  }
  return flops;
}

std::int64_t sent_rows(const Plan& plan) {
  return test::payload(plan,
                       [](const Collective& c) { return c.kind == CollectiveKind::all_to_all; });
}

std::string error_of(const Json& experts) {
  try {
    (void)compile_with(experts);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

// Megatron-Core 0.20, parallel_state.py: ranks of expert groups in the order etp, ep, expert dp;
// tests/golden/megatron/mixtral-tp2-*.json have the groups.
TEST_CASE("Experts are dealt out over neighbours that hold different tokens") {
  const ExpertLayout whole = *read(megatron({{"parallel", 8}, {"tensor_parallel", 1}})).experts;
  CHECK(whole.parallel == AxisList{{0, 2, 4}, tp});
  CHECK(whole.data == AxisList{{0, 1, 2}});
  CHECK(whole.tensor.empty());
  const ExpertLayout split = *read(megatron({{"parallel", 4}})).experts;
  CHECK(split.parallel == AxisList{{0, 2, 4}});
  CHECK(split.tensor == AxisList{tp});
  CHECK(split.data == AxisList{{0, 1, 2}});
  CHECK(!read(Json("replicate")).experts);
}

// combine_preprocess of Megatron-Core's token_dispatcher.py. Each device's 1,024 tokens visit two
// experts, of 4,096 numbers, and two devices gather theirs.
TEST_CASE("What split experts make is added up in the type of the router") {
  constexpr std::int64_t layers = 2, rows = 1024 * 2 * 2, numbers = 4096;
  const auto wide = [](const char* type, CollectiveKind kind) {
    const Plan plan = compile_with({{"parallel", 4}, {"router_dtype", type}}).plan;
    return test::payload(plan, [&](const Collective& c) {
      return c.kind == kind && c.dtype == DType::f32 && c.axes == AxisList{tp} &&
             c.payload >= Bytes(1 << 20);
    });
  };
  CHECK(wide("fp32", CollectiveKind::reduce_scatter) == 4 * layers * rows * numbers);
  CHECK(wide("bf16", CollectiveKind::reduce_scatter) == 0);
}

TEST_CASE("An axis for experts splits the batch of all else") {
  const Mesh own({{"dp", 2}, {"ep", 8}});
  const Json name = "megatron";
  const Strategy strategy = read_strategy(JsonReader(name, {"strategy", ""}), own);
  CHECK(strategy.batch_axes == std::vector<std::string>{"dp", "ep"});
  REQUIRE(strategy.experts);
  CHECK(strategy.experts->parallel == AxisList{own.whole(1)});
  CHECK(strategy.experts->data == AxisList{own.whole(0)});
  CHECK(strategy.experts->tokens == AxisList{own.whole(0), own.whole(1)});
}

TEST_CASE("Axes are cut from the minor side") {
  const auto cut = cut_minor({dp, tp}, 4);
  REQUIRE(cut);
  CHECK(cut->minor == AxisList{{0, 4, 2}, tp});
  CHECK(cut->rest == AxisList{{0, 1, 4}});
  CHECK(!cut_minor({dp, tp}, 3));
  CHECK(!cut_minor({dp, tp}, 32));
  CHECK(cut_minor({dp, tp}, 1)->minor.empty());
}

// A token goes nowhere twice: once where all experts are on one device, once for each expert where
// every device has one.
TEST_CASE("Copies of a token lie between one and one for each expert that it visits") {
  CHECK(copies_by_part(8, 2, 1) == Approx(1));
  CHECK(copies_by_part(8, 2, 8) == Approx(2));
  CHECK(copies_by_part(256, 1, 16) == Approx(1));
  // 2 of 4 experts, 2 on each device: both on the same one in 2 of 6 choices.
  CHECK(copies_by_part(4, 2, 2) == Approx(1 + 4.0 / 6));
  for (const std::int64_t devices : {2, 8, 32, 64}) {
    CHECK(copies_by_part(256, 8, devices) <= 8);
    CHECK(copies_by_part(256, 8, devices) <= static_cast<double>(devices));
  }
}

TEST_CASE("Dealing out experts divides their parameters, not the rows that they see") {
  const CompiledStep one = compile_with({{"parallel", 1}, {"tensor_parallel", 1}});
  for (const int devices : {2, 4, 8}) {
    const CompiledStep dealt = compile_with({{"parallel", devices}, {"tensor_parallel", 1}});
    CHECK(routed_flops(dealt.plan) == Approx(routed_flops(one.plan)));
  }
  // 2048 tokens in 8 of 16 places, 2 rows each of 4096 in bf16; there and back, forward and
  // backward, in 2 layers, with weights of 2 bytes in either pass; counts are gathered.
  const std::int64_t rows = 1024 * 2;
  CHECK(sent_rows(compile_with({{"parallel", 8}, {"tensor_parallel", 1}}).plan) ==
        2 * (4 * rows * 4096 * 2 + 2 * rows * 2));
}

// Bytes of the copies that put rows in the order of a device's experts, and how many they are.
std::pair<std::int64_t, int> sorted_rows(const Plan& plan) {
  std::pair<std::int64_t, int> sorted{0, 0};
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel) continue;
    if (!plan.names[static_cast<std::size_t>(task.name)].ends_with(" sort")) continue;
    sorted.first += plan.kernels[static_cast<std::size_t>(task.work)].bytes.count();
    ++sorted.second;
  }
  return sorted;
}

// Read and written, there and back, forward and backward, in 2 layers: 1024 tokens with 2 rows each
// of 4096 numbers in bf16. A device's only expert takes rows as they come, DeepEP's come as tokens.
TEST_CASE("Rows that arrive for several experts are put in their order") {
  const std::int64_t rows = 1024 * 2;
  const Json two = {{"parallel", 4}, {"tensor_parallel", 1}};
  CHECK(sorted_rows(compile_with(two).plan) == std::pair{2 * 4 * 2 * rows * 4096 * 2, 2 * 4});
  CHECK(sorted_rows(compile_with({{"parallel", 8}, {"tensor_parallel", 1}}).plan).second == 0);
  for (const char* dispatch : {"deepep", "hybridep", "all-gather"}) {
    Json other = two;
    other["dispatch"] = dispatch;
    CHECK(sorted_rows(compile_with(other).plan).second == 0);
  }
}

// Bytes and launches of an op of a layer's experts in a phase.
std::pair<std::int64_t, int> moved(const Plan& plan, const std::string& op, Phase phase) {
  std::pair<std::int64_t, int> work{0, 0};
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel || task.phase != phase || task.layer != 1) continue;
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
    const std::string& name = plan.names[static_cast<std::size_t>(task.name)];
    if (kernel.op != op || name.find("experts") == std::string::npos) continue;
    work.first += kernel.bytes.count();
    work.second += kernel.launches;
  }
  return work;
}

// 2048 rows of 14336 numbers. megatron/core/fusions/fused_bias_swiglu.py: forward both halves are
// read and one written; backward the gradient and both are read and both written, then read again
// for the gradient of the rows' weights, of which there is one a row.
TEST_CASE("Transformer Engine weights experts' rows in the kernel of their gate") {
  const Plan plan = compile_with({{"parallel", 8}, {"tensor_parallel", 1}}).plan;
  const std::int64_t rows = 1024 * 2;
  const std::int64_t numbers = rows * 14336;
  CHECK(moved(plan, "multiply", Phase::forward) == std::pair{6 * numbers + 2 * rows, 1});
  CHECK(moved(plan, "multiply_backward", Phase::backward) == std::pair{10 * numbers, 1});
  CHECK(moved(plan, "multiply", Phase::backward) == std::pair{6 * numbers + 2 * rows, 1});
  CHECK(moved(plan, "concatenate", Phase::backward).second == 0);
}

// Hosts have to know how many rows there are before they go on, unless each has its place.
TEST_CASE("Rows that are counted are awaited, in the forward pass alone") {
  const auto awaited = [](const Json& experts) {
    const Plan plan = compile_with(experts).plan;
    int count = 0;
    for (const Task& task : plan.programs[0].tasks) {
      if (task.kind != TaskKind::collective) continue;
      if (!plan.collectives[static_cast<std::size_t>(task.work)].awaited) continue;
      CHECK(task.phase == Phase::forward);
      ++count;
    }
    return count;
  };
  for (const char* dispatch : {"all-to-all", "deepep", "hybridep"}) {
    CHECK(awaited({{"parallel", 4}, {"dispatch", dispatch}}) == 2);
  }
  CHECK(awaited({{"parallel", 4}, {"capacity_factor", 1.25}}) == 0);
}

TEST_CASE("A skewed routing is computed as its busiest device computes it") {
  const Json even = {{"parallel", 8}, {"tensor_parallel", 1}};
  Json skewed = even;
  skewed["balance"] = {{"skew", 1.5}};
  CHECK(routed_flops(compile_with(skewed).plan) ==
        Approx(1.5 * routed_flops(compile_with(even).plan)));
  Json padded = even;
  padded["capacity_factor"] = 1.25;
  CHECK(routed_flops(compile_with(padded).plan) ==
        Approx(1.25 * routed_flops(compile_with(even).plan)));
}

// Experts have whole slots.
Approx about(double value) { return Approx(value).epsilon(1e-3); }

// Eight experts on eight devices. Of one that gets a quarter of the rows, twice an even share, the
// others have a seventh of three quarters each, 6/7 of an even share.
Json quarter_for(int expert) {
  Json shares = Json::array();
  for (int e = 0; e < 8; ++e) shares.push_back(e == expert ? 1.0 / 4 : 3.0 / 28);
  return shares;
}

Json with_shares(const Json& first, const Json& second) {
  return {{"parallel", 8},
          {"tensor_parallel", 1},
          {"balance", {{"shares", {{"0", first}, {"1", second}}}}}};
}

TEST_CASE("Each layer takes as long as on the device that gets most of its rows") {
  const Json even = {{"parallel", 8}, {"tensor_parallel", 1}};
  const Json equal = Json::array({1, 1, 1, 1, 1, 1, 1, 1});
  const CompiledStep balanced = compile_with(even);
  const double flops = routed_flops(balanced.plan);
  CHECK(routed_flops(compile_with(with_shares(equal, equal)).plan) == Approx(flops));
  CHECK(routed_flops(compile_with(with_shares(equal, quarter_for(3))).plan) == about(1.5 * flops));
  const CompiledStep apart = compile_with(with_shares(quarter_for(2), quarter_for(3)));
  CHECK(routed_flops(apart.plan) == about(2 * flops));
  // What the model asks for is the same.
  CHECK(apart.plan.subject.model_flops.count() ==
        Approx(balanced.plan.subject.model_flops.count()));
}

// Device 2 has 2 of an even share in one layer and 6/7 in the other, where both are the same device
// 2 in both.
TEST_CASE("Memory is that of the device that gets most of all layers together") {
  const auto rows = [](const Json& experts) { return read(megatron(experts)).experts->exchange; };
  const auto apart = rows(with_shares(quarter_for(2), quarter_for(3))).rows_of_layer;
  CHECK(apart.at(0).most == Approx(2));
  CHECK(apart.at(0).held == Approx(1));
  CHECK(apart.at(1).most == Approx(2));
  CHECK(apart.at(1).held == Approx(3.0 / 7));
  const auto kept = [](const Json& experts) {
    std::int64_t bytes = 0;
    const CompiledStep step = compile_with(experts);
    for (const Buffer& buffer : step.plan.programs[0].buffers) {
      if (buffer.category == BufferCategory::activations) bytes += buffer.bytes.count();
    }
    return static_cast<double>(bytes);
  };
  const Json equal = Json::array({1, 1, 1, 1, 1, 1, 1, 1});
  const double even = kept(with_shares(equal, equal));
  const double same = kept(with_shares(quarter_for(2), quarter_for(2))) - even;
  const double other = kept(with_shares(quarter_for(2), quarter_for(3))) - even;
  // Over an even share: 1 + 1, and 1 - 1/7. Rows are whole numbers.
  CHECK(other / same == about(3.0 / 7));
}

TEST_CASE("Experts without a place for all rows drop them, padded or not") {
  Json dropping = with_shares(quarter_for(2), quarter_for(3));
  dropping["capacity_factor"] = 1.5;
  const double flops = routed_flops(compile_with({{"parallel", 8}, {"tensor_parallel", 1}}).plan);
  CHECK(routed_flops(compile_with(dropping).plan) == Approx(1.5 * flops));
  dropping["pad_to_capacity"] = false;
  dropping["capacity_factor"] = 1.25;
  CHECK(routed_flops(compile_with(dropping).plan) == Approx(1.25 * flops));
  dropping["capacity_factor"] = 4;
  CHECK(routed_flops(compile_with(dropping).plan) == about(2 * flops));
  // 0.75 of 2 of 8 shares has no place in either layer.
  const ExpertShares shares{{{0, {2, 1, 1, 1, 1, 1, 0.5, 0.5}}}};
  const std::vector<LayerLoad> loads = loads_of(shares, 4, 1.25);
  CHECK(loads[0].dropped == Approx(0.75 / 8));
  CHECK(loads[0].of_device[0] == Approx((1.25 + 1) / 2));
  CHECK(loads[0].busiest == 0);
}

TEST_CASE("Shares of experts are read from a table") {
  const ExpertShares shares =
      read_expert_shares_csv("expert, layer, rows\n1,3,10\n0,3,30\n", "shares.csv");
  CHECK(shares == ExpertShares{{{3, {30, 10}}}});
  const auto error = [](const char* text) -> std::string {
    try {
      (void)read_expert_shares_csv(text, "s.csv");
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(error("") == "s.csv: has no shares of experts");
  CHECK_THAT(error("layer,expert\n0,0\n"), Contains("s.csv:1: has no column \"share\""));
  CHECK_THAT(error("layer,expert,share\n0,1,1\n"), Contains("layer 0 has no share of expert 0"));
  CHECK_THAT(error("layer,expert,share\n0,0,1\n0,0,1\n"),
             Contains("s.csv:3: expert 0 of layer 0 comes twice"));
  CHECK_THAT(error("layer,expert,share\n0,0,1\n1,0,1\n1,1,1\n"),
             Contains("layer 1 has shares of 2 experts, layer 0 of 1"));
  CHECK_THAT(error("layer,expert,share\n0,0,-1\n"), Contains("found \"-1\""));
  CHECK_THAT(error("layer,expert,share\n0,0,0\n"), Contains("layer 0: no expert gets rows"));
  const Json one = Json::array({1, 1, 1, 1, 1, 1, 1, 1});
  CHECK_THAT(
      error_of({{"parallel", 8}, {"tensor_parallel", 1}, {"balance", {{"shares", {{"0", one}}}}}}),
      Contains("/experts/balance: layer 1 has experts and no shares of them"));
}

// Between the exchange and the products of the others.
TEST_CASE("Shared experts run while rows travel") {
  const auto places = [](bool beside) {
    const Json config = {{"base", "deepseek-v3"}, {"num_hidden_layers", 4}};
    const Json json = {{"name", "megatron"},
                       {"experts", {{"parallel", 8}, {"shared_beside", beside}}}};
    const Mesh data({{"dp", 8}});
    const Strategy strategy = read_strategy(JsonReader(json, {"strategy", ""}), data);
    const Step step{.kind = StepKind::forward,
                    .batch = 8,
                    .sequence = 512,
                    .exchange = strategy.experts->exchange};
    const Plan plan =
        compile(build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step), step,
                data, strategy)
            .plan;
    std::string order;
    for (const Task& task : plan.programs[0].tasks) {
      const auto work = static_cast<std::size_t>(task.work);
      if (task.kind == TaskKind::collective) {
        if (plan.collectives[work].kind == CollectiveKind::all_to_all) order += 'x';
      } else if (plan.names[static_cast<std::size_t>(task.name)].find("shared_experts") !=
                 std::string::npos) {
        if (plan.kernels[work].op == "matmul") order += 's';
      } else if (plan.kernels[work].op == "grouped_matmul") {
        order += 'e';
      }
    }
    return order;
  };
  // Rows and weights there, gate and up of all, down, rows back.
  CHECK(places(false) == "sssxxeex");
  CHECK(places(true) == "xxsseexs");
}

// torchtitan 0.2.0, models/llama4/infra/parallelize.py: "moe" gathers its input over tp and reduces
// its output; of the exchange are counts, rows there and rows back.
TEST_CASE("torchtitan's shared experts exchange nothing") {
  const Json config = {{"base", "deepseek-v3"}, {"num_hidden_layers", 4}};
  const Json json = {{"name", "torchtitan"},
                     {"experts", {{"parallel", 4}, {"tensor_parallel", 1}}}};
  const Mesh shards({{"dp_shard", 4}, {"tp", 2}});
  const Strategy strategy = read_strategy(JsonReader(json, {"strategy", ""}), shards);
  Step step{.kind = StepKind::forward,
            .batch = 8,
            .sequence = 512,
            .exchange = strategy.experts->exchange};
  step.exchange->splits_sequence = strategy.sequence_parallel;
  const Plan plan =
      compile(build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step), step,
              shards, strategy)
          .plan;
  int exchanges = 0;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::collective) continue;
    const Collective& call = plan.collectives[static_cast<std::size_t>(task.work)];
    if (call.kind == CollectiveKind::all_to_all) ++exchanges;
  }
  CHECK(exchanges == 3);  // of one layer with experts
}

TEST_CASE("What experts cannot be dealt out over") {
  CHECK_THAT(error_of({{"parallel", 3}}), Contains("/experts/parallel: experts cannot be dealt out "
                                                   "over 3 of the 8 devices of dp"));
  CHECK_THAT(error_of({{"parallel", 16}, {"tensor_parallel", 1}}),
             Contains("do not go evenly over 16 devices"));
  CHECK_THAT(error_of({{"tensor_parallel", 4}}), Contains("/experts/tensor_parallel: 4 devices are "
                                                          "no part of the 2 of the model axis"));
  CHECK_THAT(error_of({{"capacity_factor", 1}, {"balance", {{"skew", 2}}}}),
             Contains("a capacity factor says how many rows each expert gets"));
}

}  // namespace shardsim::experts_test
