#include "workloads/step/lora.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "base/pattern.hpp"
#include "workloads/graph/instance_pattern.hpp"

namespace shardsim {
namespace {

struct Target {
  std::string_view word;
  std::string_view together;  // of linear layers that have one A; empty: each its own
  bool (*is)(const Op&);
};

bool is_of_mlp(const Op& op) { return op.module == OpModule::mlp; }

constexpr std::array targets{
    Target{"linear_qkv", "linear_qkv",
           [](const Op& op) { return op.part == OpPart::input_projection; }},
    Target{"linear_proj", "", [](const Op& op) { return op.part == OpPart::out_projection; }},
    Target{"linear_fc1", "linear_fc1",
           [](const Op& op) { return is_of_mlp(op) && op.part == OpPart::first_product; }},
    Target{"linear_fc2", "",
           [](const Op& op) { return is_of_mlp(op) && op.part == OpPart::last_product; }}};

std::vector<std::string> words_of(const std::string& target) {
  if (target == "attention") return {"linear_qkv", "linear_proj"};
  if (target == "mlp") return {"linear_fc1", "linear_fc2"};
  return {target};
}

const Target* find_target(std::string_view word) {
  const auto* found = std::find_if(targets.begin(), targets.end(),
                                   [&](const Target& target) { return target.word == word; });
  return found == targets.end() ? nullptr : found;
}

class Adapters {
 public:
  Adapters(Workload& workload, const Lora& lora, const Place& place)
      : workload_(workload), lora_(lora), place_(place) {
    workload_.labels.push_back({"lora_rank", lora.rank, LabelRole::none});
    rank_ = static_cast<LabelId>(workload_.labels.size()) - 1;
  }

  void run() {
    for (std::size_t i = 0; i < lora_.targets.size(); ++i) add_target(i);
  }

 private:
  void add_target(std::size_t i) {
    const Place place{place_.file, fmt::format("{}/targets/{}", place_.pointer, i)};
    bool found = false;
    for (const std::string& word : words_of(lora_.targets[i])) {
      const Target* target = find_target(word);
      std::optional<Pattern> pattern;
      if (target == nullptr) pattern.emplace(word, place);
      for (std::size_t b = 0; b < workload_.blocks.size(); ++b) {
        const auto is_chosen = [&](const Op& op) {
          if (!is_linear(op)) return false;
          return target != nullptr ? target->is(op) : matches(*pattern, op, b, place);
        };
        found |= add_to_block(b, is_chosen, target == nullptr ? "" : target->together, place);
      }
    }
    if (!found) {
      throw InputError(
          place, fmt::format("no linear layer of {} is \"{}\"", workload_.model, lora_.targets[i]));
    }
  }

  [[nodiscard]] bool is_linear(const Op& op) const {
    return kind_of(op) == OpKind::einsum && op.operands.size() > 1 &&
           workload_.tensors[at(op.operands[1].tensor)].role == TensorRole::parameter &&
           !std::count(adapters_.begin(), adapters_.end(), op.operands[1].tensor);
  }

  [[nodiscard]] bool matches(const Pattern& pattern, const Op& op, std::size_t b,
                             const Place& place) const {
    const std::string& name = workload_.tensors[at(op.operands[1].tensor)].name;
    const std::vector<std::int32_t>& numbers = workload_.blocks[b].numbers;
    return found_in_all(pattern, name, numbers, place);
  }

  // Whether there was one.
  template <class Chosen>
  bool add_to_block(std::size_t b, const Chosen& is_chosen, std::string_view together,
                    const Place& place) {
    std::vector<Op> ops;
    std::map<TensorId, Operand> down;  // A x of an x, where it is shared
    bool found = false;
    for (Op op : std::exchange(workload_.blocks[b].forward, {})) {
      if (!is_chosen(op)) {
        ops.push_back(std::move(op));
        continue;
      }
      if (op.function == Function::grouped_matmul) {
        throw InputError(place, "adapters of experts are not supported by this version");
      }
      found = true;
      block_ = b;
      const TensorId x = op.operands[0].tensor;
      const bool known = !together.empty() && down.contains(x);
      const Operand low = known ? down.at(x) : add_down(op, together, ops);
      if (!together.empty()) down[x] = low;
      add_up(std::move(op), low, ops);
    }
    workload_.blocks[b].forward = std::move(ops);
    return found;
  }

  // Dimensions of a weight whose labels the result has, or has not.
  [[nodiscard]] static std::vector<Dim> weight_dims(const Op& op, bool of_result) {
    std::vector<Dim> dims;
    for (const Dim& dim : op.operands[1].dims) {
      const bool in_result = std::any_of(
          op.results[0].dims.begin(), op.results[0].dims.end(),
          [&](const Dim& d) { return std::count(d.begin(), d.end(), dim.front()) > 0; });
      if (in_result == of_result) dims.push_back(dim);
    }
    return dims;
  }

  Operand add_tensor(Tensor tensor) {
    tensor.block = static_cast<int>(block_);
    std::vector<Dim> dims = tensor.dims;
    workload_.tensors.push_back(std::move(tensor));
    return {static_cast<TensorId>(workload_.tensors.size()) - 1, std::move(dims)};
  }

  Operand add_matrix(const std::string& name, std::vector<Dim> dims, DType dtype) {
    Operand matrix = add_tensor({name, TensorRole::parameter, dtype, std::move(dims)});
    adapters_.push_back(matrix.tensor);
    return matrix;
  }

  Operand emit(Function function, const std::string& name, std::vector<Operand> operands,
               std::vector<Dim> dims, const Op& beside, std::vector<Op>& ops) {
    const DType dtype = workload_.tensors[at(beside.results[0].tensor)].dtype;
    Operand result = add_tensor({name, TensorRole::activation, dtype, std::move(dims)});
    Op op;
    op.function = function;
    op.name = name;
    op.operands = std::move(operands);
    op.results = {result};
    op.module = beside.module;
    ops.push_back(std::move(op));
    return result;
  }

  // A x.
  Operand add_down(const Op& op, std::string_view together, std::vector<Op>& ops) {
    const std::size_t dot = op.name.rfind('.');
    const std::string scope = dot == std::string::npos ? "" : op.name.substr(0, dot + 1);
    const std::string name = together.empty() ? op.name : scope + std::string(together);
    std::vector<Dim> dims = weight_dims(op, /*of_result=*/false);
    std::vector<Dim> low;  // of x, its summed labels gone
    for (const Dim& dim : op.operands[0].dims) {
      const bool summed = std::any_of(dims.begin(), dims.end(), [&](const Dim& d) {
        return std::count(d.begin(), d.end(), dim.front()) > 0;
      });
      if (!summed) low.push_back(dim);
    }
    low.push_back({rank_});
    dims.insert(dims.begin(), {rank_});
    const DType dtype = workload_.tensors[at(op.operands[1].tensor)].dtype;
    const Operand a = add_matrix(name + ".lora_A.weight", std::move(dims), dtype);
    return emit(Function::matmul, name + ".lora_A", {op.operands[0], a}, std::move(low), op, ops);
  }

  // What reads the layer's result reads the sum.
  void add_up(Op op, const Operand& low, std::vector<Op>& ops) {
    const std::string name = op.name;
    std::vector<Dim> dims = weight_dims(op, /*of_result=*/true);
    dims.push_back({rank_});
    const DType dtype = workload_.tensors[at(op.operands[1].tensor)].dtype;
    const Operand b = add_matrix(name + ".lora_B.weight", std::move(dims), dtype);
    const Operand sum = op.results[0];
    Tensor base = workload_.tensors[at(sum.tensor)];
    base.name += ".base";
    base.mark = StreamMark::none;
    op.results[0] = add_tensor(std::move(base));
    const Op layer = op;
    ops.push_back(std::move(op));
    const Operand high = emit(Function::matmul, name + ".lora_B", {low, b}, sum.dims, layer, ops);
    const Operand scaled =
        emit(Function::scale, name + ".lora_scaled", {high}, sum.dims, layer, ops);
    Op add;
    add.function = Function::add;
    add.name = name + ".lora";
    add.operands = {layer.results[0], scaled};
    add.results = {sum};
    add.module = layer.module;
    ops.push_back(std::move(add));
  }

  Workload& workload_;
  const Lora& lora_;
  const Place& place_;
  LabelId rank_ = 0;
  std::size_t block_ = 0;           // that is being written
  std::vector<TensorId> adapters_;  // their weights, which are no targets
};

}  // namespace

void add_adapters(Workload& workload, const Lora& lora, const Place& place) {
  Adapters(workload, lora, place).run();
}

}  // namespace shardsim
