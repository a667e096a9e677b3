// A compiled HLO module as its text says it, read in one pass.
//
//   HloModule jit_f, is_scheduled=true, num_partitions=8, ...
//   %add (x: f32[], y: f32[]) -> f32[] { ... }
//   ENTRY %main (p: f32[8]) -> f32[8] {
//     %p = f32[8]{0} parameter(0)
//     ROOT %r = f32[8]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%add
//   }
//
// Instructions hold views into the text; shapes and attributes are read when somebody asks. Names
// may stand with or without %, operands with or without their shapes. Tables of source locations
// are stepped over.
//
// Cost: linear; memory is the text and about 100 bytes per instruction. Errors: InputError with
// file and line for what is no HLO, unknown operands, a module without ENTRY.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"
#include "hlo/cursor.hpp"
#include "hlo/shape.hpp"

namespace shardsim {

using HloId = std::int32_t;             // index into HloModule::instructions
using HloComputationId = std::int32_t;  // index into HloModule::computations

struct HloInstruction {
  std::string_view name;
  std::string_view shape;
  std::string_view opcode;
  std::string_view arguments;   // between the parentheses: operands, a literal, a parameter number
  std::string_view attributes;  // behind them
  std::uint32_t first_operand = 0;  // range of HloModule::operands
  std::uint32_t operand_count = 0;
};

struct HloComputation {
  std::string_view name;
  HloId first = 0;  // its instructions are [first, end), in the order of the text
  HloId end = 0;
  HloId root = 0;
};

class HloModule {
 public:
  // Takes the text; `file` is for messages.
  [[nodiscard]] static HloModule parse(std::string text, std::string file);

  [[nodiscard]] const HloSource& source() const { return source_; }
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] std::string_view header(std::string_view key) const {
    return find_attribute(header_, key);
  }
  [[nodiscard]] std::int64_t header_integer(std::string_view key, std::int64_t otherwise) const;

  [[nodiscard]] const std::vector<HloComputation>& computations() const { return computations_; }
  [[nodiscard]] const HloComputation& computation(HloComputationId id) const {
    return computations_[at(id)];
  }
  [[nodiscard]] HloComputationId entry() const { return entry_; }
  [[nodiscard]] const std::vector<HloInstruction>& instructions() const { return instructions_; }
  [[nodiscard]] const HloInstruction& instruction(HloId id) const { return instructions_[at(id)]; }
  [[nodiscard]] std::span<const HloId> operands(HloId id) const;
  // Throws InputError when there are fewer.
  [[nodiscard]] HloId operand(HloId id, std::size_t index) const;
  [[nodiscard]] HloShape shape(HloId id) const {
    return parse_shape(instruction(id).shape, source_);
  }
  [[nodiscard]] std::string_view attribute(HloId id, std::string_view key) const {
    return find_attribute(instruction(id).attributes, key);
  }
  // The computations that an attribute names: calls=%a, branch_computations={%a, %b}. They stand
  // before the caller in the text, so that nothing calls itself. Throws InputError for others.
  [[nodiscard]] std::vector<HloComputationId> called(HloId id, std::string_view key) const;
  // The one that key=%a names. Throws InputError when the attribute is missing or names no other
  // one above.
  [[nodiscard]] HloComputationId callee(HloId id, std::string_view key) const;
  // op_name of the metadata, quotes resolved; empty when there is none.
  [[nodiscard]] std::string op_name(HloId id) const;

 private:
  friend class HloParser;
  [[nodiscard]] HloComputationId named_above(std::string_view name, HloId id) const;

  std::unique_ptr<const std::string> text_;  // does not move with the module
  HloSource source_;
  std::string_view name_;
  std::string_view header_;
  std::vector<HloComputation> computations_;
  std::vector<HloInstruction> instructions_;
  std::vector<HloId> operands_;
  std::unordered_map<std::string_view, HloComputationId> by_name_;
  HloComputationId entry_ = -1;
};

// Shapes of a module's instructions: each distinct text is read once.
class HloShapes {
 public:
  explicit HloShapes(const HloModule& module) : module_(module) {}
  [[nodiscard]] const HloShape& of(HloId id) { return known(id).shape; }
  [[nodiscard]] Bytes bytes(HloId id) { return known(id).bytes; }  // in memory, padding included

 private:
  struct Known {
    HloShape shape;
    Bytes bytes;
  };
  const Known& known(HloId id);

  const HloModule& module_;
  std::unordered_map<std::string_view, Known> known_;
};

// The instructions of one computation that use a value, by id.
class HloUsers {
 public:
  HloUsers(const HloModule& module, const HloComputation& computation);
  [[nodiscard]] std::span<const HloId> of(HloId id) const;

 private:
  HloId first_;
  std::vector<std::uint32_t> begin_;
  std::vector<HloId> users_;
};

}  // namespace shardsim
