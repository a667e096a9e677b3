#include "hlo/opcodes.hpp"

#include <algorithm>
#include <array>

namespace shardsim {
namespace {

struct Row {
  std::string_view opcode;
  OpcodeClass kind;
};

using enum OpcodeClass;

// By opcode. Shifts and random bits have no operations in XLA's count; copy-start and slice-start
// are prefetches, whose bytes are counted where they are read.
constexpr std::array rows{Row{"abs", elementwise},
                          Row{"acos", transcendental},
                          Row{"acosh", transcendental},
                          Row{"add", elementwise},
                          Row{"add-dependency", free},
                          Row{"after-all", free},
                          Row{"all-gather", other},
                          Row{"all-gather-start", other},
                          Row{"all-reduce", other},
                          Row{"all-reduce-start", other},
                          Row{"all-to-all", other},
                          Row{"all-to-all-start", other},
                          Row{"and", elementwise},
                          Row{"asin", transcendental},
                          Row{"asinh", transcendental},
                          Row{"async-done", free},
                          Row{"async-start", other},
                          Row{"async-update", free},
                          Row{"atan", transcendental},
                          Row{"atan2", transcendental},
                          Row{"atanh", transcendental},
                          Row{"bitcast", free},
                          Row{"bitcast-convert", moving},
                          Row{"broadcast", moving},
                          Row{"call", other},
                          Row{"cbrt", transcendental},
                          Row{"ceil", elementwise},
                          Row{"clamp", elementwise},
                          Row{"collective-broadcast", other},
                          Row{"collective-broadcast-start", other},
                          Row{"collective-permute", other},
                          Row{"collective-permute-start", other},
                          Row{"compare", elementwise},
                          Row{"complex", elementwise},
                          Row{"concatenate", moving},
                          Row{"conditional", other},
                          Row{"constant", free},
                          Row{"convert", elementwise},
                          Row{"convolution", other},
                          Row{"copy", moving},
                          Row{"copy-start", free},
                          Row{"cosh", transcendental},
                          Row{"cosine", transcendental},
                          Row{"count-leading-zeros", elementwise},
                          Row{"custom-call", other},
                          Row{"custom-call-start", other},
                          Row{"divide", elementwise},
                          Row{"domain", free},
                          Row{"dot", other},
                          Row{"dynamic-reshape", moving},
                          Row{"dynamic-slice", moving},
                          Row{"dynamic-update-slice", moving},
                          Row{"erf", transcendental},
                          Row{"exponential", transcendental},
                          Row{"exponential-minus-one", transcendental},
                          Row{"floor", elementwise},
                          Row{"fusion", other},
                          Row{"fusion-start", other},
                          Row{"gather", moving},
                          Row{"get-dimension-size", free},
                          Row{"get-tuple-element", free},
                          Row{"imag", elementwise},
                          Row{"infeed", moving},
                          Row{"iota", moving},
                          Row{"is-finite", elementwise},
                          Row{"log", transcendental},
                          Row{"log-plus-one", transcendental},
                          Row{"logistic", transcendental},
                          Row{"map", other},
                          Row{"maximum", elementwise},
                          Row{"minimum", elementwise},
                          Row{"mulhi", elementwise},
                          Row{"multiply", elementwise},
                          Row{"negate", elementwise},
                          Row{"not", elementwise},
                          Row{"opt-barrier", free},
                          Row{"or", elementwise},
                          Row{"outfeed", moving},
                          Row{"pad", moving},
                          Row{"parameter", free},
                          Row{"partition-id", free},
                          Row{"popcnt", elementwise},
                          Row{"power", transcendental},
                          Row{"ragged-all-to-all", other},
                          Row{"ragged-all-to-all-start", other},
                          Row{"real", elementwise},
                          Row{"recv", moving},
                          Row{"reduce", other},
                          Row{"reduce-precision", elementwise},
                          Row{"reduce-scatter", other},
                          Row{"reduce-scatter-start", other},
                          Row{"reduce-window", other},
                          Row{"remainder", elementwise},
                          Row{"replica-id", free},
                          Row{"reshape", moving},
                          Row{"reverse", moving},
                          Row{"rng", transcendental},
                          Row{"rng-bit-generator", moving},
                          Row{"rng-get-and-update-state", moving},
                          Row{"round-nearest-afz", elementwise},
                          Row{"round-nearest-even", elementwise},
                          Row{"rsqrt", transcendental},
                          Row{"scatter", other},
                          Row{"select", elementwise},
                          Row{"send", moving},
                          Row{"set-dimension-size", moving},
                          Row{"shift-left", moving},
                          Row{"shift-right-arithmetic", moving},
                          Row{"shift-right-logical", moving},
                          Row{"sign", elementwise},
                          Row{"sine", transcendental},
                          Row{"sinh", transcendental},
                          Row{"slice", moving},
                          Row{"slice-start", free},
                          Row{"sort", other},
                          Row{"sqrt", transcendental},
                          Row{"stochastic-convert", moving},
                          Row{"subtract", elementwise},
                          Row{"tan", transcendental},
                          Row{"tanh", transcendental},
                          Row{"topk", moving},
                          Row{"transpose", moving},
                          Row{"tuple", free},
                          Row{"while", other},
                          Row{"xor", elementwise}};
static_assert(std::is_sorted(rows.begin(), rows.end(),
                             [](const Row& a, const Row& b) { return a.opcode < b.opcode; }));

OpcodeClass look_up(std::string_view opcode) {
  const auto row =
      std::lower_bound(rows.begin(), rows.end(), opcode,
                       [](const Row& one, std::string_view wanted) { return one.opcode < wanted; });
  return row != rows.end() && row->opcode == opcode ? row->kind : unknown;
}

}  // namespace

OpcodeClass class_of(std::string_view opcode) {
  const OpcodeClass kind = look_up(opcode);
  if (kind != unknown) return kind;
  for (const std::string_view suffix : {"-start", "-update", "-done"}) {
    if (!opcode.ends_with(suffix)) continue;
    const OpcodeClass base = look_up(opcode.substr(0, opcode.size() - suffix.size()));
    if (suffix != "-start") return base == unknown ? unknown : free;
    return base == other ? unknown : base;
  }
  return unknown;
}

}  // namespace shardsim
