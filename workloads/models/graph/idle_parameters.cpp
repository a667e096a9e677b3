// Parameters of what a step does not run.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "workloads/models/graph/graph_context.hpp"
#include "workloads/models/walk.hpp"

namespace shardsim::models {
namespace {

void add_names_of_input(const Stack& stack, std::set<std::string>& names) {
  if (stack.norm.exists()) names.insert(stack.norm.name + ".");
  const auto* patches = std::get_if<PatchEmbedding>(&stack.input);
  if (patches == nullptr) return;
  names.insert(patches->projection + ".");
  names.insert(patches->tokens.begin(), patches->tokens.end());
  for (const std::string& name :
       {patches->positions, patches->position_table, patches->registers, patches->norm.name}) {
    if (!name.empty()) names.insert(name);
  }
}

bool runs_in(const LayerKind& kind, const Attention& attention) {
  return std::any_of(kind.branches.begin(), kind.branches.end(), [&](const Branch& branch) {
    const auto* other = std::get_if<Attention>(&branch.body);
    return !branch.silent && other != nullptr && other->name == attention.name;
  });
}

// Of attention to states that are not there: a module, or products within one that runs.
void add_names_of_branch(const LayerKind& kind, const Branch& branch, const std::string& layer,
                         std::set<std::string>& names) {
  if (const auto* attention = std::get_if<Attention>(&branch.body)) {
    const std::string module = layer + attention->name + ".";
    if (!runs_in(kind, *attention)) {
      names.insert(module);
    } else {
      for (const std::string& product : {attention->q, attention->k, attention->v, attention->o}) {
        if (!product.empty()) names.insert(module + product + ".");
      }
    }
  }
  for (const Norm* norm : {&branch.before, &branch.joined}) {
    if (norm->exists()) names.insert(layer + norm->name + ".");
  }
}

Dims dims_of(GraphContext& c, const Parameter& parameter) {
  Dims dims;
  for (const std::int64_t size : parameter.shape) {
    dims.push_back({c.g.label(parameter.name, size)});
  }
  return dims;
}

}  // namespace

void add_silent_branch(GraphContext& c, const Stack& stack, const LayerKind& kind,
                       const Branch& branch) {
  const auto first = std::find_if(stack.order.begin(), stack.order.end(), [&](std::int32_t k) {
    return &stack.kinds[static_cast<std::size_t>(k)] == &kind;
  });
  const std::string layer = fmt::format("{}.{}.", stack.prefix, first - stack.order.begin());
  std::set<std::string> names;
  add_names_of_branch(kind, branch, layer, names);
  const ModelCounts counts = count(c.spec, {}, c.place);
  for (const Parameter& parameter : counts.parameters) {
    const bool is_of_branch = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return parameter.name.starts_with(name);
    });
    if (!is_of_branch) continue;
    c.g.untrained_parameter(c.inside(parameter.name.substr(layer.size())), dims_of(c, parameter));
  }
}

void add_what_does_not_run(GraphContext& c, const std::vector<const Stack*>& running) {
  const auto has_silent = [](const Stack* stack) {
    return std::any_of(stack->kinds.begin(), stack->kinds.end(), [](const LayerKind& kind) {
      return kind.silent || std::any_of(kind.branches.begin(), kind.branches.end(),
                                        [](const Branch& branch) { return branch.silent; });
    });
  };
  const bool has_any = std::any_of(running.begin(), running.end(), has_silent) ||
                       std::any_of(running.begin(), running.end(),
                                   [](const Stack* stack) {
                                     return stack->pool_unread || !stack->idle_pooler.empty();
                                   }) ||
                       !c.spec.apart.empty() || running.size() < c.spec.stacks.size() ||
                       std::any_of(running.begin(), running.end(), [](const Stack* stack) {
                         const auto* patches = std::get_if<PatchEmbedding>(&stack->input);
                         return patches != nullptr && !patches->mask_token.empty();
                       });
  if (!has_any) return;
  c.note(
      "parameters of what does not run, images beside text and rows of masks, are stored and not "
      "trained");
  std::set<std::string> silent;
  for (const Stack& stack : c.spec.stacks) {
    if (stack.role == StackRole::silent) silent.insert(stack.prefix + ".");
    for (std::size_t i = 0; i < stack.order.size(); ++i) {
      const LayerKind& kind = stack.kinds[static_cast<std::size_t>(stack.order[i])];
      const std::string layer = fmt::format("{}.{}.", stack.prefix, i);
      if (kind.silent) silent.insert(layer);
    }
  }
  for (const NamedParameter& one : c.spec.apart) silent.insert(one.name);
  for (const Stack* stack : running) {
    const auto* patches = std::get_if<PatchEmbedding>(&stack->input);
    if (patches != nullptr && !patches->mask_token.empty()) silent.insert(patches->mask_token);
    if (stack->pool_unread) silent.insert(stack->pool->name + ".");
    if (!stack->idle_pooler.empty()) silent.insert(stack->idle_pooler + ".");
  }
  for (const Stack& stack : c.spec.stacks) {
    if (stack.role == StackRole::silent) add_names_of_input(stack, silent);
  }
  const ModelCounts counts = count(c.spec, {}, c.place);
  for (const Parameter& parameter : counts.parameters) {
    const bool runs = std::none_of(silent.begin(), silent.end(), [&](const std::string& name) {
      return parameter.name.starts_with(name);
    });
    if (runs) continue;
    c.g.untrained_parameter(parameter.name, dims_of(c, parameter));
  }
}

}  // namespace shardsim::models
