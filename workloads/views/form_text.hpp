// The rows that views are made of: what a parameter is called, and its dimensions as text.
//
//   {"mlp.experts.gate_up_proj", "MoeBlock_0/wi_{gate_up:0,1}",
//    "exp=experts embed_moe=hidden mlp_moe=ffn"}
//
// Each word is a dimension of a leaf: its logical axis ("-": none), then what of the parameter's
// labels it is made of:
//   heads         all that are heads or groups of heads, as one
//   *             all that no other word or part takes
//   NAME+NAME     labels by name, as one; "ffn_2", a second of the name, is "ffn"
// "+2" is a dimension of a leaf that two parameters lie in, this one and those of rows of
// the same name; "+1" one that the parameter has not.
// "~WHAT": a dimension along which such parameters lie one behind the other.
// "{NAME:a,b}" in the leaf's name tells leaves apart by a label that no leaf has, with a word for
// each of its values; "{NAME}" numbers them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/views/view.hpp"

namespace shardsim {

struct ViewRow {
  std::string_view from;  // the name within its layer
  std::string_view to;
  std::string_view dims;
};

// The parameter in the form of a row; nothing where its labels are not those that the row says.
[[nodiscard]] std::optional<ViewedParameter> in_form(const Workload& workload, TensorId parameter,
                                                     std::string_view to, std::string_view dims);
// The row that `name` goes by; "{word}" in its texts replaced.
struct Word {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::optional<ViewedParameter> by_row(const Workload& workload, TensorId parameter,
                                                    std::span<const ViewRow> rows,
                                                    const std::vector<Word>& words);

// "ffn" of label "ffn_2".
[[nodiscard]] std::string base_name(const Label& label);

}  // namespace shardsim
