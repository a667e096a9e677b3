#include "hlo/heap.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/index.hpp"
#include "hlo/callers.hpp"
#include "hlo/collectives.hpp"
#include "hlo/cost.hpp"
#include "hlo/opcodes.hpp"

namespace shardsim {
namespace {

struct Array {
  Bytes bytes;
  HloId made = 0;
  HloId last_use = 0;
  bool outside = false;  // parameters, results, constants
};

using Leaves = std::vector<std::size_t>;  // indices of arrays, tuples flattened

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_view(std::string_view opcode) {
  return opcode == "bitcast" || opcode == "opt-barrier" || opcode == "while" ||
         opcode == "domain" || opcode == "add-dependency";
}

// The arrays of one computation and how long they live.
class Replay {
 public:
  Replay(const HloModule& module, HloShapes& shapes,
         std::unordered_map<HloComputationId, Bytes>& known)
      : module_(module), shapes_(shapes), known_(known) {}

  Bytes peak(HloComputationId id) {
    const auto found = known_.find(id);
    if (found != known_.end()) return found->second;
    const HloComputation& computation = module_.computation(id);
    first_ = computation.first;
    leaves_.resize(static_cast<std::size_t>(computation.end - computation.first));
    for (HloId i = computation.first; i < computation.end; ++i) place(i);
    for (const std::size_t array : of(computation.root)) arrays_[array].outside = true;
    share(computation);
    const Bytes answer = sweep(computation);
    known_.emplace(id, answer);
    return answer;
  }

 private:
  Leaves& of(HloId id) { return leaves_[at(id - first_)]; }

  std::size_t add(const HloShape& shape, HloId id, bool outside) {
    const Bytes bytes = shape.layout.memory_space == 0 ? shape.bytes() : Bytes(0);
    arrays_.push_back({bytes, id, id, outside});
    return arrays_.size() - 1;
  }

  // Arrays of operand `id` that hold its element `index`.
  Leaves element(HloId id, std::size_t index) {
    const HloShape& shape = shapes_.of(id);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < index && i < shape.elements.size(); ++i) {
      begin += arrays_of(shape.elements[i]).size();
    }
    const std::size_t count =
        index < shape.elements.size() ? arrays_of(shape.elements[index]).size() : 0;
    const Leaves& all = of(id);
    begin = std::min(begin, all.size());
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(begin);
    return {from, from + static_cast<std::ptrdiff_t>(std::min(count, all.size() - begin))};
  }

  // Which array of the operands a result takes the place of.
  std::optional<std::size_t> in_place(HloId id, std::size_t leaf) {
    const std::string_view opcode = module_.instruction(id).opcode;
    const auto operands = module_.operands(id);
    if (opcode == "dynamic-update-slice" || opcode == "scatter") return first_leaf(operands, 0);
    if (opcode != "fusion") return std::nullopt;
    const HloComputationId callee = module_.callee(id, "calls");
    HloId root = module_.computation(callee).root;
    if (module_.instruction(root).opcode == "tuple") {
      if (leaf >= module_.operands(root).size()) return std::nullopt;
      root = module_.operand(root, leaf);
    }
    while (module_.instruction(root).opcode == "bitcast") root = module_.operand(root, 0);
    const std::string_view made_by = module_.instruction(root).opcode;
    if (made_by != "dynamic-update-slice" && made_by != "scatter") return std::nullopt;
    HloId target = module_.operand(root, 0);
    while (module_.instruction(target).opcode == "bitcast") target = module_.operand(target, 0);
    if (module_.instruction(target).opcode != "parameter") return std::nullopt;
    return first_leaf(operands, parameter_number(module_, target));
  }

  std::optional<std::size_t> first_leaf(std::span<const HloId> operands, std::size_t number) {
    if (number >= operands.size() || of(operands[number]).empty()) return std::nullopt;
    return of(operands[number]).front();
  }

  // Of a start: the operands first, then what -done gives; of a copy the other way round.
  Leaves started(HloId id) {
    const HloShape& shape = shapes_.of(id);
    const std::string_view opcode = module_.instruction(id).opcode;
    Leaves operands;
    if (shape.is_tuple && opcode != "all-reduce-start") {
      for (const HloId operand : module_.operands(id)) {
        operands.insert(operands.end(), of(operand).begin(), of(operand).end());
      }
    }
    const std::size_t skip = opcode == "copy-start" ? 1 : 0;
    Leaves leaves;
    for (const HloShape* array : arrays_of(shape)) {
      const std::size_t at = leaves.size();
      const bool is_operand = at >= skip && at - skip < operands.size();
      leaves.push_back(is_operand ? operands[at - skip] : add(*array, id, false));
    }
    return leaves;
  }

  Leaves finished(HloId id) {
    const HloId start = module_.operand(id, 0);
    const std::string_view opcode = module_.instruction(start).opcode;
    const Leaves& all = of(start);
    const HloShape& shape = shapes_.of(id);
    const std::size_t count = arrays_of(shape).size();
    std::size_t begin = 0;
    if (shapes_.of(start).is_tuple && opcode != "all-reduce-start" && opcode != "copy-start") {
      for (const HloId operand : module_.operands(start)) begin += of(operand).size();
    }
    Leaves leaves;
    for (std::size_t i = begin; i < std::min(begin + count, all.size()); ++i) {
      leaves.push_back(all[i]);
    }
    return leaves;
  }

  void place(HloId id) {
    const std::string_view opcode = module_.instruction(id).opcode;
    Leaves& leaves = of(id);
    if (opcode == "tuple") {
      for (const HloId operand : module_.operands(id)) {
        leaves.insert(leaves.end(), of(operand).begin(), of(operand).end());
      }
    } else if (opcode == "get-tuple-element") {
      leaves = element(module_.operand(id, 0), tuple_index(module_, id));
    } else if (is_view(opcode)) {
      leaves = of(module_.operand(id, 0));
    } else if (ends_with(opcode, "-start")) {
      leaves = started(id);
    } else if (ends_with(opcode, "-done")) {
      leaves = finished(id);
    } else {
      make(id, leaves);
    }
    for (const HloId operand : module_.operands(id)) {
      for (const std::size_t array : of(operand)) arrays_[array].last_use = id;
    }
  }

  void make(HloId id, Leaves& leaves) {
    const std::string_view opcode = module_.instruction(id).opcode;
    const bool outside = opcode == "parameter" || opcode == "constant";
    const HloShape& shape = shapes_.of(id);
    for (const HloShape* array : arrays_of(shape)) {
      const auto target = in_place(id, leaves.size());
      leaves.push_back(target ? *target : add(*array, id, outside));
    }
  }

  // A result takes the place of an operand of the same size that is not needed any more.
  void share(const HloComputation& computation) {
    std::vector<std::size_t> place_of(arrays_.size());
    for (std::size_t i = 0; i < place_of.size(); ++i) place_of[i] = i;
    for (HloId id = computation.first; id < computation.end; ++id) {
      if (!may_share(id)) continue;
      for (const std::size_t result : of(id)) {
        if (arrays_[result].made != id || arrays_[result].bytes == Bytes(0)) continue;
        for (const HloId operand : module_.operands(id)) {
          if (of(operand).size() != 1) continue;
          Array& old = arrays_[place_of[of(operand).front()]];
          if (old.outside || old.last_use != id || old.bytes != arrays_[result].bytes) continue;
          old.last_use = std::max(old.last_use, arrays_[result].last_use);
          old.outside = arrays_[result].outside;
          arrays_[result].bytes = Bytes(0);
          place_of[result] = place_of[of(operand).front()];
          break;
        }
      }
    }
  }

  [[nodiscard]] bool may_share(HloId id) const {
    const std::string_view opcode = module_.instruction(id).opcode;
    if (opcode == "fusion") return module_.attribute(id, "kind") == "kLoop";
    if (opcode == "all-reduce" || opcode == "all-reduce-start") return true;
    return is_elementwise(opcode);
  }

  Bytes inside(HloId id) {
    Bytes most;
    for (const std::string_view key : {"body", "condition", "branch_computations",
                                       "true_computation", "false_computation", "to_apply"}) {
      if (module_.attribute(id, key).empty()) continue;
      for (const HloComputationId callee : module_.called(id, key)) {
        most = std::max(most, Replay(module_, shapes_, known_).peak(callee));
      }
    }
    return most;
  }

  Bytes sweep(const HloComputation& computation) {
    std::unordered_map<HloId, Bytes> made;
    std::unordered_map<HloId, Bytes> freed;
    for (const Array& array : arrays_) {
      if (array.outside) continue;
      made[array.made] += array.bytes;
      freed[array.last_use] += array.bytes;
    }
    Bytes alive;
    Bytes most;
    for (HloId id = computation.first; id < computation.end; ++id) {
      const auto begin = made.find(id);
      if (begin != made.end()) alive += begin->second;
      const std::string_view opcode = module_.instruction(id).opcode;
      const bool runs = opcode == "while" || opcode == "conditional" || opcode == "call";
      most = std::max(most, alive + (runs ? inside(id) : Bytes(0)));
      const auto end = freed.find(id);
      if (end != freed.end()) alive -= end->second;
    }
    return most;
  }

  const HloModule& module_;
  HloShapes& shapes_;
  std::unordered_map<HloComputationId, Bytes>& known_;
  HloId first_ = 0;
  std::vector<Array> arrays_;
  std::vector<Leaves> leaves_;
};

}  // namespace

Bytes temporary_bytes(const HloModule& module) {
  std::unordered_map<HloComputationId, Bytes> known;
  HloShapes shapes(module);
  return Replay(module, shapes, known).peak(module.entry());
}

}  // namespace shardsim
