#include "strategies/rules/big_vision_ops.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/op_string.hpp"

namespace shardsim {
namespace {

using ValueKind = PythonValue::Kind;

struct OpContext {
  const Mesh* mesh;
  const LogicalAxisRules* rules;
  EqualDimensions ties;
  Place place;
};

void add_reason(BigVisionLeaf& leaf, const std::string& reason) {
  if (!leaf.reason.empty()) leaf.reason += "; ";
  leaf.reason += reason;
}

std::string spec_text(const BigVisionLeaf& leaf) {
  PartitionSpec spec;
  for (const auto& entry : leaf.entries) spec.push_back(entry.value_or(SpecEntry{}));
  return to_string(spec);
}

// A spec as Python prints the tuple: "(None, 'data')", "(('x', 'y'),)".
std::string python_text(const std::vector<std::optional<SpecEntry>>& entries) {
  const auto tuple = [](const std::vector<std::string>& parts) {
    return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
  };
  std::vector<std::string> parts;
  for (const std::optional<SpecEntry>& entry : entries) {
    std::vector<std::string> names;
    for (const std::string& axis : entry.value_or(SpecEntry{}).axes) {
      names.push_back(fmt::format("'{}'", axis));
    }
    parts.push_back(!entry ? "None" : names.size() == 1 ? names[0] : tuple(names));
  }
  return tuple(parts);
}

// Every op but logical_partitioning works on a spec, which a box is not.
[[noreturn]] void fail_boxed(std::string_view type, const BigVisionLeaf& leaf, std::string_view op,
                             const Place& place) {
  throw RuleError(
      type, place,
      fmt::format("{} of {}, which has logical axes: big_vision applies every tactic to "
                  "such leaves, and logical_partitioning must come first",
                  op, leaf.leaf->name));
}

// -- replicate, logical_partitioning --------------------------------------------------------------

BigVisionOp replicate(const OpCall& call, const OpContext& context) {
  static_cast<void>(bind_arguments(call, {}, 0, context.place));
  return [context](BigVisionLeaf& leaf) {
    if (leaf.is_boxed) fail_boxed("TypeError", leaf, "replicate", context.place);
    for (const auto& entry : leaf.entries) {
      if (!entry) continue;
      throw RuleError("ValueError", context.place,
                      fmt::format("{} cannot be replicated, earlier ops made it {}",
                                  leaf.leaf->name, spec_text(leaf)));
    }
  };
}

BigVisionOp logical_partitioning(const OpCall& call, const OpContext& context) {
  static_cast<void>(bind_arguments(call, {}, 0, context.place));
  return [context](BigVisionLeaf& leaf) {
    if (!leaf.is_boxed) return;
    leaf.is_boxed = false;
    leaf.entries.clear();
    for (SpecEntry& entry :
         logical_to_mesh_axes(*leaf.leaf->logical_axes, *context.rules, context.place)) {
      leaf.entries.push_back(entry.is_whole() ? std::nullopt : std::optional(std::move(entry)));
    }
  };
}

// -- fsdp -----------------------------------------------------------------------------------------

class Fsdp {
 public:
  Fsdp(const OpCall& call, const OpContext& context) : context_(context) {
    auto bound = bind_arguments(call, {"axis", "min_size_to_shard_mb"}, 1, context.place);
    axes_ = axes_of(*bound[0]);
    min_mb_.kind = ValueKind::integer;
    min_mb_.integer = 4;
    if (bound[1]) min_mb_ = *bound[1];
  }

  void operator()(BigVisionLeaf& leaf) const {
    if (leaf.is_boxed || leaf.leaf->logical_axes) {
      fail_boxed("AttributeError", leaf, "fsdp", context_.place);
    }
    const std::int64_t devices = count_devices();
    if (is_small(byte_count(*leaf.leaf))) {
      add_reason(leaf, fmt::format("{} is not more than min_size_to_shard_mb={}",
                                   format_bytes(byte_count(*leaf.leaf)), to_string(min_mb_)));
      return;
    }
    bool divides = false;
    for (const std::size_t d :
         largest_dimensions_first(leaf.leaf->shape, context_.ties, context_.place)) {
      if (leaf.leaf->shape[d] % devices != 0) continue;
      divides = true;
      if (leaf.entries[d]) continue;
      leaf.entries[d] = entry();
      return;
    }
    add_reason(leaf, fmt::format("no {}dimension divides by {}", divides ? "free " : "", devices));
  }

 private:
  // A string, or tuple(axis): the characters of bytes, the keys of a dict.
  [[nodiscard]] std::vector<PythonValue> axes_of(const PythonValue& axis) const {
    if (axis.kind == ValueKind::string) return {axis};
    std::vector<PythonValue> axes = axis.items;
    if (axis.kind == ValueKind::bytes) {
      for (const char c : axis.text) {
        axes.push_back({ValueKind::integer, static_cast<unsigned char>(c)});
      }
    } else if (axis.kind == ValueKind::dict) {
      for (std::size_t i = 0; i < axes.size(); ++i) {
        axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    } else if (axis.kind == ValueKind::set) {
      const bool is_one = std::all_of(axes.begin(), axes.end(),
                                      [&](const PythonValue& item) { return item == axes[0]; });
      if (!is_one) fail("TypeError", "fsdp: a set of axes has no order, write a tuple");
      axes.resize(std::min<std::size_t>(axes.size(), 1));
    } else if (!axis.is_collection()) {
      fail("TypeError", fmt::format("fsdp: axis {} is neither a name nor names", to_string(axis)));
    }
    return axes;
  }

  [[nodiscard]] std::int64_t count_devices() const {
    std::int64_t devices = 1;
    for (const PythonValue& axis : axes_) {
      if (axis.kind == ValueKind::list || axis.kind == ValueKind::dict ||
          axis.kind == ValueKind::set) {
        fail("TypeError", fmt::format("fsdp: {} is no axis", to_string(axis)));
      }
      const auto found =
          axis.kind == ValueKind::string ? context_.mesh->find(axis.text) : std::nullopt;
      if (!found) fail_unknown(axis);
      devices *= context_.mesh->axes()[static_cast<std::size_t>(*found)].size;
    }
    return devices;
  }

  [[nodiscard]] bool is_small(Bytes bytes) const {
    if (!min_mb_.is_number()) {
      fail("TypeError",
           fmt::format("fsdp: min_size_to_shard_mb={} is no number", to_string(min_mb_)));
    }
    const std::int64_t count = bytes.count();
    if (min_mb_.kind == ValueKind::real) {
      return static_cast<double>(count) <= min_mb_.real * static_cast<double>(MiB);
    }
    return count / MiB + (count % MiB == 0 ? 0 : 1) <= min_mb_.integer;
  }

  [[nodiscard]] SpecEntry entry() const {
    SpecEntry entry;
    for (const PythonValue& axis : axes_) entry.axes.push_back(axis.text);
    return entry;
  }

  [[noreturn]] void fail(std::string_view type, const std::string& message) const {
    throw RuleError(type, context_.place, message);
  }

  [[noreturn]] void fail_unknown(const PythonValue& axis) const {
    std::vector<std::string> names;
    for (const MeshAxis& known : context_.mesh->axes()) names.push_back(known.name);
    throw RuleError("KeyError", context_.place,
                    fmt::format("fsdp: the mesh has no axis {}", to_string(axis)),
                    closest(axis.text, names));
  }

  OpContext context_;
  std::vector<PythonValue> axes_;
  PythonValue min_mb_;
};

BigVisionOp shard_fully(const OpCall& call, const OpContext& context) {
  return Fsdp(call, context);
}

// -- shard_dim ------------------------------------------------------------------------------------

class ShardDim {
 public:
  ShardDim(const OpCall& call, const OpContext& context) : context_(context) {
    auto bound = bind_arguments(call, {"axis", "dim", "ignore_ndim_error"}, 2, context.place);
    axis_ = *bound[0];
    dim_ = *bound[1];
    ignores_ndim_error_ = bound[2] && bound[2]->is_true();
    text_ = fmt::format("shard_dim({}, {})", to_string(axis_), to_string(dim_));
    logged_text_ = fmt::format("shard_dim({}, {})",
                               axis_.kind == ValueKind::string ? axis_.text : to_string(axis_),
                               to_string(dim_));
  }

  void operator()(BigVisionLeaf& leaf) const {
    if (leaf.is_boxed) fail_boxed("TypeError", leaf, "shard_dim", context_.place);
    if (!dim_.is_number()) fail("TypeError", leaf, "the dimension is no number");
    const std::size_t rank = leaf.entries.size();
    // -rank would be the first dimension; big_vision refuses it.
    if (std::abs(dim_.as_real()) >= static_cast<double>(rank)) {
      if (!ignores_ndim_error_) fail("ValueError", leaf, fmt::format("it has rank {}", rank));
      add_reason(leaf, fmt::format("{} ignored at rank {}", text_, rank));
      leaf.warnings.push_back(fmt::format("Cannot {}: name={} cur_spec={}", logged_text_,
                                          leaf.leaf->name, python_text(leaf.entries)));
      return;
    }
    if (dim_.kind == ValueKind::real) fail("TypeError", leaf, "the dimension is no integer");
    auto& entry = leaf.entries[static_cast<std::size_t>(
        dim_.integer < 0 ? dim_.integer + static_cast<std::int64_t>(rank) : dim_.integer)];
    if (entry) fail("ValueError", leaf, fmt::format("already sharded, {}", spec_text(leaf)));
    if (axis_.kind != ValueKind::none) entry = make_entry(leaf);
  }

 private:
  // PartitionSpec takes what is false for null and refuses what is no name only at the end.
  [[nodiscard]] SpecEntry make_entry(BigVisionLeaf& leaf) const {
    SpecEntry entry;
    if (!axis_.is_true()) return entry;
    const bool is_list = axis_.kind == ValueKind::tuple || axis_.kind == ValueKind::list;
    for (const PythonValue& name : is_list ? axis_.items : std::vector{axis_}) {
      if (name.kind == ValueKind::string) {
        entry.axes.push_back(name.text);
      } else if (leaf.invalid.empty()) {
        leaf.invalid =
            fmt::format("{} of {}: {} is no axis", text_, leaf.leaf->name, to_string(name));
      }
    }
    return entry;
  }

  [[noreturn]] void fail(std::string_view type, const BigVisionLeaf& leaf,
                         std::string_view why) const {
    throw RuleError(type, context_.place, fmt::format("{} of {}: {}", text_, leaf.leaf->name, why));
  }

  OpContext context_;
  PythonValue axis_;
  PythonValue dim_;
  bool ignores_ndim_error_ = false;
  std::string text_;
  std::string logged_text_;  // as Python's str prints it: a name without its quotes
};

BigVisionOp shard_dim(const OpCall& call, const OpContext& context) {
  return ShardDim(call, context);
}

struct OpRow {
  std::string_view name;
  BigVisionOp (*make)(const OpCall& call, const OpContext& context);
};

constexpr std::array<OpRow, 4> ops{{{"replicate", replicate},
                                    {"fsdp", shard_fully},
                                    {"logical_partitioning", logical_partitioning},
                                    {"shard_dim", shard_dim}}};

}  // namespace

BigVisionOp make_big_vision_op(const std::string& op, const Mesh& mesh,
                               const LogicalAxisRules& rules, EqualDimensions ties,
                               const Place& place) {
  const std::string prefix = "shardings.";
  const OpCall call = parse_op(prefix + op, place);
  std::vector<std::string> names;
  for (const OpRow& row : ops) {
    if (call.name == prefix + std::string(row.name)) {
      return row.make(call, {&mesh, &rules, ties, place});
    }
    names.push_back(prefix + std::string(row.name));
  }
  throw RuleError("KeyError", place, fmt::format("unknown op \"{}\"", call.name),
                  closest(call.name, names));
}

}  // namespace shardsim
