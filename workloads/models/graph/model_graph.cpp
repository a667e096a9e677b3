#include "workloads/models/graph/model_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "workloads/models/graph/graph_context.hpp"
#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

std::vector<const Stack*> running_stacks(const ModelSpec& spec) {
  std::vector<const Stack*> running;
  for (const Stack& stack : spec.stacks) {
    if (stack.role != StackRole::silent) running.push_back(&stack);
  }
  return running;
}

bool shares(const Stack& stack) {
  return std::any_of(stack.kinds.begin(), stack.kinds.end(),
                     [](const LayerKind& kind) { return kind.shared.has_value(); });
}

const Attention* attention_of(const Stack& stack, std::size_t layer) {
  const LayerKind& kind = stack.kinds[static_cast<std::size_t>(stack.order[layer])];
  return std::get_if<Attention>(&kind.branches.front().body);
}

// What no layer behind this one reads of keys and values that it does.
std::set<std::string> ended_behind(const Stack& stack, std::int32_t layer) {
  const Attention* attention = attention_of(stack, static_cast<std::size_t>(layer));
  if (attention == nullptr || attention->reads.empty()) return {};
  for (std::size_t i = static_cast<std::size_t>(layer) + 1; i < stack.order.size(); ++i) {
    const Attention* other = attention_of(stack, i);
    if (other != nullptr && other->reads == attention->reads) return {};
  }
  return {attention->reads + "_keys", attention->reads + "_values"};
}

bool changes_what_is_handed(const Stack& stack, std::int32_t layer) {
  const Attention* attention = attention_of(stack, static_cast<std::size_t>(layer));
  return (attention != nullptr && !attention->hands_on.empty()) ||
         !ended_behind(stack, layer).empty();
}

bool any_attention(const Stack& stack, bool (*is)(const Attention&)) {
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    const Attention* attention = attention_of(stack, i);
    if (attention != nullptr && is(*attention)) return true;
  }
  return false;
}

bool hands_on(const Attention& attention) { return !attention.hands_on.empty(); }
// A bias of distances, which the first layer looks up (T5).
bool reads_bias(const Attention& attention) { return attention.mask == ScoreMask::relative; }

class ModelGraph {
 public:
  ModelGraph(const ModelSpec& spec, const WorkloadOptions& options, const Place& place)
      : stacks_(running_stacks(spec)), c_(spec, options, place) {
    c_.enter(*stacks_.front());
    if (spec.head.kind == HeadKind::language) static_cast<void>(c_.vocab());
  }

  // One layer of the last stack, between states that enter and the mean of those that leave.
  Workload build_layer(const OneLayer& one, const Place& place) {
    const Stack& stack = *stacks_.back();
    const bool reads_more = stacks_.size() > 1 || stack.distances || !stack.modules.empty() ||
                            stack.per_layer || stack.hyper || any_attention(stack, hands_on) ||
                            any_attention(stack, reads_bias);
    c_.refuse_if(reads_more, "one layer of several stacks, or of layers that have more in common");
    const std::int64_t layers_there = static_cast<std::int64_t>(stack.order.size());
    if (one.number && *one.number >= layers_there) {
      throw InputError(place, fmt::format("the model has no layer {}: its layers are 0 to {}",
                                          *one.number, layers_there - 1));
    }
    const auto number = static_cast<std::int32_t>(one.number.value_or(usual_layer(stack)));
    const auto kind = static_cast<std::size_t>(stack.order[static_cast<std::size_t>(number)]);
    c_.enter(stack);
    c_.g.begin_block("input");
    carry_out(c_.g.input("states", stack.fp32_residual ? DType::f32 : c_.g.compute_dtype(),
                         {{c_.batch}, {c_.sequence}, {c_.hidden}}));
    layers(stack, kind, {number});
    c_.g.begin_block("head");
    const TensorId loss = c_.g.mean("loss", c_.g.carry_in("loss.input"), {});
    const std::int64_t tokens = c_.options.batch * c_.g.label_size(c_.sequence);
    c_.note(
        fmt::format("layer {} alone: states enter it, and the mean of what leaves it stands for "
                    "what would come behind; that states have no gradient saves the first norm's",
                    number));
    Workload workload = c_.g.finish(loss);
    workload.tokens = tokens;
    return workload;
  }

  Workload build() {
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      enter_stack(i);
      const Stack& stack = *stacks_[i];
      if (shares(stack)) {
        layers_around_shared(stack);
        continue;
      }
      if (!stack.modules.empty()) {
        layers_in_common(stack);
        continue;
      }
      if (any_attention(stack, hands_on)) {
        layers_in_parts(stack);
        continue;
      }
      if (c_.ended.empty()) {
        for (std::size_t k = 0; k < stack.kinds.size(); ++k) {
          if (!stack.kinds[k].silent) layers(stack, k, layers_of(stack, k));
        }
        continue;
      }
      // The last layer hands on less than the others: a kind of its own.
      const auto last = static_cast<std::int32_t>(stack.order.size()) - 1;
      for (std::size_t k = 0; k < stack.kinds.size(); ++k) {
        std::vector<std::int32_t> numbers = layers_of(stack, k);
        std::erase(numbers, last);
        if (!numbers.empty()) layers(stack, k, std::move(numbers));
      }
      leaves_last_ = true;
      layers(stack, static_cast<std::size_t>(stack.order.back()), {last});
      leaves_last_ = false;
    }
    const TensorId loss = head();
    Workload workload = c_.g.finish(loss);
    workload.tokens = c_.options.batch * tokens_;
    return workload;
  }

 private:
  // The first of the kind that most layers are of.
  static std::int64_t usual_layer(const Stack& stack) {
    std::int64_t usual = 0, most = 0;
    for (std::size_t i = 0; i < stack.order.size(); ++i) {
      const auto same = std::count(stack.order.begin(), stack.order.end(), stack.order[i]);
      if (same > most) {
        most = same;
        usual = static_cast<std::int64_t>(i);
      }
    }
    return usual;
  }

  static std::string scope_of(const std::string& prefix) {
    const std::size_t dot = prefix.rfind('.');
    return dot == std::string::npos ? std::string() : prefix.substr(0, dot);
  }

  // What of the stack before is read further on leaves it here, and what this one reads enters.
  void enter_stack(std::size_t i) {
    const Stack& stack = *stacks_[i];
    const std::string scope = scope_of(stack.prefix);
    c_.g.begin_block(i == 0 ? "embedding" : GraphContext::inside(scope, "embedding"));
    std::vector<GraphContext::Beside> handed;
    if (i > 0) handed.push_back(leave(*stacks_[i - 1], carry_in(*stacks_[i - 1])));
    // Decoding steps read what an encoder has left.
    const bool is_idle = c_.is_decoding() && stack.role == StackRole::encoder;
    if (i > 0 && is_encoder_idle_ && !is_idle) {
      c_.encoder = handed.back();
      c_.encoder->sequence = c_.encoder->keys;
      handed.clear();
    }
    is_encoder_idle_ = is_idle;
    c_.g.set_idle(is_idle);
    c_.beside = std::move(handed);
    c_.ended.clear();
    c_.enter(stack);
    if (std::holds_alternative<TokenEmbedding>(stack.input) && !is_idle) {
      tokens_ += c_.tokens;
    }
    if (stack.role == StackRole::main && i > 0 && stacks_[i - 1]->role == StackRole::encoder &&
        !c_.beside.empty()) {
      c_.ended.insert(c_.beside.front().name);
    }
    TensorId x = std::visit([&](const auto& input) { return enter(c_, input); }, stack.input);
    add_relative_bias(c_, stack);
    if (stack.per_layer) add_per_layer_inputs(c_, stack, x);
    if (stack.altup) x = spread_streams(c_, *stack.altup, x);
    if (stack.hyper) x = spread_streams(c_, *stack.hyper, x);
    if (shares(stack)) {
      c_.beside.push_back({"embedded", c_.g.copy("embedded", x)});
      c_.ended.insert("embedded");
    }
    if (stack.fp32_residual) x = c_.g.cast(c_.g.name_of(x) + ".fp32", x, DType::f32);
    if (i == 0) add_what_does_not_run(c_, stacks_);
    carry_out(x);
  }

  TensorId carry_in(const Stack& before) {
    const std::string name = before.norm.exists() ? before.norm.name : scope_of(before.prefix);
    const TensorId x = c_.g.carry_in(name + ".input");
    for (GraphContext::Beside& value : c_.beside) {
      if (!c_.ended.contains(value.name)) value.id = c_.g.carry_in(name + "." + value.name);
    }
    return x;
  }

  void carry_out(TensorId x) {
    c_.g.carry_out(x);
    for (const GraphContext::Beside& value : c_.beside) {
      if (!leaves_last_ || !c_.ended.contains(value.name)) c_.g.carry_out(value.id);
    }
  }

  // States for cross attention, or features of one side of pairs.
  GraphContext::Beside leave(const Stack& stack, TensorId x) {
    const std::string name = stack.norm.exists() ? stack.norm.name : scope_of(stack.prefix);
    x = c_.leave_stack(stack, name, x);
    GraphContext::Beside value{"encoder_states", x};
    if (stack.role != StackRole::encoder) value.name = "first_features";
    value.sequence = c_.sequence;
    value.hidden = stack.projects_rows ? c_.g.dims_of(x).back().front() : c_.hidden;
    value.keys =
        c_.label("encoder_key_sequence", c_.g.label_size(c_.sequence), LabelRole::key_sequence);
    return value;
  }

  static std::vector<std::int32_t> layers_of(const Stack& stack, std::size_t kind) {
    std::vector<std::int32_t> numbers;
    if (stack.kinds[kind].silent) return {};
    for (std::size_t i = 0; i < stack.order.size(); ++i) {
      if (stack.order[i] == static_cast<int>(kind)) {
        numbers.push_back(static_cast<std::int32_t>(i));
      }
    }
    return numbers;
  }

  // Layers that share a block are blocks of their own, between which runs of others are kinds. What
  // entered the stack goes along to the last that reads it.
  void layers_around_shared(const Stack& stack) {
    const auto is_shared = [&](int kind) { return stack.kinds[at(kind)].shared.has_value(); };
    const auto last = std::find_if(stack.order.rbegin(), stack.order.rend(), is_shared).base();
    for (auto layer = stack.order.begin(); layer != stack.order.end();) {
      const auto number = static_cast<std::int32_t>(layer - stack.order.begin());
      if (is_shared(*layer)) {
        leaves_last_ = ++layer == last;
        one_layer(stack, at(number), fmt::format("{}.{}", stack.prefix, number));
        if (std::exchange(leaves_last_, false)) c_.beside.clear();
        continue;
      }
      const auto end =
          std::find_if(layer, stack.order.end(), [&](int kind) { return kind != *layer; });
      std::vector<std::int32_t> run(static_cast<std::size_t>(end - layer));
      std::iota(run.begin(), run.end(), number);
      layers(stack, at(*layer), std::move(run));
      layer = end;
    }
  }

  // A layer that hands on more than it is handed, or less, is a part of its own; others between are
  // kinds.
  void layers_in_parts(const Stack& stack) {
    const auto last = static_cast<std::int32_t>(stack.order.size()) - 1;
    const auto kind_of = [&](std::int32_t layer) { return at(stack.order[at(layer)]); };
    for (std::int32_t begin = 0; begin <= last;) {
      std::int32_t end = begin;
      while (end < last && !changes_what_is_handed(stack, end)) ++end;
      for (std::size_t kind = 0; kind < stack.kinds.size() && end > begin; ++kind) {
        std::vector<std::int32_t> numbers = layers_of(stack, kind);
        std::erase_if(numbers, [&](std::int32_t layer) { return layer < begin || layer >= end; });
        if (!numbers.empty()) layers(stack, kind, std::move(numbers));
      }
      c_.g.end_stack();
      std::set<std::string> ending = ended_behind(stack, end);
      if (end == last) ending.insert(c_.ended.begin(), c_.ended.end());
      std::swap(c_.ended, ending);
      leaves_last_ = true;
      layers(stack, kind_of(end), {end});
      leaves_last_ = false;
      std::erase_if(c_.beside, [&](const auto& value) { return c_.ended.contains(value.name); });
      std::swap(c_.ended, ending);
      c_.g.end_stack();
      begin = end + 1;
    }
  }

  // Each a block of its own that reads the parameters of its module, as often as it comes.
  void layers_in_common(const Stack& stack) {
    c_.note(
        "layers that have their parameters in common are of one unit; each adds to their "
        "gradients");
    for (std::size_t i = 0; i < stack.order.size(); ++i) {
      leaves_last_ = i + 1 == stack.order.size();
      one_layer(stack, i, stack.modules[i]);
    }
    leaves_last_ = false;
  }

  void one_layer(const Stack& stack, std::size_t i, const std::string& module) {
    c_.layer = module;
    c_.rotary.clear();
    c_.g.begin_block(fmt::format("layer {}", i), module);
    const TensorId x = c_.g.carry_in(c_.inside("input"));
    for (GraphContext::Beside& value : c_.beside) {
      value.id = c_.g.carry_in(c_.inside(value.name));
    }
    carry_out(add_layer(c_, stack, stack.kinds[static_cast<std::size_t>(stack.order[i])], x));
  }

  void layers(const Stack& stack, std::size_t kind, std::vector<std::int32_t> numbers) {
    const std::string name = stack.prefix + ".{}";
    c_.layer = stack.numbered_inside ? stack.prefix : name;
    c_.rotary.clear();
    c_.g.begin_layers(name, std::move(numbers));
    const TensorId x = c_.g.carry_in(c_.inside("input"));
    for (GraphContext::Beside& value : c_.beside) {
      value.id = c_.g.carry_in(c_.inside(value.name));
    }
    carry_out(add_layer(c_, stack, stack.kinds[kind], x));
  }

  TensorId head() {
    const Stack& stack = *stacks_.back();
    const Head& head = c_.spec.head;
    c_.g.begin_block("head");
    const std::string name = stack.norm.exists() ? stack.norm.name : head.name;
    TensorId x = c_.g.carry_in(name + ".input");
    if (stack.altup) x = gather_streams(c_, *stack.altup, x);
    if (stack.hyper) x = gather_streams(c_, *stack.hyper, x);
    for (GraphContext::Beside& value : c_.beside) {
      if (!c_.ended.contains(value.name)) value.id = c_.g.carry_in("head." + value.name);
    }
    if (head.kind == HeadKind::language) return add_language_head(c_, stack, x);
    assert(!c_.options.cache);  // build.cpp: a model that makes no tokens has none
    return add_head(c_, stack, c_.leave_stack(stack, name, x));
  }

  std::vector<const Stack*> stacks_;
  GraphContext c_;
  std::int64_t tokens_ = 0;       // that an example has in all stacks
  bool leaves_last_ = false;      // in the last layer of a stack
  bool is_encoder_idle_ = false;  // of the stack before
};

}  // namespace

namespace {

Workload build_network(const ModelSpec& spec, const WorkloadOptions& options, const Place& place) {
  GraphContext context(spec, options, place);
  assert(!options.cache);
  NetworkGraph graph(context);
  const std::int64_t side = options.side.value_or(usual_side(*spec.network));
  const TensorId loss =
      std::visit([&](const auto& network) { return add(graph, network, side); }, *spec.network);
  return context.g.finish(loss);
}

}  // namespace

bool reads_tokens(const ModelSpec& spec) {
  return std::any_of(spec.stacks.begin(), spec.stacks.end(), [](const Stack& stack) {
    return std::holds_alternative<TokenEmbedding>(stack.input);
  });
}

bool encodes_tokens(const ModelSpec& spec) {
  return std::any_of(spec.stacks.begin(), spec.stacks.end(), [](const Stack& stack) {
    return stack.role == StackRole::encoder && std::holds_alternative<TokenEmbedding>(stack.input);
  });
}

bool has_encoder(const ModelSpec& spec) {
  return std::any_of(spec.stacks.begin(), spec.stacks.end(),
                     [](const Stack& stack) { return stack.role == StackRole::encoder; });
}

Workload build_graph(const ModelSpec& spec, const WorkloadOptions& options, const Place& place) {
  const Place of_layer = options.place.file.empty()
                             ? place
                             : Place{options.place.file, options.place.pointer + "/layer"};
  if (spec.network) {
    if (options.one_layer) {
      throw InputError(of_layer,
                       "is of models with stacks of layers, of which this network has none");
    }
    return build_network(spec, options, place);
  }
  ModelGraph graph(spec, options, place);
  if (!options.one_layer) return graph.build();
  return graph.build_layer(*options.one_layer, of_layer);
}

}  // namespace shardsim::models
