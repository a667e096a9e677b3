// Training steps of models from their descriptions. Expectations: parameters, FLOPs and what
// fused mixers keep of the records of tests/golden/models (torch 2.15.0 and transformers 5.23.0 on
// tensors without data; the README there), the share of a window by hand.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "base/json.hpp"
#include "strategies/compile/compile.hpp"
#include "tests/base/golden_files.hpp"
#include "tests/strategies/compile_with.hpp"
#include "tests/workloads/model_records.hpp"
#include "workloads/models/build.hpp"
#include "workloads/models/described_model.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/graph/graph_context.hpp"
#include "workloads/models/graph/model_graph.hpp"
#include "workloads/step/backward.hpp"
#include "workloads/step/optimizer.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

Shapes shapes_of(const Workload& workload) {
  Shapes shapes;
  for (const ParameterView& view : parameters(workload)) {
    const std::string& name = workload.tensors[static_cast<std::size_t>(view.tensor)].name;
    for (const std::int32_t number : view.numbers) shapes[instance_name(name, number)] = view.shape;
  }
  return shapes;
}

// Of products and attention, all that a record counts; attention whole, whatever its mask.
double product_flops(const Workload& workload, std::vector<Op> Block::*ops) {
  double flops = 0;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.*ops) {
      const bool attends = kind_of(op) == OpKind::attention;
      if (kind_of(op) != OpKind::einsum && !attends) continue;
      double points = flops_per_point(workload, op) * static_cast<double>(block.instances());
      for (const LabelId label : factors(op)) {
        points *= static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
      }
      flops += attends ? points : points * op.work_fraction;
    }
  }
  return flops;
}

// Of attention that is one kernel, forward.
double kernel_flops(const Workload& workload) {
  Workload kernels = workload;
  for (Block& block : kernels.blocks) {
    std::erase_if(block.forward, [](const Op& op) { return kind_of(op) != OpKind::attention; });
  }
  return product_flops(kernels, &Block::forward);
}

// What PyTorch computes and nobody reads, which a step leaves out: a pooler of two rows of 64
// or 128 beside the masked head, 2 * 2 * 64^2; the state behind lightning attention's last block,
// (k * b)^T v of 2 x 8 heads of 32 and 16 tokens. And what is no product of ours: convolutions of
// 9 taps of each of 128 channels, 2 layers of 2 x 64 tokens.
double apart_flops(const std::string& record) {
  if (record == "convbert-small") return 2.0 * 2 * 2 * 64 * 128 * 9;
  if (record == "big-bird-small") return 2.0 * 2 * 64 * 64;
  if (record == "squeezebert-small") return 2.0 * 2 * 128 * 128;
  return record == "minimax-small" ? 2.0 * 2 * 8 * 16 * 32 * 32 : 0;
}

// What PyTorch multiplies and adds up and we have as products: what each of two branches of 5
// layers and the end read of 4 streams of 256 numbers, 2 x 64 tokens, both of whose factors learn;
// and, of an index that does not, the sums over 4 heads of scores with 16 entries.
struct SummedProducts {
  double forward = 0, backward = 0;
};
SummedProducts summed_products(const std::string& record) {
  if (record != "deepseek-v4-small") return {};
  const double reads = 2.0 * 2 * 64 * 4 * 256 * (2 * 5 + 1);
  return {reads + 2.0 * 2 * 64 * 4 * 16, 2 * reads};
}

// Of scans, which are in no total of a record.
double scan_flops(const Workload& workload) {
  double flops = 0;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      if (kind_of(op) != OpKind::scan && kind_of(op) != OpKind::chunked_scan) continue;
      for (const Operations& work : op.work) {
        double points = work.flops * static_cast<double>(block.instances());
        for (const LabelId label : work.over) {
          points *= static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
        }
        flops += points;
      }
    }
  }
  return flops;
}

// Storages of a module's activations that the block's backward pass reads.
std::int64_t kept_bytes(const Workload& workload, const Block& block, const std::string& module) {
  std::map<TensorId, TensorId> within;
  for (const Op& op : block.forward) {
    if (!op.view) continue;
    for (const Operand& part : op.results) within[part.tensor] = op.operands[0].tensor;
  }
  std::set<TensorId> kept;
  for (const Op& op : block.backward) {
    for (const Operand& operand : op.operands) {
      TensorId id = operand.tensor;
      while (within.contains(id)) id = within[id];
      const Tensor& tensor = workload.tensors[static_cast<std::size_t>(id)];
      const bool is_forward = tensor.role == TensorRole::activation && tensor.primal == no_tensor;
      if (is_forward && tensor.name.starts_with(module + ".")) kept.insert(id);
    }
  }
  std::int64_t bytes = 0;
  for (const TensorId id : kept) bytes += workload.bytes(id).count();
  return bytes;
}

// What a record's module saved, but for what its first projection reads and what is of no token
// (-exp(A_log) and the like, which our scan makes inside).
std::int64_t recorded_bytes(const Json& saved, const Json& tensors, const std::string& module) {
  const auto batch = saved["batch"].get<std::int64_t>();
  const std::int64_t tokens = batch * saved["sequence"].get<std::int64_t>();
  std::int64_t bytes = 0;
  for (const Json& tensor : tensors) {
    const auto name = tensor[0].get<std::string>();
    const std::int64_t rows = tensor[2].empty() ? 0 : tensor[2][0].get<std::int64_t>();
    const bool inside = name == module || name.starts_with(module + ".");
    const bool of_tokens = rows == batch || rows % tokens == 0;
    if (inside && of_tokens && name != module + ".in_proj") bytes += tensor[3].get<std::int64_t>();
  }
  return bytes;
}

// Mamba and Mamba-2 in one function: mixers that keep what mamba_ssm's keep, to the byte. Answers
// how many; only the first of a record's points lists its tensors.
int check_fused_mixers(const Json& saved, const models::Stack& stack, const Workload& workload) {
  int checked = 0;
  if (!saved.contains("tensors_of_first_of_each_kind")) return checked;
  for (const Block& block : workload.blocks) {
    if (!block.is_layer) continue;
    const auto number = static_cast<std::size_t>(block.numbers.front());
    const auto& kind = stack.kinds[static_cast<std::size_t>(stack.order[number])];
    const auto& body = kind.branches[0].body;
    const auto* mamba = std::get_if<models::Mamba>(&body);
    const auto* second = std::get_if<models::Mamba2>(&body);
    const std::string layer = instance_name(block.name, block.numbers.front());
    const Json& kinds = saved["tensors_of_first_of_each_kind"];
    if ((second == nullptr && (mamba == nullptr || mamba->norms)) || !kinds.contains(layer))
      continue;
    const std::string& module = mamba != nullptr ? mamba->name : second->name;
    INFO(layer << "." << module);
    CHECK(kept_bytes(workload, block, block.name + "." + module) ==
          recorded_bytes(saved, kinds[layer], module));
    ++checked;
  }
  return checked;
}

struct RecordedFlops {
  double forward = 0;
  double backward = 0;
};

// Where a class multiplies attention out and we have one kernel, its backward pass is four products
// of scores; the kernel's, which computes the scores again, is five. `kernels`: of attention in our
// forward pass.
RecordedFlops recorded_flops(const Json& point, double kernels) {
  RecordedFlops flops;
  for (const auto& [op, count] : point["forward"].items()) {
    flops.forward += count.get<double>();
    if (op.starts_with("_scaled_dot_product")) kernels -= count.get<double>();
  }
  for (const auto& [op, count] : point["forward_backward"].items()) {
    flops.backward += count.get<double>();
  }
  flops.backward += kernels / 2 - flops.forward;
  return flops;
}

// FlopCounterMode counts the gradient of a weight in groups as if there were none: more than the
// input's and the weight's together.
bool counts_groups(const Json& point) {
  const Json& both = point["forward_backward"];
  return both.value("convolution_backward", 0.0) > 2 * both.value("convolution", 0.0);
}

void compile_under(const Workload& workload, const std::vector<MeshAxis>& axes,
                   const char* strategy) {
  INFO(strategy);
  const CompiledStep step = compile_with(workload, axes, strategy);
  CHECK(!step.plan.programs.at(0).tasks.empty());
}

void compile_steps(Workload workload) {
  add_backward(workload, {});
  add_optimizer(workload, {});
  compile_under(workload, {{"data", 8}}, "dp");
  compile_under(workload, {{"fsdp", 8}}, "fsdp");
  compile_under(workload, {{"model", 8}}, "tp");
  compile_under(workload, {{"fsdp", 4}, {"model", 2}}, "fsdp+tp");
}

// Of an op's activations the backward pass reads none but those that the table of functions says.
void check_saves(const Workload& workload) {
  for (const Block& block : workload.blocks) {
    std::map<std::string, std::set<TensorId>> read;
    for (const Op& op : block.backward) {
      for (const Operand& operand : op.operands) read[op.name].insert(operand.tensor);
    }
    for (const Op& op : block.forward) {
      const Saves saves = traits(op.function).saves;
      const auto all_said = [&](const std::vector<Operand>& tensors, unsigned said) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          const TensorId id = tensors[i].tensor;
          const bool kept = (said >> i & 1U) != 0;
          const TensorRole role = workload.tensors[static_cast<std::size_t>(id)].role;
          if (!kept && role == TensorRole::activation && read[op.name].contains(id)) return false;
        }
        return true;
      };
      INFO(op.name << " " << name_of(op.function));
      CHECK(all_said(op.operands, saves.operands));
      CHECK(all_said(op.results, saves.results));
    }
  }
}

// Tokens of a decoder beside an encoder are its labels.
WorkloadOptions options_of(const models::ModelSpec& spec, const Json& point) {
  const Json& inputs = point["inputs"];
  WorkloadOptions options{.batch = point["batch"], .sequence = {}};
  for (const auto& [name, shape] : inputs.items()) {
    if (spec.network && shape.size() == 4) options.side = shape[2];
  }
  // Of videos and of rows that come packed.
  if (spec.network && point.contains("image")) options.side = point["image"];
  if (spec.network && models::reads_samples(*spec.network)) {
    options.sequence = inputs["input_values"][1];
  }
  if (!models::reads_tokens(spec)) return options;
  options.sequence = inputs[inputs.contains("input_ids") ? "input_ids" : "labels"][1];
  if (spec.stacks[0].role == models::StackRole::encoder) options.target = inputs["labels"][1];
  return options;
}

// The refusal, or nothing where the model was built.
std::string check_record(const Json& record, const std::string& path, int& fused_mixers) {
  try {
    const JsonReader config(record["config"], {path, "/config"});
    const models::ModelSpec spec = models::read_model(config, path);
    for (std::size_t p = 0; p < record["flops"].size(); ++p) {
      const Json& point = record["flops"][p];
      // Text beside images is what runs.
      if (record["kind"] == "image_text" && point["inputs"].contains("pixel_values")) continue;
      Workload workload = models::build_graph(spec, options_of(spec, point), config.place());
      CHECK(shapes_of(workload) == recorded_shapes(record));
      add_backward(workload, {});
      check_saves(workload);
      const RecordedFlops expected = recorded_flops(point, kernel_flops(workload));
      const SummedProducts summed = summed_products(record["model"]);
      CHECK(product_flops(workload, &Block::forward) + apart_flops(record["model"]) ==
            expected.forward + summed.forward);
      if (!counts_groups(point)) {
        CHECK(product_flops(workload, &Block::backward) == expected.backward + summed.backward);
      }
      CHECK(scan_flops(workload) == point.value("scan_forward_by_formula_not_counted_above", 0.0));
      if (record["kind"] != "causal") continue;
      fused_mixers += check_fused_mixers(record["saved_activations"][p], spec.stacks[0], workload);
    }
    WorkloadOptions options{.batch = 8, .sequence = {}};
    if (models::reads_tokens(spec)) options.sequence = 64;
    compile_steps(models::build_graph(spec, options, config.place()));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("An op graph has the parameters and the work of its record") {
  std::set<std::string> seen;
  int fused_mixers = 0;
  for (const std::string& path : golden_files(golden_folder("models"), ".json")) {
    const Json record = load_json(path);
    if (!record.is_object() || !record.contains("config")) continue;
    const std::string name = std::filesystem::path(path).stem().string();
    INFO(name);
    seen.insert(name);
    const std::string refusal = check_record(record, path, fused_mixers);
    INFO(refusal);
    CHECK(refusal.empty());
  }
  CHECK(!seen.empty());
  CHECK(fused_mixers >= 6);  // two of Mamba, four of models with Mamba-2
}

// The records' configurations are those of the hub (its README).
TEST_CASE("Every key of the hub's files is known") {
  for (const std::string& path : golden_files(golden_folder("models"), ".json")) {
    const Json record = load_json(path);
    if (!record.is_object() || !record.contains("config")) continue;
    const std::string name = std::filesystem::path(path).stem().string();
    INFO(name);
    std::string error;
    try {
      static_cast<void>(read_described({name, name, OwnedJson(record["config"])}));
    } catch (const InputError& caught) {
      error = caught.what();
    }
    CHECK(error == "");
  }
}

// The bias of distances is made of a parameter, not of examples: what data parallelism reduces is
// its table's gradient, with the others. Two layers a stack: four all-reduces of buckets at most,
// one for each layer, and one for the rest.
TEST_CASE("Gradients of a bias of distances are reduced as the parameter's") {
  const Json t5{{"architectures", {"T5ForConditionalGeneration"}},
                {"d_model", 64},
                {"d_ff", 128},
                {"d_kv", 16},
                {"num_heads", 4},
                {"num_layers", 2},
                {"vocab_size", 128},
                {"dropout_rate", 0}};
  const models::ModelSpec spec = models::read_model(JsonReader(t5, {"t5", ""}), "t5");
  Workload workload = models::build_graph(spec, {.batch = 8, .sequence = 32}, {});
  add_backward(workload, {});
  add_optimizer(workload, {});
  const CompiledStep step = compile_with(workload, {{"fsdp", 8}}, "fsdp");
  for (const Collective& collective : step.plan.collectives) {
    CHECK(collective.kind != CollectiveKind::all_reduce);
  }
  // What the decoder's layers carry beside the stream ends with the last of them.
  const auto last =
      std::find_if(workload.blocks.begin(), workload.blocks.end(), [](const Block& b) {
        return b.name == "decoder.block.{}" && b.numbers == std::vector<std::int32_t>{1};
      });
  REQUIRE(last != workload.blocks.end());
  CHECK(last->carries_in.size() == 3);  // the stream, states, the bias
  CHECK(last->carries_out.size() == 1);
}

// s queries with w keys around each, w / 2 on either side: w s - w^2 / 4 pairs. w = 4, s = 8: 28.
TEST_CASE("A window around each token leaves its share of attention") {
  CHECK(models::bidirectional_fraction(0, 8) == 1);
  CHECK(models::bidirectional_fraction(16, 8) == 1);
  CHECK(models::bidirectional_fraction(4, 8) == 28.0 / 64);
}

// Two documents of 2 tokens and one of 4 fill 8: 2 * 2 + 8 pairs under a causal mask, of 64.
// Windows of 2 leave 2 * 2 + (2 * 4 - 2). A token's document has (2 * 4 + 16) / 8 = 3 tokens on
// average. One document of the sequence's length is the sequence.
TEST_CASE("Documents of a sequence leave their own shares of attention") {
  const Documents mixed{{{2, 2.0}, {4, 1.0}}};
  const auto within = [](std::int64_t window) {
    return [window](std::int64_t length) { return models::attention_fraction(window, length); };
  };
  CHECK(mixed.share_of_pairs(8, within(0)) == 12.0 / 64);
  CHECK(mixed.share_of_pairs(8, within(2)) == 10.0 / 64);
  CHECK(mixed.length_seen() == 3);
  CHECK(Documents{{{8, 1.0}}}.share_of_pairs(8, within(0)) == models::attention_fraction(0, 8));
}

// Query i of s sees min(i + 1, w) keys: w s - w (w - 1) / 2 pairs, of which the convention in which
// the causal triangle is s^2 / 2 leaves the terms of second order. w = 2, s = 8: 16 - 2 of 64.
TEST_CASE("A window leaves its share of attention") {
  CHECK(models::attention_fraction(0, 8) == 0.5);
  CHECK(models::attention_fraction(8, 8) == 0.5);
  CHECK(models::attention_fraction(100, 8) == 0.5);
  CHECK(models::attention_fraction(2, 8) == 14.0 / 64);
}
