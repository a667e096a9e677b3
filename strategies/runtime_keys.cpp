#include "strategies/runtime_keys.hpp"

#include "base/json.hpp"
#include "strategies/key_choices.hpp"

namespace shardsim {
namespace {

constexpr int max_prefetch = 1024;
constexpr std::int64_t max_loss_chunks = 1024;
constexpr std::int64_t max_late_gradients = 1 << 24;

}  // namespace

void read_runtime_keys(const JsonReader& json, Runtime& runtime) {
  const auto kept = [](bool reshards) { return reshards ? Kept::forward : Kept::backward; };
  if (const auto reshard = json.find("reshard_after_forward"); reshard && !reshard->is_number()) {
    runtime.gathers.kept = kept(reshard->boolean());
  }
  if (const auto reshard = json.find("reshard_root_after_forward")) {
    runtime.gathers.kept_root = kept(reshard->boolean());
  }
  if (const auto reduce = json.find("reduce_loss")) runtime.averages_loss = reduce->boolean();
  if (const auto gather = json.find("gather")) {
    const bool units = gather->choice(choices_of_key("gather")) == "unit";
    runtime.gathers.grain = runtime.reductions.grain = units ? Grain::unit : Grain::tensor;
  }
  if (const auto dtype = json.find("gather_dtype")) {
    const bool stored = dtype->choice(choices_of_key("gather_dtype")) == "parameters";
    runtime.gathers.dtype = stored ? GatherDType::stored : GatherDType::compute;
  }
  read_enum(json, "reduce_each_microbatch", runtime.reductions.each_microbatch);
  read_enum(json, "await_reductions", runtime.reductions.awaited);
  read_choice(json, "checkpointed_calls", "repeated", runtime.repeats_calls);
  read_choice(json, "table_gradients", "whole", runtime.whole_table_gradients);
  read_choice(json, "weighed_rows", "fp32", runtime.wide_rows);
  read_enum(json, "units", runtime.units);
  read_choice(json, "expert_units", "own", runtime.experts_apart);
  read_enum(json, "repeat_forward", runtime.repeats);
  read_enum(json, "product_overlap", runtime.product_overlap);
  read_enum(json, "exchange_overlap", runtime.exchange_overlap);
  read_enum(json, "ask_ahead", runtime.gathers.asked);
  read_enum(json, "reduce_model_axis", runtime.reductions.model_sums);
  if (const auto late = json.find("late_head_gradients")) {
    runtime.late_head_gradients = late->integer(0, max_late_gradients);
  }
  if (const auto outputs = json.find("return_outputs")) {
    runtime.returns_outputs = outputs->boolean();
  }
  if (const auto chunks = json.find("loss_chunks")) {
    runtime.loss_chunks = chunks->integer(1, max_loss_chunks);
  }
  if (const auto prefetch = json.find("prefetch")) {
    runtime.gathers.ahead = static_cast<int>(prefetch->integer(0, max_prefetch));
  }
}

Json runtime_keys_to_json(const Runtime& runtime) {
  const Gathers& gathers = runtime.gathers;
  return {{"reshard_after_forward",
           gathers.slices ? Json(gathers.slices->over) : Json(gathers.kept == Kept::forward)},
          {"reshard_root_after_forward", gathers.kept_root == Kept::forward},
          {"gather", gathers.grain == Grain::unit ? "unit" : "tensor"},
          {"gather_dtype", gathers.dtype == GatherDType::stored ? "parameters" : "compute"},
          {"reduce_loss", runtime.averages_loss},
          {"reduce_each_microbatch",
           enum_name("reduce_each_microbatch", runtime.reductions.each_microbatch)},
          {"await_reductions", enum_name("await_reductions", runtime.reductions.awaited)},
          {"reduce_model_axis", enum_name("reduce_model_axis", runtime.reductions.model_sums)},
          {"checkpointed_calls", runtime.repeats_calls ? "repeated" : "kept"},
          {"table_gradients", runtime.whole_table_gradients ? "whole" : "part"},
          {"weighed_rows", runtime.wide_rows ? "fp32" : "computed"},
          {"units", enum_name("units", runtime.units)},
          {"expert_units", runtime.experts_apart ? "own" : "with_layer"},
          {"loss_chunks", runtime.loss_chunks},
          {"late_head_gradients", runtime.late_head_gradients},
          {"return_outputs", runtime.returns_outputs},
          {"repeat_forward", enum_name("repeat_forward", runtime.repeats)},
          {"product_overlap", enum_name("product_overlap", runtime.product_overlap)},
          {"exchange_overlap", enum_name("exchange_overlap", runtime.exchange_overlap)},
          {"ask_ahead", enum_name("ask_ahead", gathers.asked)},
          {"prefetch", gathers.ahead}};
}

}  // namespace shardsim
