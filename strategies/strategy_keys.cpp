#include "strategies/strategy_keys.hpp"

#include <algorithm>
#include <cassert>

#include "strategies/frameworks/framework.hpp"
#include "strategies/rules/rule_system.hpp"

namespace shardsim {
namespace {

constexpr std::string_view on_or_off = "true, false";
constexpr std::string_view axes_of_mesh = "an axis, or a list of axes";

const std::vector<StrategyKey> key_table = {
    {"name", {}, "one of those above", "needed", "the strategy"},
    {"zero_stage",
     {},
     "0, 1, 2; 3 of deepspeed",
     "0",
     "of all but fsdp, hsdp and fsdp+tp, which are stage 3 by themselves: 1 shards the optimizer "
     "state over the batch axes, 2 the gradients, 3 the parameters, too"},
    {"batch_axes",
     {},
     axes_of_mesh,
     "axes with the role batch or shard, a rule system's own in its order first",
     "that split the batch"},
    {"sequence_axes",
     {},
     axes_of_mesh,
     "none; of rule systems what these say, sp of eformer's",
     "that split the sequence of the inputs"},
    {"shard_axis",
     {},
     "an axis",
     "the axis with the role shard, else the only batch axis",
     "of fsdp, hsdp and fsdp+tp: over which parameters are sharded",
     /*of_recipes_alone=*/true},
    {"model_axis",
     {},
     "an axis",
     "the axis with the role model",
     "of tp and fsdp+tp: over which matrices are split; of others with sequence_parallel; of rule "
     "systems: an axis that is not for the batch"},
    {"shard_dimension",
     {"first", "largest", "fitting"},
     "",
     "first; fitting of torchtitan",
     "of a parameter, which is sharded: the first, padded where it does not divide (FSDP2), or "
     "the largest that divides (JAX programs); fitting: the first, of experts that are fewer than "
     "devices the second (torchtitan)"},
    {"sequence_parallel",
     {},
     on_or_off,
     "false",
     "activations between blocks are split along the sequence over the model axis",
     /*of_recipes_alone=*/true},
    {"loss_parallel",
     {},
     on_or_off,
     "true",
     "where the model axis splits the vocabulary the loss is computed over the split logits; "
     "false: "
     "every device gathers them",
     /*of_recipes_alone=*/true},
    {"loss_chunks",
     {},
     "a number from 1 to 1024",
     "1",
     "tokens go through head and loss and back in so many chunks, in the forward pass "
     "(torchtitan's "
     "ChunkedCELoss, which has 8)",
     /*of_recipes_alone=*/true},
    {"return_outputs",
     {},
     "true, false",
     "true of fsdp1 and fsdp2 in a pipeline",
     "the last stage keeps its logits of each microbatch until the step ends, as PyTorch's "
     "schedules do unless they are told otherwise",
     /*of_recipes_alone=*/true},
    {"late_head_gradients",
     {},
     "a number, of microbatches",
     "0; of megatron all with \"overlap\": {\"embedding_gradient\": \"deferred\"}",
     "of the last stage: gradients of the head's weights, of the first so many microbatches, are "
     "made "
     "when the rank is through with its passes",
     /*of_recipes_alone=*/true},
    {"product_overlap",
     {"none", "userbuffers", "asynchronous", "windowed", "in_turn"},
     "",
     "none; of megatron userbuffers with \"overlap\": {\"tp\": true}, of torchtitan asynchronous "
     "with \"async_tp\", of xla windowed, of deepspeed in_turn",
     "collectives of the model axis go on in pieces, one for each device of it, beside the "
     "products "
     "that read what they gather or make what they scatter: gathers, and scatters of forward "
     "(Transformer Engine's userbuffers), or those of backward as well (PyTorch), or scatters "
     "alone, "
     "over 4 devices and more (XLA on TPU); in_turn: not even sums of backward go beside the "
     "products of weights' gradients (Megatron-DeepSpeed)"},
    {"exchange_overlap",
     {"none", "passes", "late_weights"},
     "",
     "none; of megatron passes with \"overlap\": {\"experts\": true}, late_weights with "
     "{\"experts\": \"delay_wgrad\"}",
     "rows go to experts and back beside the work of another microbatch: forward and backward "
     "passes "
     "that the schedule overlaps (interleaved-1f1b, dualpipev; without stages every microbatch's "
     "forward and the backward of the one before) go layer by layer; late_weights: gradients of "
     "weights wait until the rows that backward sends are on their way",
     /*of_recipes_alone=*/true},
    {"input_gradients",
     {"together", "apart", "late"},
     "",
     "together; late of torchtitan",
     "of products that read the same input, as q, k and v: added up, then reduced over the model "
     "axis in one call (Megatron), or each in a call of its own (PyTorch's ColwiseParallel without "
     "sequence parallelism); late: together, but those of latents are carried on as sums to what "
     "the latents are made of, and their weights' gradients are reduced in their place, and rows "
     "of "
     "experts that are not dealt out lie whole and are summed as tokens (DTensor)"},
    {"reshard_after_forward",
     {},
     "true, false, a number",
     "true; false of fsdp_tutorial",
     "gathered parameters of repeated blocks are given back after forward and gathered again in "
     "backward; a number, as FSDP2 has it: from slices that are kept over so many neighbours of "
     "the shard axis, of fsdp, hsdp and fsdp+tp"},
    {"reshard_root_after_forward",
     {},
     on_or_off,
     "true; false of fsdp_tutorial",
     "the same of all other parameters, the embedding and the head; FSDP2's own default is "
     "false"},
    {"units",
     {"layers", "layers+ends", "layers+embedding+head", "model"},
     "",
     "layers",
     "parameters that are one unit, gathered and reduced together: each layer, all else the root; "
     "the embedding, and the norm with the head, as well (torchtitan); the embedding and the head; "
     "or all parameters are one"},
    {"expert_units",
     {"with_layer", "own"},
     "",
     "with_layer",
     "routed experts of a layer are gathered and reduced with it, or as a unit within the layer's: "
     "before the first of them computes and behind the last (fully_shard on both)",
     /*of_recipes_alone=*/true},
    {"gather",
     {"unit", "tensor"},
     "",
     "unit; tensor of rule systems",
     "parameters are gathered in one call per block (FSDP2) or one per tensor (XLA)"},
    {"gather_dtype",
     {"compute", "parameters"},
     "",
     "compute; parameters of fsdp_tutorial",
     "parameters are gathered in the dtype that is computed in, their shards cast before, or in "
     "that of the parameters, cast after"},
    {"gather_embedding",
     {},
     on_or_off,
     "true",
     "look-ups read the whole table (FSDP2); false: each device looks up all tokens in its "
     "shard"},
    {"reduce_loss",
     {},
     on_or_off,
     "false; true of praxis",
     "the loss is averaged over the devices"},
    {"outputs",
     {"as_made", "whole"},
     "",
     "as_made; whole of praxis",
     "what \"workload.outputs\" names leaves the step as it was made, or gathered to every device"},
    {"reduce_each_microbatch",
     {"all", "shards", "none"},
     "",
     "all; shards of fsdp_tutorial",
     "gradients that are reduced in every microbatch: all, those that a reduction leaves in "
     "shards (over the axes of these alone), or none before the last (no_sync)"},
    {"await_reductions",
     {"step", "microbatch"},
     "",
     "step; microbatch of fsdp1, fsdp2 and torchtitan",
     "behind which backward pass computation waits for all reductions of gradients: the step's "
     "last (FSDP2's set_is_last_backward(False) before it), or each microbatch's"},
    {"prefetch",
     {},
     "a number from 0 to 1024",
     "1",
     "blocks whose parameters may be under way ahead of the one that computes"},
    {"gradient_buffer",
     {},
     R"({"bucket_elements": 40000000, "closes": "after", "adds_in_products": true, ...}, null)",
     "null; frameworks have their own",
     "gradients lie in one flat buffer, which is cut into buckets: elements at which a bucket ends "
     "(0: one bucket) or \"bucket_bytes\", \"first_bucket_bytes\" of the first, \"order\" "
     "registered or made, \"kept\" always, step, shards, room, apart or views, \"closes\" "
     "after or before the parameter that reaches them, \"buckets_of\" "
     "all_stages or first_stage, \"shared_apart\", \"parameter_multiple\" and "
     "\"bucket_multiple\" of elements, \"adds_in_products\", \"behind_ddp\" (gradients of a pass "
     "stay till it is through, and lie in DDP's buckets), \"collective\" all-reduce or "
     "reduce-scatter, \"overlap\" with backward, \"aligns_stages\" of a pipeline",
     /*of_recipes_alone=*/true},
    {"flat_optimizer",
     {},
     R"({"shards": 8, "gather": "next_forward"}, null)",
     "null; frameworks have their own",
     "each device updates its part of every bucket, whatever tensors that cuts through: among so "
     "many devices (0: all that reduce it), gathered \"after_step\", then \"together\", or in the "
     "\"next_forward\"; \"deals_out\" tensors by turns; of flat parameters \"group_elements\"",
     /*of_recipes_alone=*/true},
    {"flat_parameters",
     {},
     R"({"prefetch_elements": 50000000, "live_elements": 1000000000, ...}, null)",
     "null; deepspeed's ZeRO 3 has its own",
     "parameters lie in flat parts, gathered as modules are entered: so many elements ahead while "
     "fewer than \"live_elements\" are there, but for those of at most \"whole_elements\"; given "
     "back unless used again within \"reuse_elements\"; \"secondary_shards\" of neighbours (hpZ), "
     "\"quantized\" to 8 bits (qwZ)",
     /*of_recipes_alone=*/true},
    {"clip_gradients",
     {},
     on_or_off,
     "false; true of megatron",
     "gradients are scaled by the norm of them all, added up over the devices: of a gradient "
     "buffer "
     "in one number, else tensor by tensor over one axis after another (PyTorch); \"workload\" has "
     "\"gradient_clipping\" for the same",
     /*of_recipes_alone=*/true},
    {"average_norm",
     {},
     on_or_off,
     "false; true of deepspeed's ZeRO 0",
     "with a gradient buffer: the norm of fp32 gradients is averaged over the devices of the batch",
     /*of_recipes_alone=*/true},
    {"check_overflow",
     {},
     on_or_off,
     "false; true of deepspeed's ZeRO 1 and 2 but in fp32",
     "with a gradient buffer: whether a gradient is not finite, one byte of all devices",
     /*of_recipes_alone=*/true},
    {"loss_per_token",
     {},
     on_or_off,
     "false",
     "with a gradient buffer: the loss is of all tokens of the step, however they lie on "
     "devices: these add up how many they have, and gradients are scaled behind their reduction "
     "(Megatron's calculate_per_token_loss)",
     /*of_recipes_alone=*/true},
    {"offload",
     {},
     R"({"activations": "cpu"}, {"activations": {"layers": 20}}, {"optimizer": "cpu"}, ...)",
     "none",
     "activations of layers that lie on the host from forward to backward: of all, of the first so "
     "many, or what {\"modules\": [\"core_attn\", ...]} read; the optimizer's state and work, of "
     "deepspeed's ZeRO 2 and 3 and, of megatron, of a {\"fraction\": 0.5} with or without "
     "\"overlap\"; parts of parameters, of ZeRO 3; parameters, gradients and optimizer of FSDP, as "
     "\"parameters\"",
     /*of_recipes_alone=*/true},
    {"saved_inputs",
     {"gathered", "sharded"},
     "",
     "gathered; sharded of megatron",
     "what a product reads from all devices of the model axis is kept for backward as it was "
     "gathered (PyTorch), or as the device's own part and gathered again",
     /*of_recipes_alone=*/true},
    {"latents",
     {"whole", "first", "split"},
     "",
     "whole; first of megatron, split with \"eager\" kernels, its local specification",
     "what makes latents of attention is whole on every device of the model axis, those of queries "
     "and keys first as well, or split over it, too",
     /*of_recipes_alone=*/true},
    {"context",
     {},
     R"({"method": "ring", "balanced": true, "rotation": "messages", "gradients": "compute", "states": "heads"})",
     "all-gather; frameworks have their own",
     "how attention reads keys and values of a sequence that is split: gathered, passed round in a "
     "ring, with heads split in its place by an all-to-all, or \"ring+all-to-all\", where "
     "\"head_devices\" neighbours split heads; whether a causal mask leaves devices as much; what "
     "is kept for backward of what was gathered; of a ring, whether parts go from device to device "
     "or are gathered at once, and the type that gradients are added up in; whether state-space "
     "layers exchange heads for the sequence, have it gathered or are refused",
     /*of_recipes_alone=*/true},
    {"shard_context",
     {},
     on_or_off,
     "false; true of fsdp1, fsdp2, torchtitan and megatron's \"fsdp\"",
     "of strategies with a shard axis: parameters are sharded over the sequence axes, too",
     /*of_recipes_alone=*/true},
    {"experts",
     {},
     R"({"parallel": 8, "tensor_parallel": 1, "dispatch": "all-to-all", "balance": "even"}, null)",
     "null, or those of the mesh's axis for experts",
     "mixtures' experts are dealt out over so many devices, neighbours among those that hold "
     "different tokens, and rows of tokens exchanged; \"balance\" even, {\"skew\": 1.3} of all "
     "layers or {\"file\": \"shares.csv\"} with what each expert of each gets; \"shared_beside\" "
     "that exchange (docs/experts.md)",
     /*of_recipes_alone=*/true},
    {"vocabulary_multiple",
     {},
     "a number from 1 to 16777216",
     "1; megatron's is 128 for each device of the model axis",
     "the vocabulary is padded to a multiple of it",
     /*of_recipes_alone=*/true},
    {"ask_ahead",
     {"never", "backward", "always"},
     "",
     "never",
     "parameters that may be under way ahead are asked for by the blocks before, in backward "
     "before "
     "these reduce their gradients (FSDP2), always in forward as well; else when their turn comes: "
     "the order of calls"},
    {"reduce_model_axis",
     {"with_unit", "apart"},
     "",
     "with_unit",
     "gradients that are sums over the model axis, too (norms under sequence parallelism): over it "
     "in one call with their block's, as shards, or whole before that, one by one (PyTorch)"},
    {"checkpointed_calls",
     {"kept", "repeated"},
     "",
     "kept; repeated of torchtitan with \"spmd_backend\": \"spmd_types\"",
     "where the policy every_other_product computes a layer again: what calls scatter and exchange "
     "is kept, or they come again (calls of torch.distributed, which that policy does not know)"},
    {"table_gradients",
     {"part", "whole"},
     "",
     "part; whole of fsdp1 and fsdp2",
     "the gradient of a split table of embeddings: of the device's part, or of all rows, of which "
     "it takes its part then (DTensor)"},
    {"weighed_rows",
     {"computed", "fp32"},
     "",
     "computed; fp32 of torchtitan, unless it is compiled",
     "experts' rows are multiplied by their scores in the type that is computed in, or in fp32"},
    {"repeat_forward",
     {"first", "when_needed", "to_end"},
     "",
     "first; when_needed of fsdp1, fsdp2 and to_end of torchtitan",
     "what backward computes again: before all else, or when it is first read, so that a gradient "
     "that comes in split is gathered before (PyTorch); to_end: so, and of layers that are "
     "repeated "
     "whole their last product, too (torchtitan, early_stop=False)"},
    {"pipeline",
     {},
     R"({"schedule": "interleaved-1f1b", "virtual_stages": 2, "layers": [20, 21, 21, 18]})",
     "1F1B with layers dealt out evenly, where the mesh has an axis for stages",
     "the schedule, stages per rank and layers of stages (docs/pipelines.md); of rule systems and "
     "xla {\"schedule\": \"shifting\", \"repeats\": 2, \"stream_io\": false}, one program"},
    {"rules",
     {},
     R"([{"pattern": "q_proj", "spec": ["fsdp", null]}, ...])",
     "none",
     "specs of parameters whose names the regular expression is found in; the first that matches "
     "holds, before the recipe",
     /*of_recipes_alone=*/true},
    {"layout",
     {},
     R"({"parameters": {"lm_head.weight": {"stored": ["fsdp", null]}, ...}, ...})",
     "what name, axes and rules come to",
     "what lies where, tensor by tensor, as a result's \"strategy\" and plan --stop-after layout "
     "print it; goes before all else that says so"},
    {"activations",
     {},
     R"([{"pattern": "attention", "spec": ["data"]}, ...])",
     "none",
     "the same of activations, by the names that plan prints"},
};

}  // namespace

const std::vector<StrategyKey>& strategy_keys() { return key_table; }

std::vector<std::string> keys_of_strategy(std::string_view strategy) {
  const RuleSystem* system = find_rule_system(strategy);
  const Framework* framework = find_framework(strategy);
  std::vector<std::string> keys;
  for (const StrategyKey& key : strategy_keys()) {
    if (system == nullptr || !key.of_recipes_alone) keys.emplace_back(key.name);
  }
  if (system != nullptr) keys.insert(keys.end(), system->keys.begin(), system->keys.end());
  if (framework != nullptr) {
    keys.insert(keys.end(), framework->keys.begin(), framework->keys.end());
  }
  return keys;
}

const std::vector<std::string>& choices_of_key(std::string_view key) {
  const auto& all = strategy_keys();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const StrategyKey& row) { return row.name == key; });
  assert(found != all.end() && !found->choices.empty());
  return found->choices;
}

}  // namespace shardsim
