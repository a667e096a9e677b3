#include "workloads/models/graph/graph_context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/models/graph/model_graph.hpp"

namespace shardsim::models {

GraphContext::GraphContext(const ModelSpec& model, const WorkloadOptions& workload_options,
                           const Place& at)
    : spec(model),
      options(workload_options),
      place(at),
      g(model.name, options.compute_dtype, options.weights),
      batch(label("batch", options.batch, LabelRole::batch)) {}

double GraphContext::seen_pairs(double (*fraction)(std::int64_t, std::int64_t),
                                std::int64_t window) const {
  const std::int64_t tokens = g.label_size(sequence);
  if (!options.documents) return fraction(window, tokens);
  return options.documents->share_of_pairs(
      tokens, [&](std::int64_t length) { return fraction(window, length); });
}

double GraphContext::documents_of_sequence() const {
  if (!options.documents) return 1;
  return static_cast<double>(g.label_size(sequence)) / options.documents->length_seen();
}

void GraphContext::enter(const Stack& stack) {
  std::string rows = "sequence";
  std::int64_t size = 0;
  decodes = false;
  encodes = stack.role == StackRole::encoder;
  if (const auto* patches = std::get_if<PatchEmbedding>(&stack.input)) {
    rows = "patch_sequence";
    size = patches->entering();
  } else if (const auto* audio = std::get_if<AudioStem>(&stack.input)) {
    rows = "frame_sequence";
    size = audio->rows;
  } else if (const auto* masked = std::get_if<MaskedRows>(&stack.input)) {
    rows = "all_patch_sequence";
    size = masked->rows;
  } else {
    decodes = stack.role == StackRole::main && has_encoder(spec);
    if (decodes) rows = "target_sequence";
    size = decodes ? options.target.value_or(*options.sequence) : *options.sequence;
  }
  tokens = size;
  if (const std::int64_t padded = padded_tokens(stack, size); padded != size) {
    rows = "padded_sequence";
    size = padded;
  }
  const bool reads_one = is_decoding() && stack.role != StackRole::encoder;
  sequence = label(rows, size, reads_one ? LabelRole::none : LabelRole::sequence);
  hidden = label("hidden", stack.hidden, LabelRole::hidden);
  key_sequence = reads_one ? seen_tokens() : label("key_" + rows, size, LabelRole::key_sequence);
}

// A window may begin within a page (vLLM 0.11, v1/kv_cache_interface.py, SlidingWindowSpec).
std::int64_t GraphContext::places(std::int64_t window) const {
  const std::int64_t block = options.cache->block;
  const auto pages = [&](std::int64_t tokens) { return (tokens + block - 1) / block; };
  const std::int64_t all = pages(options.cache->places);
  if (window == 0) return all * block;
  const std::int64_t partial = block > 1 ? 1 : 0;
  return std::min(all, pages(window) + partial) * block;
}

LabelId GraphContext::seen_tokens(std::int64_t window) {
  const std::int64_t all = options.cache->context + g.label_size(sequence);
  const std::int64_t seen = window > 0 ? std::min(all, window) : all;
  if (seen == places(window)) return label("cached", seen, LabelRole::key_sequence);
  return label("context", seen, LabelRole::key_sequence);
}

TensorId GraphContext::keep(const std::string& name, const std::vector<TensorId>& rows, Dims dims,
                            std::int64_t window) {
  const LabelId tokens = seen_tokens(window);
  const LabelId all = label("cached", places(window), LabelRole::key_sequence);
  std::replace(dims.begin(), dims.end(), Dim{sequence}, Dim{all});
  const DType dtype = options.cache->dtype.value_or(g.compute_dtype());
  const TensorId kept = g.append(name, g.cache(name + "_cache", dtype, dims), rows, sequence, all);
  if (tokens == all) return kept;
  std::replace(dims.begin(), dims.end(), Dim{all}, Dim{tokens});
  const std::string seen = name + ".seen";
  return g.slices(seen, kept, {{seen, std::move(dims)}}, {all, tokens}).front();
}

GraphBuilder::State GraphContext::state(const std::string& name, Dims dims) {
  if (!options.cache) return {};
  return {g.cache(name, g.compute_dtype(), std::move(dims)), is_decoding()};
}

TensorId GraphContext::first_row(const std::string& name, TensorId x) {
  const Dims first{{batch}, g.dims_of(x).back()};
  return g.slices(name + ".first_row", x, {{name + ".first_row", first}}, {sequence}).front();
}

TensorId GraphContext::leave_stack(const Stack& stack, const std::string& name, TensorId x) {
  if (stack.fp32_residual) x = g.cast(name + ".cast", x, g.compute_dtype());
  if (g.label_size(sequence) != tokens && stack.pads_to > 0) {
    note(fmt::format("layers see {} tokens padded to {}, a multiple of {}", tokens,
                     g.label_size(sequence), stack.pads_to));
    const LabelId all = sequence;
    sequence = label("sequence", tokens, LabelRole::sequence);
    const std::string cut = name + ".without_padding";
    x = g.slices(cut, x, {{cut, {{batch}, {sequence}, {hidden}}}}, {all, sequence}).front();
  }
  if (stack.norm_first_only) x = first_row(name, x);
  if (stack.norm.exists()) x = g.marked(norm(stack.norm, name, x, {hidden}), StreamMark::branch);
  if (stack.dropout > 0) x = dropped(name + ".dropout", x, stack.dropout);
  if (stack.projects_rows) {
    const LabelId out = label("projected_rows", stack.project_width);
    x = linear({stack.project, {out}, {hidden}, stack.project_bias}, x,
               {{batch}, {sequence}, {out}});
  }
  if (stack.picks_row || stack.picks_last) x = first_row(name + ".picked", x);
  if (stack.pool && !stack.pool_unread) x = add_pool(*this, *stack.pool, x);
  return x;
}

std::string GraphContext::table_name(const std::string& name) const {
  const Head& head = spec.head;
  return head.stands_first && head.tied_to == name ? head.name + ".weight" : name;
}

TensorId GraphContext::token_table(const TokenEmbedding& input) {
  const std::string& module = input.table_of.empty() ? input.name : input.table_of;
  const LabelId rows = label("vocab", input.vocab, LabelRole::vocab);
  const bool is_wide = input.width == g.label_size(hidden);
  const LabelId width = is_wide ? hidden : label("embedding_width", input.width);
  return g.parameter(table_name(module + ".weight"), {{rows}, {width}});
}

TensorId GraphContext::cross_entropy(TensorId logits, LabelId classes, bool fp32) {
  Dims rows = g.dims_of(logits);
  std::erase(rows, Dim{classes});
  const TensorId labels = g.input("labels", options.index_dtype, std::move(rows));
  if (fp32) logits = g.cast("loss.logits", logits, DType::f32);
  return g.cross_entropy(logits, labels, classes);
}

LabelId GraphContext::label(const std::string& name, std::int64_t size, LabelRole role) {
  return label(name, size, role, 1);
}

LabelId GraphContext::slots(std::int64_t size, double needed, double held) {
  const LabelId id = label("slots", size, LabelRole::expert_tokens, held);
  g.set_parts(id, needed, held);
  return id;
}

LabelId GraphContext::label(const std::string& name, std::int64_t size, LabelRole role,
                            double held) {
  std::int64_t others = 0;
  for (const KnownLabel& known : labels_) {
    if (known.name != name) continue;
    if (known.size == size && known.held == held) return known.id;
    ++others;
  }
  const std::string unique = others == 0 ? name : fmt::format("{}_{}", name, others + 1);
  labels_.push_back({name, size, g.label(unique, size, role), held});
  return labels_.back().id;
}

void throw_no_graph(const ModelSpec& spec, const Place& place, std::string_view component) {
  throw InputError(place, fmt::format("{} has no op graph yet: {}; \"shardsim model\" says what "
                                      "the model is made of",
                                      spec.architecture, component));
}

void GraphContext::refuse(std::string_view component) const {
  throw_no_graph(spec, place, component);
}

void GraphContext::refuse_if(bool has, std::string_view component) const {
  if (has) refuse(component);
}

void GraphContext::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) != notes_.end()) return;
  notes_.push_back(text);
  g.note(text);
}

std::string GraphContext::inside(const std::string& scope, const std::string& name) {
  return name.empty() ? scope : scope + "." + name;
}

std::string GraphContext::inside(const std::string& name) const { return inside(layer, name); }

// One label of both would make a sum over columns of it, not a product: square matrices read their
// input under another.
TensorId GraphContext::linear(const Linear& module, TensorId x, Dims result) {
  for (const LabelId label : module.in) {
    const bool is_out = std::find(module.out.begin(), module.out.end(), label) != module.out.end();
    if (is_out && g.label_size(label) > 1) {
      throw std::logic_error(
          fmt::format("{}: a label of both dimensions of a matrix", module.name));
    }
  }
  const TensorId matrix =
      g.parameter(module.name + ".weight",
                  module.conv1d ? Dims{module.in, module.out} : Dims{module.out, module.in});
  const TensorId bias = module.bias ? g.parameter(module.name + ".bias", {module.out}) : no_tensor;
  return g.linear(module.name, x, matrix, std::move(result), bias);
}

void GraphContext::stored(const Linear& module) {
  g.parameter(module.name + ".weight", {module.out, module.in});
  if (module.bias) g.parameter(module.name + ".bias", {module.out});
}

TensorId GraphContext::norm(const Norm& norm, const std::string& name, TensorId x,
                            const std::vector<LabelId>& over, const Dims& weight) {
  Function function = Function::rms_norm;
  bool has_weight = true;
  bool has_bias = false;
  switch (norm.kind) {
    case NormKind::none:
      return x;
    case NormKind::scale: {
      const Dims dims = weight.empty() ? Dims{over} : weight;
      x = g.elementwise(Function::multiply, name + ".scaled",
                        {x, g.parameter(name + ".weight", dims)});
      return g.elementwise(Function::add, name, {x, g.parameter(name + ".bias", dims)});
    }
    case NormKind::weight: {
      const Dims dims = weight.empty() ? Dims{over} : weight;
      return g.elementwise(Function::multiply, name, {x, g.parameter(name + ".weight", dims)});
    }
    case NormKind::rms:
    case NormKind::rms_wide:
    case NormKind::rms_cast:
    case NormKind::rms_offset:
    case NormKind::rms_t5:
    case NormKind::rms_fused:
      break;
    case NormKind::rms_plain:
    case NormKind::rms_fixed:
    case NormKind::rms_t5_plain:
      has_weight = false;
      break;
    case NormKind::layer:
    case NormKind::layer_cast:
    case NormKind::layer_by_hand:
    case NormKind::layer_apart:
    case NormKind::layer_offset:
      has_bias = norm.bias;
      [[fallthrough]];
    case NormKind::layer_wide:
      function = Function::layer_norm;
      break;
    case NormKind::layer_plain:
    case NormKind::layer_fixed:
      function = Function::layer_norm;
      has_weight = false;
      break;
  }
  const Dims dims = weight.empty() ? Dims{over} : weight;
  std::vector<TensorId> affine;
  if (has_weight) affine.push_back(g.parameter(name + ".weight", dims));
  if (has_bias) affine.push_back(g.parameter(name + ".bias", dims));
  return g.norm(function, name, x, affine, over);
}

TensorId GraphContext::convolution(const std::string& name, TensorId x, const Dim& channels,
                                   std::int64_t taps, bool bias, bool silu,
                                   std::optional<std::int64_t> kept) {
  const TensorId weight =
      g.parameter(name + ".weight", {channels, {label("one", 1)}, {label("taps", taps)}});
  const TensorId offset = bias ? g.parameter(name + ".bias", {channels}) : no_tensor;
  return g.convolution(
      name, x, weight, offset, sequence, silu,
      state(name + ".state",
            {{batch}, channels, {kept ? label("kept taps", *kept) : label("taps", taps)}}));
}

TensorId GraphContext::activate(const std::string& activation, const std::string& name, TensorId x,
                                const std::string& module) {
  if (activation == "linear") return x;
  const GraphBuilder::Within part(g, OpPart::activation);
  if (activation == "silu" || activation == "swish") {
    return g.elementwise(Function::silu, name, {x});
  }
  if (activation.starts_with("gelu")) return g.elementwise(Function::gelu, name, {x});
  if (activation == "relu") return g.elementwise(Function::relu, name, {x});
  if (activation == "relu2") return g.elementwise(Function::relu_squared, name, {x});
  if (activation == "sigmoid") return g.elementwise(Function::sigmoid, name, {x});
  if (activation == "tanh") return g.elementwise(Function::tanh, name, {x});
  if (activation == "quick_gelu") return g.elementwise(Function::quick_gelu, name, {x});
  if (activation == "mish") return g.elementwise(Function::mish, name, {x});
  if (activation == "relu6") return g.elementwise(Function::relu6, name, {x});
  if (activation == "leaky_relu") return g.elementwise(Function::leaky_relu, name, {x});
  if (activation == "xielu" && !module.empty()) {
    const LabelId one = label("one", 1);
    const auto number = [&](const char* which) {
      return g.parameter(fmt::format("{}.act_fn.{}", module, which), {{one}});
    };
    return g.elementwise(Function::xielu, name, {x, number("alpha_p"), number("alpha_n")});
  }
  refuse(fmt::format("the activation \"{}\"", activation));
}

bool GraphContext::drops(double rate) const {
  return options.drops && options.dropout.value_or(rate) > 0;
}

TensorId GraphContext::dropped(const std::string& name, TensorId x, double rate) {
  return drops(rate) ? g.dropout(name, x) : x;
}

TensorId GraphContext::gated(const std::string& name, TensorId gate, TensorId up) {
  const GraphBuilder::Within part(g, OpPart::activation);
  return g.elementwise(Function::multiply, name, {gate, up});
}

}  // namespace shardsim::models
