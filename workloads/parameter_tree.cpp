#include "workloads/parameter_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace shardsim {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 62;

bool is_number(std::string_view word) {
  return !word.empty() && word.size() <= 18 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_leaf(const JsonReader& json) {
  const auto shape = json.is_object() ? json.find("shape") : std::nullopt;
  return shape && shape->is_array();
}

DType read_dtype(const JsonReader& json) {
  const std::optional<DType> dtype = parse_dtype(json.string());
  if (!dtype) json.fail(fmt::format("unknown dtype \"{}\"", json.string()));
  return *dtype;
}

LogicalAxes read_logical_axes(const JsonReader& json, std::size_t rank) {
  LogicalAxes axes;
  for (const JsonReader& axis : json.elements()) {
    axes.push_back(axis.is_null() ? std::nullopt : std::optional(axis.string()));
  }
  if (axes.size() != rank) {
    json.fail(fmt::format("{} logical axes for {} dimensions", axes.size(), rank));
  }
  return axes;
}

class LeafReader {
 public:
  explicit LeafReader(DType dtype) : dtype_(dtype) {}

  void read(const JsonReader& json, const std::string& name) {
    if (json.is_null()) return;
    if (is_leaf(json)) return read_leaf(json, name);
    const auto inner = [&](const std::string& key) {
      return name.empty() ? key : name + "/" + key;
    };
    if (json.is_array()) {
      const std::vector<JsonReader> elements = json.elements();
      for (std::size_t i = 0; i < elements.size(); ++i) read(elements[i], inner(std::to_string(i)));
      return;
    }
    for (const auto& [key, member] : json.members()) read(member, inner(key));
  }

  std::vector<ParameterLeaf> sorted() && {
    std::stable_sort(
        leaves_.begin(), leaves_.end(),
        [](const ParameterLeaf& a, const ParameterLeaf& b) { return path_less(a.name, b.name); });
    for (std::size_t i = 1; i < leaves_.size(); ++i) {
      if (leaves_[i].name == leaves_[i - 1].name) {
        throw InputError(leaves_[i].place,
                         fmt::format("parameter \"{}\" is given twice", leaves_[i].name));
      }
    }
    return std::move(leaves_);
  }

 private:
  void read_leaf(const JsonReader& json, const std::string& name) {
    json.only_keys({"shape", "dtype", "logical_axes", "spec"});
    ParameterLeaf leaf;
    leaf.name = name;
    leaf.place = json.place();
    leaf.dtype = dtype_;
    if (const auto dtype = json.find("dtype")) leaf.dtype = read_dtype(*dtype);
    std::int64_t elements = 1;
    for (const JsonReader& size : json.at("shape").elements()) {
      leaf.shape.push_back(size.integer(0, most_elements));
      if (leaf.shape.back() > 0 && elements > most_elements / leaf.shape.back()) {
        json.fail("more than 2^62 elements");
      }
      elements *= std::max<std::int64_t>(leaf.shape.back(), 1);
    }
    if (const auto axes = json.find("logical_axes")) {
      leaf.logical_axes = read_logical_axes(*axes, leaf.shape.size());
    }
    leaves_.push_back(std::move(leaf));
  }

  DType dtype_;
  std::vector<ParameterLeaf> leaves_;
};

}  // namespace

std::int64_t element_count(const ParameterLeaf& leaf) {
  std::int64_t count = 1;
  for (const std::int64_t size : leaf.shape) count *= size;
  return count;
}

Bytes byte_count(const ParameterLeaf& leaf) { return element_count(leaf) * size_of(leaf.dtype); }

bool path_less(const std::string& a, const std::string& b) {
  std::string_view left = a;
  std::string_view right = b;
  while (!left.empty() && !right.empty()) {
    const std::string_view x = left.substr(0, left.find('/'));
    const std::string_view y = right.substr(0, right.find('/'));
    if (x != y) {
      if (is_number(x) && is_number(y) && x.size() != y.size()) return x.size() < y.size();
      return x < y;
    }
    left.remove_prefix(std::min(x.size() + 1, left.size()));
    right.remove_prefix(std::min(y.size() + 1, right.size()));
  }
  return left.size() < right.size();
}

std::vector<ParameterLeaf> read_parameter_leaves(const JsonReader& parameters, DType dtype) {
  LeafReader reader(dtype);
  reader.read(parameters, "");
  return std::move(reader).sorted();
}

ParameterTree read_parameter_tree(const JsonReader& document) {
  document.only_keys({"schema", "shardsim", "model", "source", "framework", "mesh", "parameters"});
  static_cast<void>(document.at("schema").choice({"shardsim/parameter-tree/1"}));
  ParameterTree tree;
  if (const auto model = document.find("model")) tree.model = model->string();
  tree.leaves = read_parameter_leaves(document.at("parameters"));
  return tree;
}

}  // namespace shardsim
