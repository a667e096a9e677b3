#include "strategies/layout/layout_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"

namespace shardsim {
namespace {

constexpr int last_zero_stage = 2;

const std::vector<std::string> input_gradient_words = {"together", "apart", "late"};

// "model.layers.{0-31}.mlp.up_proj.weight"
std::string numbered_name(const Workload& workload, TensorId id) {
  const Tensor& tensor = workload.tensors[static_cast<std::size_t>(id)];
  const std::vector<std::int32_t>& numbers =
      workload.blocks[static_cast<std::size_t>(tensor.block)].numbers;
  std::string name = tensor.name;
  const std::size_t at = name.find("{}");
  if (at != std::string::npos) {
    name.insert(at + 1, number_ranges({numbers.begin(), numbers.end()}));
  }
  return name;
}

Json dim_to_json(const DimSharding& dim, const Mesh& mesh) {
  const std::vector<std::string> axes = mesh.names_of(dim.axes);
  if (dim.blocks > 1) return {{"axes", axes}, {"blocks", dim.blocks}};
  if (axes.empty()) return nullptr;
  return axes.size() == 1 ? Json(axes.front()) : Json(axes);
}

Json sharding_to_json(const Sharding& sharding, const Mesh& mesh) {
  Json dims = Json::array();
  for (const DimSharding& dim : sharding.dims) dims.push_back(dim_to_json(dim, mesh));
  return dims;
}

Json shardings_to_json(const std::map<TensorId, Sharding>& shardings, const Workload& workload,
                       const Mesh& mesh) {
  Json json = Json::object();
  for (const auto& [id, sharding] : shardings) {
    json[numbered_name(workload, id)] = sharding_to_json(sharding, mesh);
  }
  return json;
}

class LayoutReader {
 public:
  LayoutReader(const Workload& workload, const Mesh& mesh) : workload_(workload), mesh_(mesh) {
    for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
      const Tensor& tensor = workload.tensors[t];
      const auto id = static_cast<TensorId>(t);
      if (tensor.primal != no_tensor) continue;
      const std::string name = numbered_name(workload, id);
      (tensor.role == TensorRole::parameter ? parameters_ : values_)[name] = id;
      if (tensor.role != TensorRole::parameter) alike_.emplace(name, id);
    }
  }

  Layout read(const JsonReader& json) {
    json.only_keys({"parameters", "pinned", "entering", "leaving", "data_axes", "sequence_axes",
                    "model_axes", "sequence_parallel", "input_gradients", "zero_stage",
                    "warnings"});
    if (const auto list = json.find("data_axes")) layout_.data_axes = axes(*list);
    if (const auto list = json.find("sequence_axes")) layout_.sequence_axes = axes(*list);
    if (const auto list = json.find("model_axes")) layout_.model_axes = axes(*list);
    if (const auto flag = json.find("sequence_parallel"))
      layout_.sequence_parallel = flag->boolean();
    if (const auto how = json.find("input_gradients")) {
      const auto word = std::find(input_gradient_words.begin(), input_gradient_words.end(),
                                  how->choice(input_gradient_words));
      layout_.input_gradients = static_cast<InputGradients>(word - input_gradient_words.begin());
    }
    if (const auto stage = json.find("zero_stage"))
      layout_.zero_stage = static_cast<int>(stage->integer(0, last_zero_stage));
    if (const auto warnings = json.find("warnings")) {
      for (const JsonReader& one : warnings->elements()) layout_.warnings.push_back(one.string());
    }
    if (const auto pins = json.find("pinned")) layout_.pinned = shardings(*pins);
    if (const auto pins = json.find("entering")) layout_.entering = shardings(*pins);
    if (const auto pins = json.find("leaving")) layout_.leaving = shardings(*pins);
    read_parameters(json.at("parameters"));
    return std::move(layout_);
  }

 private:
  void read_parameters(const JsonReader& json) {
    std::map<TensorId, JsonReader> given;
    for (const auto& [name, one] : json.members())
      given.try_emplace(tensor(parameters_, name, one), one);
    for (const ParameterView& view : parameters(workload_)) {
      const auto found = given.find(view.tensor);
      if (found == given.end()) {
        json.fail(
            fmt::format("parameter \"{}\" is left out", numbered_name(workload_, view.tensor)));
      }
      layout_.parameters.push_back(parameter(view, found->second));
    }
  }

  [[nodiscard]] ParameterLayout parameter(const ParameterView& view, const JsonReader& json) const {
    json.only_keys({"stored", "compute", "look_up", "gradient", "optimizer", "by"});
    ParameterLayout a;
    a.tensor = view.tensor;
    a.shape = view.shape;
    a.numbers = view.numbers;
    const auto read = [&](const char* key, const Sharding& otherwise) {
      const auto found = json.find(key);
      return found ? sharding(view.tensor, *found) : otherwise;
    };
    a.stored = sharding(view.tensor, json.at("stored"));
    a.compute = read("compute", without(a.stored, layout_.data_axes));
    a.look_up = read("look_up", a.compute);
    a.gradient = read("gradient", a.stored);
    a.optimizer = read("optimizer", a.gradient);
    const auto by = json.find("by");
    a.assigned_by = by ? by->string() : "layout";
    return a;
  }

  [[nodiscard]] std::map<TensorId, Sharding> shardings(const JsonReader& json) const {
    std::map<TensorId, Sharding> result;
    for (const auto& [name, one] : json.members()) {
      (void)tensor(values_, name, one);
      const auto [first, last] = alike_.equal_range(name);
      for (auto known = first; known != last; ++known) {
        result[known->second] = sharding(known->second, one);
      }
    }
    return result;
  }

  using ByName = std::map<std::string, TensorId>;

  // A parameter may have the name of what an op makes of it.
  [[nodiscard]] TensorId tensor(const ByName& tensors, const std::string& name,
                                const JsonReader& json) const {
    const auto found = tensors.find(name);
    if (found != tensors.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [one, id] : tensors) known.push_back(one);
    json.fail(fmt::format("{} has no {} \"{}\"", workload_.model,
                          &tensors == &parameters_ ? "parameter" : "input or activation", name),
              closest(name, known));
  }

  [[nodiscard]] Sharding sharding(TensorId id, const JsonReader& json) const {
    const std::vector<std::int64_t> shape =
        workload_.shape(workload_.tensors[static_cast<std::size_t>(id)].dims);
    const std::size_t rank = shape.size();
    const std::vector<JsonReader> dims = json.elements();
    if (dims.size() != rank) {
      json.fail(fmt::format("{} has {} dimensions, not {}", numbered_name(workload_, id), rank,
                            dims.size()));
    }
    Sharding sharding;
    AxisList used;
    for (const JsonReader& dim : dims) {
      DimSharding& split = sharding.dims.emplace_back();
      if (dim.is_object()) {
        dim.only_keys({"axes", "blocks"});
        split.axes = axes(dim.at("axes"));
        const std::int64_t size = shape[sharding.dims.size() - 1];
        split.blocks = dim.at("blocks").integer(1, size);
        if (size % split.blocks != 0) {
          dim.at("blocks").fail(
              fmt::format("a dimension of {} is not made of {} equal parts", size, split.blocks));
        }
      } else if (!dim.is_null()) {
        split.axes = dim.is_array() ? axes(dim) : AxisList{axis(dim)};
      }
      for (const AxisRef& one : split.axes) {
        if (overlaps_any(one, used)) dim.fail("an axis is used twice");
        used.push_back(one);
      }
    }
    return sharding;
  }

  [[nodiscard]] AxisList axes(const JsonReader& json) const {
    AxisList list;
    for (const JsonReader& one : json.elements()) list.push_back(axis(one));
    return list;
  }

  [[nodiscard]] AxisRef axis(const JsonReader& json) const {
    const std::string name = json.string();
    const auto found = mesh_.parse(name);
    if (found) return *found;
    std::vector<std::string> known;
    for (const MeshAxis& one : mesh_.axes()) known.push_back(one.name);
    json.fail(fmt::format("the mesh has no axis \"{}\"", name), closest(name, known));
  }

  const Workload& workload_;
  const Mesh& mesh_;
  ByName parameters_;
  ByName values_;
  std::multimap<std::string, TensorId> alike_;  // tables of rotary positions of several kinds
  Layout layout_;
};

}  // namespace

Json layout_to_json(const Layout& layout, const Workload& workload, const Mesh& mesh) {
  Json parameters = Json::object();
  for (const ParameterLayout& a : layout.parameters) {
    parameters[numbered_name(workload, a.tensor)] = {
        {"stored", sharding_to_json(a.stored, mesh)},
        {"compute", sharding_to_json(a.compute, mesh)},
        {"look_up", sharding_to_json(a.look_up, mesh)},
        {"gradient", sharding_to_json(a.gradient, mesh)},
        {"optimizer", sharding_to_json(a.optimizer, mesh)},
        {"by", a.assigned_by}};
  }
  return {
      {"parameters", std::move(parameters)},
      {"pinned", shardings_to_json(layout.pinned, workload, mesh)},
      {"entering", shardings_to_json(layout.entering, workload, mesh)},
      {"leaving", shardings_to_json(layout.leaving, workload, mesh)},
      {"data_axes", mesh.names_of(layout.data_axes)},
      {"sequence_axes", mesh.names_of(layout.sequence_axes)},
      {"model_axes", mesh.names_of(layout.model_axes)},
      {"sequence_parallel", layout.sequence_parallel},
      {"input_gradients", input_gradient_words[static_cast<std::size_t>(layout.input_gradients)]},
      {"zero_stage", layout.zero_stage},
      {"warnings", layout.warnings}};
}

Layout read_layout(const JsonReader& json, const Workload& workload, const Mesh& mesh) {
  return LayoutReader(workload, mesh).read(json);
}

}  // namespace shardsim
