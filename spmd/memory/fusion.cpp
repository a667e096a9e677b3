#include "spmd/memory/fusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

using Names = std::set<std::string_view>;

const Names& views() {
  static const Names names{"stablehlo.reshape", "stablehlo.transpose", "stablehlo.bitcast_convert",
                           "spmd.copy",         "mhlo.copy",           "sdy.sharding_constraint"};
  return names;
}

// All others that have one result are fusible.
const Names& kernels() {
  static const Names names{"stablehlo.dot_general",
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
                           "stablehlo.custom_call",
                           "stablehlo.collective_broadcast",
                           "stablehlo.fft",
                           "stablehlo.triangular_solve",
                           "stablehlo.cholesky",
                           "stablehlo.select_and_scatter",
                           "stablehlo.rng_bit_generator",
                           "stablehlo.rng",
                           "stablehlo.infeed",
                           "stablehlo.outfeed",
                           "stablehlo.composite"};
  return names;
}

const Names& dear() {
  static const Names names{"stablehlo.exponential",
                           "stablehlo.exponential_minus_one",
                           "stablehlo.log",
                           "stablehlo.log_plus_one",
                           "stablehlo.divide",
                           "stablehlo.power",
                           "stablehlo.tanh",
                           "stablehlo.logistic",
                           "stablehlo.sqrt",
                           "stablehlo.rsqrt",
                           "stablehlo.sine",
                           "stablehlo.cosine",
                           "chlo.erf"};
  return names;
}

// What a GPU's dot does to its operands while it reads them.
const Names& read_through() {
  static const Names names{"stablehlo.convert", "stablehlo.slice", "stablehlo.dynamic_slice",
                           "stablehlo.broadcast_in_dim"};
  return names;
}

OpKind op_kind(const Op& op) {
  const std::string_view name = op.name;
  if (name == "stablehlo.return" || name == "func.return" || name == "return") {
    return OpKind::terminator;
  }
  if (name == "stablehlo.while") return OpKind::loop;
  if (name == "stablehlo.case" || name == "stablehlo.if") return OpKind::branch;
  if (name == "stablehlo.optimization_barrier") return OpKind::barrier;
  if (name == "stablehlo.dynamic_update_slice" || name == "stablehlo.scatter") {
    return OpKind::update;
  }
  if (views().count(name) > 0) return OpKind::view;
  if (kernels().count(name) > 0 || op.results.size() != 1) return OpKind::kernel;
  return OpKind::fusible;
}

// What follows from the ops above a value.
struct Origins {
  Origins(const Function& main, MemoryTarget target, const Fusion& fusion)
      : from_constants(main.values.size()),
        dear_elements(main.values.size()),
        source_bytes(main.values.size()) {
    region(main, target, fusion, 0);
  }

  std::vector<bool> from_constants;  // computed of nothing else, fused
  std::vector<bool> dear_elements;   // a dear function of every element, fused
  std::vector<Bytes> source_bytes;   // the largest buffer that it is computed from; itself if it is
                                     // made by a kernel
 private:
  void region(const Function& main, MemoryTarget target, const Fusion& fusion, RegionId id) {
    for (const ValueId argument : main.regions[at(id)].arguments) {
      source_bytes[at(argument)] = allocated_bytes(main.type_of(argument), target);
    }
    for (const OpId op_id : main.regions[at(id)].ops) {
      const Op& op = main.op(op_id);
      const OpKind kind = fusion.kind[at(op_id)];
      if (kind == OpKind::loop || kind == OpKind::branch) {
        for (const RegionId inner : op.regions) region(main, target, fusion, inner);
      }
      if (kind == OpKind::fusible || kind == OpKind::view || kind == OpKind::barrier) {
        fused(main, op, kind);
      } else {
        for (const ValueId result : op.results) {
          source_bytes[at(result)] = allocated_bytes(main.type_of(result), target);
        }
      }
    }
  }

  void fused(const Function& main, const Op& op, OpKind kind) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const std::size_t result = at(op.results[i]);
      const std::int64_t elements = main.type_of(op.results[i]).elements();
      from_constants[result] = kind != OpKind::barrier;
      dear_elements[result] = dear().count(op.name) > 0;
      for (std::size_t o = 0; o < op.operands.size(); ++o) {
        if (kind == OpKind::barrier && o != i) continue;
        const std::size_t operand = at(op.operands[o]);
        if (!from_constants[operand]) from_constants[result] = false;
        if (dear_elements[operand] && main.type_of(op.operands[o]).elements() == elements) {
          dear_elements[result] = true;
        }
        source_bytes[result] = std::max(source_bytes[result], source_bytes[operand]);
      }
    }
  }
};

// Walks the program backwards: readers before what they read.
class Decision {
 public:
  Decision(const Module& module, const Function& main, MemoryTarget target, bool is_tight,
           Fusion& fusion)
      : module_(module),
        main_(main),
        target_(target),
        is_tight_(is_tight),
        fusion_(fusion),
        origins_(main, target, fusion),
        is_read_(main.values.size()),
        needs_memory_(main.values.size()),
        readers_(main.values.size()) {}

  void region(RegionId id) {
    const Region& region = main_.regions[at(id)];
    for (auto op = region.ops.rbegin(); op != region.ops.rend(); ++op) visit(*op);
  }

  std::vector<int> reader_counts() const {
    std::vector<int> counts;
    for (const Readers& readers : readers_) counts.push_back(static_cast<int>(readers.size()));
    return counts;
  }

 private:
  using Readers = std::set<OpId>;  // kernels

  void read(ValueId value, OpId reader, bool needs_memory) {
    is_read_[at(value)] = true;
    readers_[at(value)].insert(reader);
    if (needs_memory) needs_memory_[at(value)] = true;
  }

  void visit(OpId id) {
    const Op& op = main_.op(id);
    const OpKind kind = fusion_.kind[at(id)];
    const bool is_live =
        op.results.empty() || std::any_of(op.results.begin(), op.results.end(),
                                          [&](ValueId value) { return is_read_[at(value)]; });
    fusion_.is_live[at(id)] = is_live;
    if (!is_live) return;
    if (kind == OpKind::view || kind == OpKind::barrier) return hand_on(op);
    if (kind == OpKind::fusible) return fusible(id, op);
    for (const ValueId result : op.results) fusion_.is_buffer[at(result)] = true;
    if (kind == OpKind::loop || kind == OpKind::branch) {
      for (auto inner = op.regions.rbegin(); inner != op.regions.rend(); ++inner) region(*inner);
    }
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      read(op.operands[i], id, needs_memory(op, kind, i));
    }
  }

  // Whether a kernel needs its operand `i` in memory.
  bool needs_memory(const Op& op, OpKind kind, std::size_t i) const {
    const ValueId operand = op.operands[i];
    const bool is_constant = origins_.from_constants[at(operand)];
    switch (kind) {
      case OpKind::branch:
        return false;
      case OpKind::update:
        return i == 0 && !is_constant;
      case OpKind::loop:
        // What is computed from constants is written as state, or, where no round changes it,
        // computed inside by a TPU.
        return !is_constant || (target_ == MemoryTarget::gpu && fusion_.is_invariant(main_, op, i));
      default:
        break;
    }
    if (op.name == "stablehlo.reduce" || op.name == "stablehlo.reduce_window" ||
        op.name == "stablehlo.gather") {
      return false;
    }
    if (is_dot(op)) return target_ == MemoryTarget::gpu && !reads_through(operand);
    return true;
  }

  bool reads_through(ValueId value) const {
    const Op* op = main_.definition(value);
    while (op != nullptr && (read_through().count(op->name) > 0 || views().count(op->name) > 0)) {
      op = main_.definition(op->operands.front());
    }
    return op == nullptr || op_kind(*op) != OpKind::fusible;
  }

  void hand_on(const Op& op) {
    for (std::size_t i = 0; i < op.operands.size() && i < op.results.size(); ++i) {
      const auto operand = at(op.operands[i]);
      const auto result = at(op.results[i]);
      is_read_[operand] = true;
      if (needs_memory_[result]) needs_memory_[operand] = true;
      readers_[operand].insert(readers_[result].begin(), readers_[result].end());
    }
  }

  void fusible(OpId id, const Op& op) {
    const ValueId result = op.results.front();
    const Readers& readers = readers_[at(result)];
    const bool is_kept = target_ == MemoryTarget::tpu && is_rounded_for_dots(op, readers);
    const bool is_buffer = needs_memory_[at(result)] || is_kept ||
                           is_kept_for_readers(op, readers) || is_written_by_dot(op, readers);
    fusion_.in_two_orders[at(result)] = is_kept && !is_tight_;
    fusion_.is_buffer[at(result)] = is_buffer;
    for (const ValueId operand : op.operands) {
      is_read_[at(operand)] = true;
      if (is_buffer) {
        readers_[at(operand)].insert(id);
      } else {
        readers_[at(operand)].insert(readers.begin(), readers.end());
      }
    }
  }

  bool is_kept_for_readers(const Op& op, const Readers& readers) const {
    if (target_ != MemoryTarget::gpu || readers.size() < 2 || dear().count(op.name) == 0) {
      return false;
    }
    const ValueId result = op.results.front();
    return allocated_bytes(main_.type_of(result), target_) <= origins_.source_bytes[at(result)];
  }

  // A TPU adds to the result of a dot where it is written: a residual stream is one array per
  // layer, not the sum of all dots before it.
  bool is_written_by_dot(const Op& op, const Readers& readers) const {
    if (target_ != MemoryTarget::tpu || op.name != "stablehlo.add" || readers.size() < 2) {
      return false;
    }
    return std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
      const Op* made = main_.definition(fusion_.viewed(main_, operand));
      return made != nullptr && is_dot(*made);
    });
  }

  bool is_rounded_for_dots(const Op& op, const Readers& readers) const {
    if (op.name != "stablehlo.convert") return false;
    if (!is_narrower(main_.type_of(op.results.front()), main_.type_of(op.operands.front()))) {
      return false;
    }
    if (!origins_.dear_elements[at(op.operands.front())]) return false;
    const auto is_plain_dot = [&](OpId reader) {
      const Op& dot = main_.op(reader);
      return dot.name == "stablehlo.dot_general" &&
             dot_dimensions(OpView(module_, main_, dot)).lhs_batching.empty();
    };
    return std::count_if(readers.begin(), readers.end(), is_plain_dot) >= 2;
  }

  const Module& module_;
  const Function& main_;
  MemoryTarget target_;
  bool is_tight_;
  Fusion& fusion_;
  Origins origins_;
  std::vector<bool> is_read_;       // by ValueId
  std::vector<bool> needs_memory_;  // by ValueId
  std::vector<Readers> readers_;    // by ValueId
};

}  // namespace

bool is_dot(const Op& op) {
  return op.name == "stablehlo.dot_general" || op.name == "stablehlo.dot" ||
         op.name == "stablehlo.convolution";
}

bool is_narrower(const TensorType& to, const TensorType& from) {
  return to.dtype && from.dtype && bits_of(*to.dtype) < bits_of(*from.dtype);
}

ValueId Fusion::viewed(const Function& main, ValueId value) const {
  for (OpId id = main.values[at(value)].defined_by; id != no_op;
       id = main.values[at(value)].defined_by) {
    if (kind[at(id)] == OpKind::view) {
      value = main.op(id).operands.front();
    } else if (kind[at(id)] == OpKind::barrier) {
      value = main.op(id).operands[at(main.values[at(value)].result)];
    } else {
      break;
    }
  }
  return value;
}

bool Fusion::is_invariant(const Function& main, const Op& loop, std::size_t i) const {
  const Region& body = main.regions[at(loop.regions.back())];
  return viewed(main, main.op(body.ops.back()).operands[i]) == body.arguments[i];
}

std::optional<ValueId> Fusion::sliced_stack(const Function& main, ValueId value) const {
  const Op* op = main.definition(viewed(main, value));
  if (op == nullptr || op->name != "stablehlo.dynamic_slice") return std::nullopt;
  return op->operands.front();
}

Fusion fusion_of(const Module& module, const Function& main, MemoryTarget target, bool is_tight) {
  Fusion fusion;
  for (const Op& op : main.ops) fusion.kind.push_back(op_kind(op));
  fusion.is_live.resize(main.ops.size());
  fusion.in_two_orders.resize(main.values.size());
  for (const Value& value : main.values) fusion.is_buffer.push_back(value.defined_by == no_op);
  Decision decision(module, main, target, is_tight, fusion);
  decision.region(0);
  fusion.readers = decision.reader_counts();
  // Views of a buffer are it.
  for (std::size_t value = 0; value < main.values.size(); ++value) {
    fusion.is_buffer[value] =
        fusion.is_buffer[at(fusion.viewed(main, static_cast<ValueId>(value)))];
  }
  return fusion;
}

std::vector<int> donors_of_results(const Module& module, const Function& main) {
  const auto fail = [&](std::size_t argument, std::string_view what) {
    throw InputError({module.file, fmt::format("line {}", main.line)},
                     fmt::format("argument {} of @{}: {}", argument, main.name, what));
  };
  std::vector<int> donors(main.results.size(), -1);
  const auto type = [&](std::size_t argument) -> const TensorType& {
    return main.type_of(main.body().arguments[argument]);
  };
  for (std::size_t i = 0; i < main.argument_attributes.size(); ++i) {
    const Attribute* output = find(main.argument_attributes[i], "tf.aliasing_output");
    if (output == nullptr) continue;
    if (output->integer < 0 || output->integer >= static_cast<std::int64_t>(donors.size())) {
      fail(i, "tf.aliasing_output names no result");
    }
    const auto result = static_cast<std::size_t>(output->integer);
    if (type(i) != main.results[result].type) {
      fail(i, "tf.aliasing_output names a result of another type");
    }
    donors[result] = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < main.argument_attributes.size(); ++i) {
    if (find(main.argument_attributes[i], "jax.buffer_donor") == nullptr) continue;
    for (std::size_t result = 0; result < donors.size(); ++result) {
      if (donors[result] >= 0 || main.results[result].type != type(i)) continue;
      donors[result] = static_cast<int>(i);
      break;
    }
  }
  return donors;
}

}  // namespace shardsim::spmd
