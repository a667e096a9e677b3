#include "workloads/files/parameter_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json.hpp"
#include "base/version.hpp"

namespace shardsim {
namespace {

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
  LeafReader(DType dtype, const LeafVisitor& visit) : dtype_(dtype), visit_(visit) {}

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
    sort_leaves(leaves_);
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
    for (const JsonReader& size : json.at("shape").elements()) {
      leaf.shape.push_back(size.integer(0, most_elements));
    }
    if (!checked_elements(leaf.shape)) json.fail("more than 2^53 elements");
    if (const auto axes = json.find("logical_axes")) {
      leaf.logical_axes = read_logical_axes(*axes, leaf.shape.size());
    }
    if (visit_) visit_(leaf, json);
    leaves_.push_back(std::move(leaf));
  }

  DType dtype_;
  const LeafVisitor& visit_;
  std::vector<ParameterLeaf> leaves_;
};

}  // namespace

std::int64_t element_count(const ParameterLeaf& leaf) {
  std::int64_t count = 1;
  for (const std::int64_t size : leaf.shape) count *= size;
  return count;
}

Bytes byte_count(const ParameterLeaf& leaf) {
  return storage_bytes(element_count(leaf), leaf.dtype);
}

std::optional<std::int64_t> checked_elements(const std::vector<std::int64_t>& shape) {
  // In any order of the sizes, also where one is 0: a reader that multiplies does not overflow.
  std::int64_t bound = 1;
  for (const std::int64_t size : shape) {
    const std::int64_t factor = std::max<std::int64_t>(size, 1);
    if (bound > most_elements / factor) return std::nullopt;
    bound *= factor;
  }
  return std::find(shape.begin(), shape.end(), 0) == shape.end() ? bound : 0;
}

bool path_less(const std::string& a, const std::string& b) {
  std::string_view left = a;
  std::string_view right = b;
  while (!left.empty() && !right.empty()) {
    const std::string_view x = left.substr(0, left.find('/'));
    const std::string_view y = right.substr(0, right.find('/'));
    if (x != y) {
      if (is_number(x) != is_number(y)) return is_number(x);
      if (is_number(x) && x.size() != y.size()) return x.size() < y.size();
      return x < y;
    }
    left.remove_prefix(std::min(x.size() + 1, left.size()));
    right.remove_prefix(std::min(y.size() + 1, right.size()));
  }
  return a.size() < b.size();
}

void sort_leaves(std::vector<ParameterLeaf>& leaves) {
  std::stable_sort(
      leaves.begin(), leaves.end(),
      [](const ParameterLeaf& a, const ParameterLeaf& b) { return path_less(a.name, b.name); });
  const auto twice = std::adjacent_find(
      leaves.begin(), leaves.end(),
      [](const ParameterLeaf& a, const ParameterLeaf& b) { return a.name == b.name; });
  if (twice != leaves.end()) {
    throw InputError(std::next(twice)->place,
                     fmt::format("parameter \"{}\" is given twice", twice->name));
  }
  std::int64_t total = 0;
  for (const ParameterLeaf& leaf : leaves) {
    total += element_count(leaf);
    if (total > most_elements) {
      throw InputError(leaf.place, "more than 2^53 elements with the parameters before it");
    }
  }
}

std::vector<ParameterLeaf> read_parameter_leaves(const JsonReader& parameters, DType dtype,
                                                 const LeafVisitor& visit) {
  LeafReader reader(dtype, visit);
  reader.read(parameters, "");
  return std::move(reader).sorted();
}

ParameterTree read_parameter_tree(const JsonReader& document, const LeafVisitor& visit) {
  document.only_keys({"schema", "shardsim", "model", "source", "framework", "mesh", "parameters"});
  static_cast<void>(document.at("schema").choice({"shardsim/parameter-tree/1"}));
  ParameterTree tree;
  if (const auto model = document.find("model")) tree.model = model->string();
  tree.leaves = read_parameter_leaves(document.at("parameters"), DType::f32, visit);
  return tree;
}

Json parameter_tree_to_json(const ParameterTree& tree) {
  Json parameters = Json::object();
  for (const ParameterLeaf& leaf : tree.leaves) {
    Json json;
    if (leaf.has_shape) {
      json = {{"shape", leaf.shape}, {"dtype", name_of(leaf.dtype)}};
      if (leaf.logical_axes) {
        Json& axes = json["logical_axes"] = Json::array();
        for (const auto& axis : *leaf.logical_axes) axes.push_back(axis ? Json(*axis) : Json());
      }
    }
    append_member(parameters, leaf.name, std::move(json));
  }
  Json document;
  document["schema"] = "shardsim/parameter-tree/1";
  document["shardsim"] = program_version;
  if (!tree.model.empty()) document["model"] = tree.model;
  document["parameters"] = std::move(parameters);
  return document;
}

}  // namespace shardsim
