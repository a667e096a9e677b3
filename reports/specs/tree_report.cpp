#include "reports/specs/tree_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/fold_names.hpp"
#include "base/text.hpp"

namespace shardsim {
namespace {

struct Total {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  Bytes bytes;

  void add(const ParameterLeaf& leaf) {
    ++tensors;
    elements += element_count(leaf);
    bytes += byte_count(leaf);
  }
};

// Layers whose tensors are alike.
std::vector<FoldedName> folded(const ParameterTree& tree) {
  std::vector<std::string> names;
  std::vector<std::string> alike;
  for (const ParameterLeaf& leaf : tree.leaves) {
    names.push_back(leaf.name);
    alike.push_back(fmt::format("{}|{}", dims_text(leaf.shape), name_of(leaf.dtype)));
  }
  return fold_names(names, alike);
}

}  // namespace

std::string tree_text(const ParameterTree& tree, std::size_t width) {
  using Align = TextTable::Align;
  TextTable table({{"parameter"},
                   {"count", Align::right},
                   {"shape"},
                   {"dtype"},
                   {"elements", Align::right},
                   {"bytes", Align::right}});
  for (const FoldedName& row : folded(tree)) {
    Total together;
    for (const std::size_t i : row.members) together.add(tree.leaves[i]);
    const ParameterLeaf& first = tree.leaves[row.members.front()];
    table.add_row({row.name, format_count(together.tensors), dims_text(first.shape),
                   std::string(name_of(first.dtype)), format_count(together.elements),
                   format_count(together.bytes.count())});
  }
  std::map<DType, Total> totals;
  Total all;
  for (const ParameterLeaf& leaf : tree.leaves) {
    totals[leaf.dtype].add(leaf);
    all.add(leaf);
  }
  TextTable sums(
      {{"dtype"}, {"tensors", Align::right}, {"elements", Align::right}, {"bytes", Align::right}});
  const auto add_sum = [&](const std::string& name, const Total& total) {
    sums.add_row({name, format_count(total.tensors), format_count(total.elements),
                  format_bytes(total.bytes)});
  };
  for (const auto& [dtype, total] : totals) add_sum(std::string(name_of(dtype)), total);
  if (totals.size() != 1) add_sum("all", all);
  return fmt::format("{}\n\n{}\n{}", tree.model, table.text("", width), sums.text("", width));
}

std::string tree_csv(const ParameterTree& tree) {
  std::string out = "name,shape,dtype,elements,bytes\n";
  for (const ParameterLeaf& leaf : tree.leaves) {
    out += fmt::format("{},{},{},{},{}\n", csv_field(leaf.name), csv_field(dims_text(leaf.shape)),
                       name_of(leaf.dtype), element_count(leaf), byte_count(leaf).count());
  }
  return out;
}

}  // namespace shardsim
