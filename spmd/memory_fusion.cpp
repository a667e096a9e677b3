#include "spmd/memory_fusion.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/error.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

template <std::size_t N>
bool any_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 7> views{
    "stablehlo.reshape",          "stablehlo.transpose",       "mhlo.copy",
    "sdy.sharding_constraint",    "stablehlo.bitcast_convert", "stablehlo.after_all",
    "stablehlo.get_tuple_element"};
constexpr std::array<std::string_view, 2> updates{"stablehlo.dynamic_update_slice",
                                                  "stablehlo.scatter"};
constexpr std::array<std::string_view, 24> kernels{"stablehlo.dot_general",
                                                   "stablehlo.dot",
                                                   "stablehlo.convolution",
                                                   "stablehlo.reduce",
                                                   "stablehlo.gather",
                                                   "stablehlo.reduce_window",
                                                   "stablehlo.sort",
                                                   "stablehlo.all_gather",
                                                   "stablehlo.all_reduce",
                                                   "stablehlo.reduce_scatter",
                                                   "stablehlo.all_to_all",
                                                   "stablehlo.collective_permute",
                                                   "stablehlo.collective_broadcast",
                                                   "stablehlo.custom_call",
                                                   "stablehlo.fft",
                                                   "stablehlo.triangular_solve",
                                                   "stablehlo.cholesky",
                                                   "stablehlo.select_and_scatter",
                                                   "stablehlo.rng_bit_generator",
                                                   "stablehlo.rng",
                                                   "stablehlo.infeed",
                                                   "stablehlo.outfeed",
                                                   "chlo.top_k",
                                                   "stablehlo.composite"};
constexpr std::array<std::string_view, 13> dear{"stablehlo.exponential",
                                                "stablehlo.divide",
                                                "stablehlo.log",
                                                "stablehlo.power",
                                                "stablehlo.tanh",
                                                "stablehlo.sqrt",
                                                "stablehlo.rsqrt",
                                                "stablehlo.logistic",
                                                "stablehlo.sine",
                                                "stablehlo.cosine",
                                                "stablehlo.log_plus_one",
                                                "stablehlo.exponential_minus_one",
                                                "chlo.erf"};
constexpr std::array<std::string_view, 6> read_through{
    "stablehlo.convert",          "stablehlo.slice",    "stablehlo.dynamic_slice",
    "stablehlo.broadcast_in_dim", "stablehlo.constant", "stablehlo.iota"};

OpKind kind_of(const Op& op) {
  const std::string_view name = op.name;
  if (name == "stablehlo.return" || name == "func.return" || name == "return") {
    return OpKind::nothing;
  }
  if (name == "stablehlo.while") return OpKind::loop;
  if (name == "stablehlo.case" || name == "stablehlo.if") return OpKind::branch;
  if (name == "stablehlo.optimization_barrier") return OpKind::barrier;
  if (any_of(name, views)) return OpKind::view;
  if (any_of(name, updates)) return OpKind::update;
  if (any_of(name, kernels) || op.results.size() != 1) return OpKind::kernel;
  return OpKind::fusible;
}

bool is_dot(const Op& op) {
  return op.name == "stablehlo.dot_general" || op.name == "stablehlo.dot" ||
         op.name == "stablehlo.convolution";
}

using Readers = std::set<OpId>;

// Walks the program backwards: users before what they use.
class Walk {
 public:
  Walk(const Function& main, MemoryTarget target, Fusion& out)
      : main_(main),
        target_(target),
        out_(out),
        needs_(main.values.size()),
        readers_(main.values.size()) {}

  void region(RegionId id) {
    const Region& region = main_.regions[index(id)];
    for (auto op = region.ops.rbegin(); op != region.ops.rend(); ++op) visit(*op);
  }

 private:
  static std::size_t index(int id) { return static_cast<std::size_t>(id); }

  void need(ValueId value) { needs_[index(value)] = true; }
  void read(ValueId value, OpId reader) {
    used_.insert(value);
    readers_[index(value)].insert(reader);
  }

  void visit(OpId id) {
    const Op& op = main_.op(id);
    const OpKind kind = out_.kind[index(id)];
    const bool is_live = kind == OpKind::nothing || op.results.empty() ||
                         std::any_of(op.results.begin(), op.results.end(),
                                     [&](ValueId v) { return used_.count(v) > 0; });
    out_.is_live[index(id)] = is_live;
    if (!is_live) return;
    switch (kind) {
      case OpKind::nothing:
        for (const ValueId operand : op.operands) {
          need(operand);
          read(operand, id);
        }
        return;
      case OpKind::barrier:
      case OpKind::view:
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
          const ValueId operand = op.operands[i];
          used_.insert(operand);
          const ValueId result = op.results[std::min(i, op.results.size() - 1)];
          if (needs_[index(result)]) need(operand);
          readers_[index(operand)].insert(readers_[index(result)].begin(),
                                          readers_[index(result)].end());
          through_view_.insert(operand);
        }
        return;
      case OpKind::fusible:
        fusible(id, op);
        return;
      case OpKind::loop:
        loop(id, op);
        return;
      case OpKind::branch:
        for (const RegionId inner : op.regions) region(inner);
        for (const ValueId operand : op.operands) read(operand, id);
        mark(op);
        return;
      case OpKind::update:
        for (const ValueId operand : op.operands) read(operand, id);
        if (!is_cheap(op.operands.front())) need(op.operands.front());
        mark(op);
        return;
      case OpKind::kernel:
        kernel(id, op);
        return;
    }
  }

  void mark(const Op& op) {
    for (const ValueId result : op.results) out_.is_buffer[index(result)] = true;
  }

  void fusible(OpId id, const Op& op) {
    const ValueId result = op.results.front();
    const Readers& readers = readers_[index(result)];
    bool buffer = needs_[index(result)];
    if (target_ == MemoryTarget::gpu && readers.size() > 1 && any_of(op.name, dear) &&
        allocated_bytes(main_.type_of(result), target_) <= source_bytes(result)) {
      buffer = true;
    }
    out_.is_buffer[index(result)] = buffer;
    for (const ValueId operand : op.operands) {
      used_.insert(operand);
      if (buffer) {
        readers_[index(operand)].insert(id);
      } else {
        readers_[index(operand)].insert(readers.begin(), readers.end());
      }
    }
  }

  // The largest of the buffers that a chain of fusible ops is computed from, at least.
  Bytes source_bytes(ValueId value) {
    if (const auto known = source_bytes_.find(value); known != source_bytes_.end()) {
      return known->second;
    }
    const Op* op = main_.definition(value);
    const OpKind kind = op == nullptr ? OpKind::kernel : kind_of(*op);
    Bytes most;
    if (kind == OpKind::fusible || kind == OpKind::view || kind == OpKind::barrier) {
      for (const ValueId operand : op->operands) most = std::max(most, source_bytes(operand));
      // A broadcast does not grow, a slice does not shrink what it reads.
    } else {
      most = allocated_bytes(main_.type_of(value), target_);
    }
    source_bytes_.emplace(value, most);
    return most;
  }

  void kernel(OpId id, const Op& op) {
    mark(op);
    const bool fuses = op.name == "stablehlo.reduce" || op.name == "stablehlo.gather" ||
                       op.name == "stablehlo.reduce_window" ||
                       (is_dot(op) && target_ == MemoryTarget::tpu);
    for (const ValueId operand : op.operands) {
      read(operand, id);
      if (fuses) continue;
      if (is_dot(op) && is_read_through(operand)) continue;
      need(operand);
    }
  }

  // A GPU's dot reads through casts, slices and broadcasts of memory.
  bool is_read_through(ValueId value) const {
    const Op* made_by = main_.definition(value);
    while (made_by != nullptr && !made_by->operands.empty() &&
           (any_of(made_by->name, read_through) || any_of(made_by->name, views))) {
      made_by = main_.definition(made_by->operands.front());
    }
    return made_by == nullptr || kind_of(*made_by) != OpKind::fusible;
  }

  void loop(OpId id, const Op& op) {
    mark(op);
    const Region& body = main_.regions[index(op.regions.back())];
    const Op& terminator = main_.op(body.ops.back());
    region(op.regions.back());
    region(op.regions.front());
    (void)terminator;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId operand = op.operands[i];
      read(operand, id);
      const bool invariant = Fusion::is_invariant(main_, op, i);
      if (target_ == MemoryTarget::tpu && is_cheap(operand)) continue;
      if (!invariant && is_cheap(operand)) continue;
      need(operand);
    }
  }

  // Computed from constants only.
  bool is_cheap(ValueId value) const {
    const Op* made_by = main_.definition(value);
    if (made_by == nullptr) return false;
    const OpKind kind = kind_of(*made_by);
    if (kind != OpKind::fusible && kind != OpKind::view) return false;
    return std::all_of(made_by->operands.begin(), made_by->operands.end(),
                       [&](ValueId operand) { return is_cheap(operand); });
  }

  const Function& main_;
  MemoryTarget target_;
  Fusion& out_;
  std::vector<bool> needs_;
  std::vector<Readers> readers_;
  std::set<ValueId> used_;
  std::set<ValueId> through_view_;
  std::map<ValueId, Bytes> source_bytes_;
};

}  // namespace

bool Fusion::is_collective(const Op& op) { return op.name == "stablehlo.all_gather"; }

bool Fusion::is_invariant(const Function& main, const Op& loop, std::size_t i) {
  const Region& body = main.regions[static_cast<std::size_t>(loop.regions.back())];
  ValueId value = main.op(body.ops.back()).operands[i];
  while (true) {
    if (value == body.arguments[i]) return true;
    const Op* op = main.definition(value);
    if (op == nullptr || (kind_of(*op) != OpKind::view && kind_of(*op) != OpKind::barrier))
      return false;
    value =
        op->operands[static_cast<std::size_t>(main.values[static_cast<std::size_t>(value)].result)];
  }
}

std::optional<ValueId> Fusion::sliced_stack(const Function& main, ValueId value) {
  const Op* op = main.definition(value);
  while (op != nullptr && (kind_of(*op) == OpKind::view || kind_of(*op) == OpKind::barrier) &&
         !op->operands.empty()) {
    value =
        op->operands[static_cast<std::size_t>(main.values[static_cast<std::size_t>(value)].result)];
    op = main.definition(value);
  }
  if (op == nullptr || op->name != "stablehlo.dynamic_slice") return std::nullopt;
  return op->operands.front();
}

Fusion fusion_of(const Module& module, const Function& main, MemoryTarget target) {
  (void)module;
  Fusion fusion;
  fusion.kind.reserve(main.ops.size());
  for (const Op& op : main.ops) fusion.kind.push_back(kind_of(op));
  fusion.is_live.assign(main.ops.size(), false);
  fusion.is_buffer.assign(main.values.size(), false);
  for (std::size_t v = 0; v < main.values.size(); ++v) {
    if (main.values[v].defined_by == no_op) fusion.is_buffer[v] = true;
  }
  Walk(main, target, fusion).region(0);
  // Views of a buffer are it.
  for (const Op& op : main.ops) {
    if (kind_of(op) != OpKind::view && kind_of(op) != OpKind::barrier) continue;
    for (std::size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
      fusion.is_buffer[static_cast<std::size_t>(op.results[i])] =
          fusion.is_buffer[static_cast<std::size_t>(op.operands[i])];
    }
  }
  return fusion;
}

std::vector<int> donors_of_results(const Module& module, const Function& main) {
  std::vector<int> donors(main.results.size(), -1);
  std::vector<bool> taken(main.argument_attributes.size(), false);
  for (std::size_t i = 0; i < main.argument_attributes.size(); ++i) {
    const Attribute* output = find(main.argument_attributes[i], "tf.aliasing_output");
    if (output == nullptr) continue;
    if (output->integer < 0 || static_cast<std::size_t>(output->integer) >= donors.size()) {
      throw InputError({module.file, "line " + std::to_string(main.line)},
                       "tf.aliasing_output names no result of @" + main.name);
    }
    donors[static_cast<std::size_t>(output->integer)] = static_cast<int>(i);
    taken[i] = true;
  }
  for (std::size_t i = 0; i < main.argument_attributes.size(); ++i) {
    if (taken[i] || find(main.argument_attributes[i], "jax.buffer_donor") == nullptr) continue;
    const TensorType& type = main.type_of(main.body().arguments[i]);
    for (std::size_t result = 0; result < donors.size(); ++result) {
      if (donors[result] >= 0 || main.results[result].type != type) continue;
      donors[result] = static_cast<int>(i);
      break;
    }
  }
  return donors;
}

}  // namespace shardsim::spmd
