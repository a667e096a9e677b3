// Against transformers' Qwen3 (models/qwen3/modeling_qwen3.py, Qwen3Attention.forward): queries are
// made and normed before keys are made, and autograd goes through them the other way.
#include "strategies/runtime/module_order.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "model_step.hpp"

namespace shardsim::module_order_test {
namespace {

std::vector<std::string> modules_of(const std::vector<Op>& ops) {
  std::vector<std::string> names;
  for (const Op& op : ops) {
    const std::string name = op.name.substr(op.name.rfind('.') + 1);
    const bool is_one = name.size() == 6 && name[1] == '_' && name != "q_rope" && name != "k_rope";
    if (is_one && (names.empty() || names.back() != name)) names.push_back(name);
  }
  return names;
}

const Block& layer_of(const Workload& workload) {
  for (const Block& block : workload.blocks) {
    if (block.is_layer) return block;
  }
  FAIL("no layer");
  return workload.blocks.front();
}

}  // namespace

TEST_CASE("norms of queries and keys are run behind what they norm") {
  Step step;
  step.batch = 1;
  step.sequence = 8;
  const Json config = {{"architectures", {"Qwen3ForCausalLM"}},
                       {"model_type", "qwen3"},
                       {"hidden_size", 64},
                       {"intermediate_size", 96},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 4},
                       {"num_key_value_heads", 2},
                       {"head_dim", 16},
                       {"vocab_size", 32}};
  const Workload workload =
      build_step(load_model_config(JsonReader(config, {"test", "/model"}), ""), step);
  using Names = std::vector<std::string>;
  CHECK(modules_of(layer_of(workload).forward) ==
        Names{"q_proj", "k_proj", "v_proj", "q_norm", "k_norm", "o_proj"});
  const auto ordered = with_norms_behind_products(workload);
  REQUIRE(ordered);
  CHECK(modules_of(layer_of(*ordered).forward) ==
        Names{"q_proj", "q_norm", "k_proj", "k_norm", "v_proj", "o_proj"});
  CHECK(modules_of(layer_of(*ordered).backward) ==
        Names{"o_proj", "v_proj", "k_norm", "k_proj", "q_norm", "q_proj"});
  CHECK(!with_norms_behind_products(*ordered));
}

}  // namespace shardsim::module_order_test
