// What PyTorch's ways to train add to a runtime: units, who asks for them, sums over the model axis
// apart, clipping; and the frameworks that say all of it by one name. Real PyTorch's records are
// compared in torch_golden_test.cpp.
#include <catch2/catch.hpp>

#include <algorithm>

#include "model_step.hpp"
#include "strategies/runtime/units.hpp"

#include "base/json.hpp"

namespace shardsim::torch_runtime_test {
namespace {

using namespace shardsim::test;

const Mesh eight({{"dp_shard", 8}});
const Mesh two_by_four({{"dp_shard", 2}, {"tp", 4}});

// Llama-3.1-8B in bf16: embedding and head 128256 x 4096 each, a norm 4096, a layer 218,112,000.
constexpr std::int64_t embedding = 2 * 128256LL * 4096;
constexpr std::int64_t norm = 2 * 4096;
constexpr std::int64_t layer = 2 * 218112000LL;

Lines of(const Lines& lines, const std::string& part) {
  Lines found;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
               [&](const std::string& line) { return line.find(part) != std::string::npos; });
  return found;
}

std::string gather(const char* phase, std::int64_t bytes) {
  return std::string(phase) + " all-gather dp_shard " + std::to_string(bytes);
}

Json resolved(const std::string& strategy, const Mesh& mesh) {
  const Json json = parse_json(strategy, "strategy");
  return strategy_to_json(read_strategy(JsonReader(json, {"strategy", ""}), mesh));
}

std::string error_of(const std::string& strategy, const Mesh& mesh) {
  try {
    (void)resolved(strategy, mesh);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Units are what the key says") {
  const auto forward = [](const char* units) {
    return of(
        collectives(compile_step("llama-3.1-8b", eight,
                                 std::string(R"({"name": "fsdp", "units": ")") + units + "\"}")
                        .plan),
        "forward all-gather");
  };
  const Lines layers = forward("layers");
  CHECK(layers.size() == 33);
  CHECK(layers.front() == gather("forward", 2 * embedding + norm));
  CHECK(layers.back() == gather("forward", layer));
  const Lines ends = forward("layers+ends");
  CHECK(ends.size() == 34);
  CHECK(ends.front() == gather("forward", embedding));
  CHECK(ends.back() == gather("forward", embedding + norm));
  const Lines apart = forward("layers+embedding+head");
  CHECK(apart.size() == 35);
  CHECK(apart[0] == gather("forward", norm));
  CHECK(apart[1] == gather("forward", embedding));
  CHECK(apart.back() == gather("forward", embedding));
  CHECK(forward("model") == Lines{gather("forward", 2 * embedding + norm + 32 * layer)});
}

// GPT-2's head is its table: they cannot be in two units.
TEST_CASE("A tied embedding and its head are one unit at the ends") {
  const Workload gpt2 = training_workload("gpt2", {.batch = 8, .sequence = 1024});
  const Units units(gpt2, one_stage(gpt2), UnitsOf::layers_and_ends);
  CHECK(units.all().size() == 2);
  CHECK(units.all()[0].parameters.size() == 4);  // wte, wpe, ln_f's weight and bias
  CHECK(units.all()[0].kept_as_root);
  CHECK(units.all()[1].is_layer);
}

// One module that runs as often as there are layers: FSDP2's hooks gather it for each run, and its
// gradients are complete with the first (torch_steps.py compares the calls with PyTorch's).
TEST_CASE("A layer that runs again and again is a unit that is gathered each time") {
  const Json config = {{"model_type", "albert"},
                       {"architectures", {"AlbertForMaskedLM"}},
                       {"hidden_size", 64},
                       {"num_hidden_layers", 3},
                       {"intermediate_size", 256},
                       {"num_attention_heads", 4},
                       {"embedding_size", 16},
                       {"vocab_size", 1000},
                       {"max_position_embeddings", 64}};
  const Step step{.batch = 8, .sequence = 32};
  const Workload workload =
      build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step);
  const Json json = "fsdp2";
  const Plan plan =
      compile(workload, step, eight, read_strategy(JsonReader(json, {"strategy", ""}), eight)).plan;
  // Four products of 64 x 64, two of 64 x 256, their biases, two norms.
  const std::string layer_bytes = std::to_string(2 * (4 * 65 * 64 + 65 * 256 + 257 * 64 + 4 * 64));
  const Lines lines = collectives(plan);
  CHECK(of(lines, "forward all-gather dp_shard " + layer_bytes).size() == 3);
  CHECK(of(lines, "backward all-gather dp_shard " + layer_bytes).size() == 3);
  CHECK(of(lines, "backward reduce-scatter").size() == 2);  // and the root's
}

// torchtitan's unit of norm and head: for the norm, for the chunks and in backward.
TEST_CASE("A loss in chunks computes the same, with logits of one chunk at a time") {
  const auto plan_of = [](int chunks, std::int64_t microbatches) {
    const Step step{.batch = 8 * microbatches, .sequence = 8192, .microbatches = microbatches};
    const Json json = {{"name", "torchtitan"}, {"loss_chunks", chunks}};
    return compile_step("llama-3.1-8b", eight, json.dump(), step).plan;
  };
  const auto flops_of_products = [](const Plan& plan) {
    double flops = 0;
    for (const Task& task : plan.programs[0].tasks) {
      const auto work = static_cast<std::size_t>(task.work);
      const bool counts =
          task.kind == TaskKind::kernel && plan.kernels[work].kernel_class == KernelClass::matmul;
      if (counts) flops += plan.kernels[work].flops.count();
    }
    return flops;
  };
  const auto largest = [](const Plan& plan) {
    Bytes bytes{0};
    for (const Buffer& buffer : plan.programs[0].buffers) {
      const bool is_made = buffer.category == BufferCategory::activations ||
                           buffer.category == BufferCategory::temporaries;
      if (is_made) bytes = std::max(bytes, buffer.bytes);
    }
    return bytes;
  };
  const auto gathers_of_ends = [](const Plan& plan) {
    return test::count(plan, [](const Collective& c) {
      return c.kind == CollectiveKind::all_gather && c.payload == Bytes(embedding + norm);
    });
  };
  const Bytes logits(std::int64_t{8192} * 128256 * 4);
  for (const std::int64_t microbatches : {1, 2}) {
    const Plan plain = plan_of(1, microbatches), chunked = plan_of(4, microbatches);
    CHECK(flops_of_products(chunked) == Approx(flops_of_products(plain)));
    CHECK(largest(plain) == logits);
    CHECK(largest(chunked).count() == logits.count() / 4);
    CHECK(gathers_of_ends(plain) == microbatches);
    CHECK(gathers_of_ends(chunked) == 3 * microbatches);
  }
}

// Llama-3.2-1B's table is 128256 x 2048. The head's part of its gradient is whole behind the
// chunks, the look-ups' when its unit is through (torchtitan 0.3, components/loss.py).
TEST_CASE("A tied table's gradient is reduced twice by a loss in chunks") {
  const auto plan_of = [](int chunks, std::int64_t microbatches) {
    const Step step{.batch = 8 * microbatches, .sequence = 2048, .microbatches = microbatches};
    const Json json = {{"name", "torchtitan"}, {"loss_chunks", chunks}};
    return compile_step("llama-3.2-1b", eight, json.dump(), step).plan;
  };
  constexpr std::int64_t table = 2 * 128256LL * 2048, last_norm = 2 * 2048;
  const auto reductions_of = [](const Plan& plan, std::int64_t bytes) {
    return test::count(plan, [&](const Collective& c) {
      return c.kind == CollectiveKind::reduce_scatter && c.payload == Bytes(bytes);
    });
  };
  for (const std::int64_t microbatches : {1, 2}) {
    const Plan plain = plan_of(1, microbatches), chunked = plan_of(4, microbatches);
    CHECK(reductions_of(plain, table) == 0);
    CHECK(reductions_of(chunked, table) == microbatches);
    for (const Plan* plan : {&plain, &chunked}) {
      CHECK(reductions_of(*plan, table + last_norm) == microbatches);
    }
  }
}

// fully_shard over a mesh whose shard axis has one device.
TEST_CASE("Replicas alone have no shards") {
  const Mesh replicas({{"dp_replicate", 8}});
  for (const char* name : {R"({"name": "fsdp2"})", R"({"name": "torchtitan"})"}) {
    const Lines calls = collectives(compile_step("llama-3.1-8b", replicas, name).plan);
    CHECK(of(calls, "all-gather").empty());
    CHECK(of(calls, "reduce-scatter").empty());
    CHECK(of(calls, "backward all-reduce dp_replicate " + std::to_string(layer)).size() == 32);
  }
  const Lines named = collectives(
      compile_step("llama-3.1-8b", replicas, R"({"name": "fsdp2", "shard_axis": "dp_replicate"})")
          .plan);
  CHECK_FALSE(of(named, "all-gather").empty());
}

// Calls are the same; who waits later holds sums over replicas no shorter.
TEST_CASE("Reductions are awaited behind the step's or each microbatch's backward pass") {
  const Mesh mesh({{"dp_replicate", 2}, {"dp_shard", 4}});
  const Step step{.batch = 24, .sequence = 2048, .microbatches = 3};
  const auto plan_of = [&](const char* awaited) {
    const Json json = {{"name", "fsdp2"}, {"await_reductions", awaited}};
    return compile_step("llama-3.1-8b", mesh, json.dump(), step).plan;
  };
  const Plan late = plan_of("step"), soon = plan_of("microbatch");
  CHECK(collectives(late) == collectives(soon));
  // Sums over replicas of the second microbatch that are there when the third begins; the first's
  // are what others are added to.
  const auto held = [](const Plan& plan) {
    const Program& program = plan.programs.front();
    const auto begin_of = [&](std::int32_t microbatch) {
      const auto first =
          std::find_if(program.tasks.begin(), program.tasks.end(),
                       [&](const Task& task) { return task.microbatch == microbatch; });
      return static_cast<TaskId>(first - program.tasks.begin());
    };
    const TaskId second = begin_of(1), third = begin_of(2);
    return std::count_if(program.buffers.begin(), program.buffers.end(), [&](const Buffer& buffer) {
      const auto last = program.freed_after(buffer);
      return buffer.category == BufferCategory::communication && buffer.allocated_by > second &&
             buffer.allocated_by < third && !last.empty() &&
             *std::max_element(last.begin(), last.end()) > third;
    });
  };
  CHECK(held(soon) == 0);
  CHECK(held(late) > 0);
}

// Mixtral: of a layer the experts, and all else.
TEST_CASE("Experts are a unit within their layer's") {
  const Step step{.batch = 8, .sequence = 4096};
  const Workload mixtral = training_workload("mixtral-8x7b", step);
  const Units units(mixtral, one_stage(mixtral), UnitsOf::layers, /*experts_apart=*/true);
  CHECK(units.all().size() == 3);
  CHECK(units.all()[1].parameters.size() == 7);  // two norms, q, k, v, o, the router
  CHECK(units.all()[2].is_inner);
  const auto first = [&](const char* asked) {
    Lines lines = collectives(
        compile_step("mixtral-8x7b", eight,
                     std::string(R"({"name": "fsdp", "expert_units": "own", "ask_ahead": ")") +
                         asked + R"("})",
                     step)
            .plan);
    lines.resize(4);
    return lines;
  };
  const std::int64_t experts = std::int64_t{3} * 8 * 4096 * 14336 * 2;
  const std::int64_t others =
      (std::int64_t{2} * 4096 * 4096 + 2 * 4096 * 1024 + 8 * 4096 + 2 * 4096) * 2;
  const Lines expected = {gather("forward", 2 * 32000 * 4096 * 2 + 4096 * 2),
                          gather("forward", others), gather("forward", experts),
                          gather("forward", others)};
  CHECK(first("never") == expected);
  CHECK(first("always") == expected);
}

TEST_CASE("One unit of all is refused where stages are modules of their own") {
  CHECK(
      error_of(R"({"name": "fsdp", "units": "model"})", Mesh({{"pp", 2}, {"fsdp", 4}})) ==
      "strategy: /units: \"model\" is one unit of all parameters, and stages are modules of their "
      "own: \"layers\" makes each layer one");
}

// FSDP2's order: G31 G30 R31 G29 R30 ... G0 R1 R0, then the root's (tests/golden/torch).
TEST_CASE("Units that are asked for ahead are gathered before gradients are reduced") {
  const auto backward = [](const char* asked) {
    return of(collectives(compile_step("llama-3.1-8b", eight,
                                       std::string(R"({"name": "fsdp", "ask_ahead": ")") + asked +
                                           R"(", "reshard_root_after_forward": false})")
                              .plan),
              "backward");
  };
  const auto kinds = [](const Lines& lines) {
    std::string text;
    for (const std::string& line : lines)
      text += line.find("all-gather") != std::string::npos ? 'G' : 'R';
    return text;
  };
  const std::string ahead = kinds(backward("backward"));
  CHECK(ahead.substr(0, 6) == "GGRGRG");
  CHECK(ahead.size() == 65);  // 32 gathers, 33 reductions
  CHECK(ahead.substr(ahead.size() - 4) == "GRRR");
  CHECK(kinds(backward("never")).substr(0, 6) == "GRGRGR");
}

TEST_CASE("Gradients of a shared input are reduced together or apart") {
  const auto all_reduces = [](const char* how) {
    return of(collectives(compile_step("llama-3.1-8b", two_by_four,
                                       std::string(R"({"name": "fsdp+tp", "input_gradients": ")") +
                                           how + "\"}")
                              .plan),
              "backward all-reduce tp 268435456")
        .size();
  };
  // 4 sequences of 8192 x 4096 in bf16; per layer q, k, v / gate, up; and the head's.
  CHECK(all_reduces("together") == 32 * 2 + 1);
  CHECK(all_reduces("apart") == 32 * 5 + 1);
}

TEST_CASE("Without loss parallelism logits are gathered") {
  const auto lines = [](const char* parallel) {
    return collectives(
        compile_step("llama-3.1-8b", two_by_four,
                     std::string(R"({"name": "fsdp+tp", "loss_parallel": )") + parallel + "}")
            .plan);
  };
  // 4 sequences on a device, as the batch of 8 is split in two.
  const std::string logits = "forward all-gather tp " + std::to_string(2 * 4 * 8192LL * 128256);
  CHECK(of(lines("false"), logits).size() == 1);
  CHECK(of(lines("true"), logits).empty());
  CHECK(of(lines("true"), "forward all-reduce tp 131072 fp32").size() == 3);
  CHECK(of(lines("false"), "forward all-reduce tp 131072 fp32").empty());
}

// 291 norms of 4 bytes over each axis that parameters lie over; without sequence parallelism the 65
// norms' weights are on dp_shard alone.
TEST_CASE("Clipping adds up norms over one axis after another") {
  Step step = usual_step();
  step.gradient_clipping = true;
  step.optimizer.gradients = DType::f32;
  const auto norms = [&](const char* strategy, const Mesh& mesh) {
    return of(collectives(compile_step("llama-3.1-8b", mesh, strategy, step).plan),
              "optimizer all-reduce");
  };
  CHECK(norms(R"({"name": "fsdp"})", eight) == Lines{"optimizer all-reduce dp_shard 1164 fp32"});
  CHECK(norms(R"({"name": "fsdp+tp", "sequence_parallel": true})", two_by_four) ==
        Lines{"optimizer all-reduce dp_shard 1164 fp32", "optimizer all-reduce tp 1164 fp32"});
  CHECK(norms(R"({"name": "fsdp+tp"})", two_by_four) ==
        Lines{"optimizer all-reduce dp_shard 904 fp32", "optimizer all-reduce tp 904 fp32",
              "optimizer all-reduce dp_shard 260 fp32"});
  CHECK(norms(R"({"name": "replicate"})", eight).empty());
}

TEST_CASE("What clipping does to each gradient is read it for its norm, then scale it") {
  Step step = usual_step();
  step.gradient_clipping = true;
  step.optimizer.gradients = DType::f32;
  const Plan plan = compile_step("llama-3.1-8b", eight, R"({"name": "fsdp"})", step).plan;
  const std::int64_t shard = 4 * 8030261248LL / 8;
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const Task& task : plan.programs[0].tasks) {
    const std::string& name = plan.names[static_cast<std::size_t>(task.name)];
    if (task.kind != TaskKind::kernel || !name.starts_with("gradient ")) continue;
    found.emplace_back(name, plan.kernels[static_cast<std::size_t>(task.work)].bytes.count());
  }
  CHECK(found == std::vector<std::pair<std::string, std::int64_t>>{
                     {"gradient norms", shard}, {"gradient clipping", 2 * shard}});
}

// FSDP2's MixedPrecisionPolicy(reduce_dtype=bf16): gradients travel in bf16 and are kept in fp32.
TEST_CASE("Gradients may be reduced in another type than they are kept in") {
  Step step = usual_step();
  step.optimizer.gradients = DType::f32;
  step.optimizer.reduce = DType::bf16;
  const Plan plan = compile_step("llama-3.1-8b", eight, R"({"name": "fsdp2"})", step).plan;
  const Lines reductions = of(collectives(plan), "reduce-scatter");
  CHECK(reductions.front() == "backward reduce-scatter dp_shard " + std::to_string(layer));
  const std::int64_t kept = 4 * 14336LL * 4096 / 8;  // of gate, up or down, in fp32
  const auto& buffers = plan.programs[0].buffers;
  CHECK(std::count_if(buffers.begin(), buffers.end(), [&](const Buffer& buffer) {
          return buffer.category == BufferCategory::gradients && buffer.bytes.count() == kept;
        }) == 32 * 3);
}

TEST_CASE("A framework's name is a runtime that can be said by hand") {
  const Json fsdp2 = resolved(R"("fsdp2")", two_by_four);
  CHECK(fsdp2["ask_ahead"] == "backward");
  CHECK(fsdp2["reshard_after_forward"] == true);
  CHECK(fsdp2["reshard_root_after_forward"] == false);
  CHECK(fsdp2["units"] == "layers");
  CHECK(fsdp2["reduce_model_axis"] == "apart");
  CHECK(fsdp2["input_gradients"] == "apart");
  CHECK(fsdp2["loss_parallel"] == false);
  const Json titan = resolved(R"("torchtitan")", two_by_four);
  CHECK(titan["units"] == "layers+ends");
  CHECK(titan["sequence_parallel"] == true);
  CHECK(titan["input_gradients"] == "late");
  CHECK(titan["loss_parallel"] == true);
  for (const char* name : {"fsdp1", "fsdp2", "torchtitan", "ddp"}) {
    const Mesh& mesh = std::string(name) == "ddp" ? eight : two_by_four;
    const Json once = resolved("\"" + std::string(name) + "\"", mesh);
    INFO(name);
    CHECK(resolved(once.dump(), mesh) == once);
  }
}

// 25 MiB, and 1 MiB of the first; bucket_cap_mb sets both (torch/nn/parallel/distributed.py).
TEST_CASE("DDP's buckets have two limits unless one is given") {
  const Json buffer = resolved(R"("ddp")", eight)["gradient_buffer"];
  CHECK(buffer["bucket_bytes"] == 26214400);
  CHECK(buffer["first_bucket_bytes"] == 1048576);
  const Json given = resolved(R"({"name": "ddp", "bucket_cap_mb": 100})", eight)["gradient_buffer"];
  CHECK(given["bucket_bytes"] == 104857600);
  CHECK(given["first_bucket_bytes"] == 0);
}

}  // namespace shardsim::torch_runtime_test
