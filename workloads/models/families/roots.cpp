#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

struct Roots {
  const std::string& from;
  const std::string& to;

  void change(std::string& name) const {
    if (!name.empty() && name.starts_with(from)) name = to + name.substr(from.size());
  }

  void change(TokenEmbedding& input) const {
    for (std::string* name : {&input.name, &input.table_of, &input.positions, &input.types,
                              &input.norm.name, &input.dropout_name, &input.project}) {
      change(*name);
    }
    change(input.tasks);
    for (TypeTable& table : input.more_types) change(table.name);
    for (BesideTable& table : input.beside) change(table.name);
    if (input.paths) change(input.paths->name);
    if (input.boxes) {
      BoxTables& boxes = *input.boxes;
      for (std::string* name : {&boxes.x, &boxes.y, &boxes.height, &boxes.width}) change(*name);
    }
  }

  void change(PatchEmbedding& input) const {
    for (std::string* name : {&input.projection, &input.positions, &input.position_table,
                              &input.mask_token, &input.registers, &input.norm.name}) {
      change(*name);
    }
    for (std::string& token : input.tokens) change(token);
  }

  void change(MaskedRows& input) const {
    for (std::string* name : {&input.project, &input.mask_token, &input.positions}) change(*name);
  }

  void change(AudioStem& input) const { change(input.prefix); }

  void change(NoInput& /*input*/) const {}

  void change(Stack& stack) const {
    for (std::string* name :
         {&stack.prefix, &stack.norm.name, &stack.project, &stack.idle_pooler}) {
      change(*name);
    }
    if (stack.pool) change(stack.pool->name);
    for (std::string& module : stack.modules) change(module);
    for (LayerKind& kind : stack.kinds) {
      if (kind.shared) change(kind.shared->first);
    }
    if (stack.distances) {
      change(stack.distances->name);
      change(stack.distances->norm.name);
    }
    if (stack.per_layer) {
      for (std::string* name :
           {&stack.per_layer->table, &stack.per_layer->project, &stack.per_layer->norm.name}) {
        change(*name);
      }
    }
    if (stack.hyper) change(stack.hyper->head);
    if (stack.altup) {
      change(stack.altup->project);
      change(stack.altup->back);
    }
    std::visit([this](auto& input) { change(input); }, stack.input);
  }
};

}  // namespace

void replace_root(ModelSpec& spec, const std::string& from, const std::string& to) {
  const Roots roots{from, to};
  for (Stack& stack : spec.stacks) roots.change(stack);
  for (SharedTable& table : spec.shared) roots.change(table.name);
  for (NamedBuffer& buffer : spec.buffers) roots.change(buffer.name);
  for (NamedParameter& one : spec.apart) {
    roots.change(one.name);
    roots.change(one.other_name);
  }
  if (!spec.head.tied_to.empty()) roots.change(spec.head.tied_to);
}

}  // namespace shardsim::models
