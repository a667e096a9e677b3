#include "spmd/reasons.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "base/text.hpp"
#include "spmd/builder.hpp"
#include "spmd/collective_plan.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/source_values.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Module;

struct Words {
  std::string reason;
  std::string remedy;
  std::optional<Change> change;
};

std::string text_of(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string bytes_instead(Bytes after, Bytes before) {
  return fmt::format("a device holds {} of it instead of {}", format_bytes(after),
                     format_bytes(before));
}

// [of, number, sharding without < and >, otherwise]
stablehlo::Attribute attribute_of(const Change& change) {
  stablehlo::Attribute list;
  list.kind = stablehlo::Attribute::Kind::list;
  const std::string text = stablehlo::text_of(change.sharding);
  list.items = {integer_attribute(static_cast<std::int64_t>(change.of)),
                integer_attribute(change.number), text_attribute(text.substr(1, text.size() - 2)),
                text_attribute(change.otherwise)};
  return list;
}

// One collective and what the source has of it.
class Reason {
 public:
  Reason(const Function& source, const SourceValues& values, const Mesh& mesh,
         const Collective& collective, const Op& local)
      : source_(source), values_(values), mesh_(mesh), collective_(collective) {
    if (const auto* origin = find(local.attributes, "spmd.origin")) {
      if (origin->integer >= 0) op_ = &source.op(static_cast<stablehlo::OpId>(origin->integer));
    }
    if (const auto* moved = find(local.attributes, "spmd.moved")) {
      moved_ = static_cast<ValueId>(moved->integer);
    }
    over_ = collective.axes.empty() ? "devices" : text_of(mesh.names_of(collective.axes));
  }

  [[nodiscard]] Words words() const {
    if (op_ == nullptr) return {};
    if (is_explicit_collective(op_->name)) return {who() + ": written in the program", "", {}};
    const bool sums = collective_.kind == CollectiveKind::all_reduce ||
                      collective_.kind == CollectiveKind::reduce_scatter;
    if (sums) return of_sum();
    if (moved_ < 0) return of_computed();
    if (op_->results.empty() || op_->name == "stablehlo.while") return of_handed_on();
    if (op_->name == "sdy.sharding_constraint" || op_->name == "sdy.reshard")
      return of_constraint();
    if (collective_.kind == CollectiveKind::all_gather) return of_gather();
    return of_move();
  }

 private:
  [[nodiscard]] std::string who() const {
    return fmt::format("{}, line {}", op_->name.substr(op_->name.find('.') + 1), op_->line);
  }

  [[nodiscard]] std::string_view split_verb() const {
    return collective_.axes.size() > 1 ? "split" : "splits";
  }

  // "argument 3 [{x}, {y}]", "the result of reshape, line 9 [{x}] (of argument 3)".
  [[nodiscard]] std::string told(ValueId value) const {
    std::string text = values_.name(value);
    if (const auto layout = values_.layout(value)) text += " " + text_of(*layout, mesh_);
    const ValueId root = values_.root(value);
    if (root != value) text += fmt::format(" (from {})", values_.name(root));
    return text;
  }

  // What reads with `moved_`, or is made, and is split over the axes of the collective.
  [[nodiscard]] std::vector<ValueId> split_over_axes(const std::vector<ValueId>& values) const {
    std::vector<ValueId> split;
    for (const ValueId value : values) {
      const auto layout = values_.layout(value);
      const bool known = std::find(split.begin(), split.end(), value) != split.end();
      if (!known && !collective_.axes.empty() && layout && layout->uses_all(collective_.axes)) {
        split.push_back(value);
      }
    }
    return split;
  }

  [[nodiscard]] Words of_gather() const {
    Words words;
    words.reason = fmt::format("{}, needs {} whole over {}", who(), told(moved_), over_);
    std::vector<ValueId> others;
    for (const ValueId operand : op_->operands) {
      if (operand != moved_) others.push_back(operand);
    }
    const std::vector<ValueId> readers = split_over_axes(others);
    if (!readers.empty()) {
      words.reason += fmt::format(", which {} {} as well", split_verb(), told(readers.front()));
    } else if (!op_->results.empty()) {
      if (const auto made = values_.layout(op_->results.front())) {
        words.reason += fmt::format(" for its result {}", text_of(*made, mesh_));
      }
    }
    annotate_without_axes(words);
    return words;
  }

  // The annotation of an argument is all that a user has to change; what ops compute lies as their
  // operands let it, so that no annotation of theirs is sure to help.
  void annotate_without_axes(Words& words) const {
    const ValueId root = values_.root(moved_);
    const auto layout = values_.layout(root);
    if (!layout || !values_.is_argument(root)) return;
    const auto whole = without(*layout, collective_.axes);
    if (!whole) return;
    words.remedy = fmt::format("annotate {} as {}: {}", values_.name(root), text_of(*whole, mesh_),
                               bytes_instead(whole->shard_bytes(), layout->shard_bytes()));
    propose(words, Change::Of::argument, source_.values[at(root)].result, *whole);
  }

  void propose(Words& words, Change::Of of, std::int64_t number, const Layout& layout,
               std::string otherwise = {}) const {
    words.change = {words.remedy, std::move(otherwise), of, number, values_.written(layout)};
  }

  [[nodiscard]] Words of_constraint() const {
    const auto wanted = values_.layout(op_->results.front());
    Words words;
    words.reason = fmt::format("{}, asks for {} of {}", who(),
                               wanted ? text_of(*wanted, mesh_) : "another sharding", told(moved_));
    if (const auto layout = values_.layout(moved_); layout && wanted) {
      words.remedy = fmt::format("let line {} ask for {}: {}", op_->line, text_of(*layout, mesh_),
                                 bytes_instead(layout->shard_bytes(), wanted->shard_bytes()));
      propose(words, Change::Of::line, op_->line, *layout);
    }
    return words;
  }

  // A result of the program, the state of a loop.
  [[nodiscard]] Words of_handed_on() const {
    const bool loops = !op_->results.empty();
    std::vector<ValueId> given = op_->operands;
    if (loops) {
      const auto& body = source_.regions[at(op_->regions.back())];
      const auto& next = source_.op(body.ops.back()).operands;
      given.insert(given.end(), next.begin(), next.end());
    }
    const auto found = std::find(given.begin(), given.end(), moved_);
    if (found == given.end()) return of_move();
    const std::size_t place = at(found - given.begin()) % op_->operands.size();
    const auto wanted =
        loops ? values_.layout(op_->results[place]) : values_.layout(source_.results.at(place));
    const std::string what = loops ? fmt::format("{}, carries value {}", who(), place)
                                   : fmt::format("result {} of the program is returned", place);
    Words words;
    words.reason = fmt::format("{} as {} and is given {}", what,
                               wanted ? text_of(*wanted, mesh_) : "another sharding", told(moved_));
    const auto layout = values_.layout(moved_);
    if (loops || !layout || !wanted) return words;
    words.remedy = fmt::format("return result {} as {}: {}", place, text_of(*layout, mesh_),
                               bytes_instead(layout->shard_bytes(), wanted->shard_bytes()));
    propose(words, Change::Of::result, static_cast<std::int64_t>(place), *layout);
    return words;
  }

  [[nodiscard]] Words of_move() const {
    Words words;
    words.reason =
        fmt::format("{}, needs elements of {} that other devices hold", who(), told(moved_));
    if (op_->results.empty()) return words;
    if (const auto made = values_.layout(op_->results.front())) {
      words.reason += fmt::format(", for its result {}", text_of(*made, mesh_));
    }
    return words;
  }

  [[nodiscard]] Words of_computed() const {
    const bool permutes = collective_.kind == CollectiveKind::collective_permute;
    const bool multiplies = op_->name == "stablehlo.dot_general";
    Words words;
    if (permutes && multiplies) {
      words.reason = who() + ", passes tiles from device to device while it multiplies";
      return words;
    }
    words.reason = who() + ", brings what it computes to where its result lies";
    if (op_->results.empty()) return words;
    if (const auto made = values_.layout(op_->results.front())) {
      words.reason += " " + text_of(*made, mesh_);
    }
    return words;
  }

  [[nodiscard]] Words of_sum() const {
    const std::vector<ValueId> split = split_over_axes(op_->operands);
    std::vector<std::string> names;
    for (const ValueId value : split) names.push_back(told(value));
    Words words;
    words.reason =
        fmt::format("{}, makes parts of its result on the devices along {}", who(), over_);
    if (!names.empty()) {
      words.reason += fmt::format(", which {} {}", split_verb(), text_of(names));
    }
    words.remedy = take_off_operands(split);
    scatter_instead(words);
    return words;
  }

  void scatter_instead(Words& words) const {
    if (collective_.kind != CollectiveKind::all_reduce || op_->results.size() != 1) return;
    const auto made = values_.layout(op_->results.front());
    if (!made || collective_.axes.empty()) return;
    const auto split = with(*made, collective_.axes);
    if (!split) return;
    const auto wire = [&](CollectiveKind kind) {
      return format_bytes(
          wire_bytes_per_device(kind, Mesh::size_of(collective_.axes), collective_.payload));
    };
    const std::string otherwise = words.remedy;
    if (!words.remedy.empty()) words.remedy += "; or ";
    words.remedy += fmt::format(
        "constrain the result of line {} to {}: a reduce-scatter, which sends {} instead of {}, "
        "where "
        "nothing reads it whole",
        op_->line, text_of(*split, mesh_), wire(CollectiveKind::reduce_scatter),
        wire(CollectiveKind::all_reduce));
    propose(words, Change::Of::line, op_->line, *split, otherwise);
  }

  // Work is only known to grow by the axes where every point of the op is one multiplication.
  [[nodiscard]] std::string take_off_operands(const std::vector<ValueId>& split) const {
    const bool multiplies = op_->name == "stablehlo.dot_general";
    if (!multiplies && op_->name != "stablehlo.reduce") return "";
    if (split.empty()) return "";
    std::vector<std::string> names;
    for (const ValueId value : split) names.push_back(values_.name(value));
    return fmt::format("take {} off {}: each device then does {} times the work of this op", over_,
                       text_of(names), Mesh::size_of(collective_.axes));
  }

  const Function& source_;
  const SourceValues& values_;
  const Mesh& mesh_;
  const Collective& collective_;
  const Op* op_ = nullptr;
  ValueId moved_ = -1;
  std::string over_;
};

}  // namespace

std::vector<Change> proposed_changes(const Module& local) {
  std::vector<Change> changes;
  for (const Op& op : local.functions.front().ops) {
    const stablehlo::Attribute* remedy = find(op.attributes, "spmd.remedy");
    const stablehlo::Attribute* written = find(op.attributes, "spmd.change");
    if (remedy == nullptr || written == nullptr) continue;
    const bool known = std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
      return change.remedy == remedy->text;
    });
    if (known) continue;
    stablehlo::Scanner sharding(written->items[2].text, local.file, op.line);
    changes.push_back({remedy->text, written->items[3].text,
                       static_cast<Change::Of>(written->items[0].integer),
                       written->items[1].integer, stablehlo::parse_axis_sharding(sharding)});
  }
  return changes;
}

bool apply(const Change& change, Module& prepared) {
  Function& function = prepared.functions.front();
  const auto set = [&](stablehlo::ValueSharding& sharding) {
    sharding = {change.sharding, std::nullopt};
    return true;
  };
  if (change.of == Change::Of::argument) {
    const auto& arguments = function.body().arguments;
    return at(change.number) < arguments.size() &&
           set(function.values[at(arguments[at(change.number)])].sharding);
  }
  if (change.of == Change::Of::result) {
    return at(change.number) < function.results.size() &&
           set(function.results[at(change.number)].sharding);
  }
  bool found = false;
  for (const Op& op : function.ops) {
    if (op.line != change.number || op.results.empty()) continue;
    found = set(function.values[at(op.results.front())].sharding);
  }
  return found;
}

void write_reasons(Module& local, const Module& program) {
  const ProgramDevices devices = devices_of(local);
  const Function& source = program.functions.front();
  const SourceValues values(source, devices.mesh, devices.name);
  Function& function = local.functions.front();
  for (Op& op : function.ops) {
    if (!is_collective(op) || find(op.attributes, "spmd.origin") == nullptr) continue;
    const Collective collective =
        collective_of(local, function, op, devices.mesh, devices.positions);
    Words words = Reason(source, values, devices.mesh, collective, op).words();
    std::erase_if(op.attributes, [](const stablehlo::NamedAttribute& attribute) {
      return attribute.name == "spmd.origin" || attribute.name == "spmd.moved";
    });
    if (!words.reason.empty()) {
      op.attributes.push_back({"spmd.reason", text_attribute(words.reason)});
    }
    if (!words.remedy.empty()) {
      op.attributes.push_back({"spmd.remedy", text_attribute(words.remedy)});
    }
    if (words.change) op.attributes.push_back({"spmd.change", attribute_of(*words.change)});
  }
}

}  // namespace shardsim::spmd
