#include "workloads/step/trainable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "base/pattern.hpp"
#include "workloads/graph/split_kinds.hpp"

namespace shardsim {
namespace {

class Freezer {
 public:
  Freezer(Workload& workload, const std::vector<std::string>& expressions, const Place& place)
      : workload_(workload), expressions_(expressions), found_(expressions.size()) {
    for (std::size_t i = 0; i < expressions.size(); ++i) {
      places_.push_back({place.file, fmt::format("{}/{}", place.pointer, i)});
      patterns_.emplace_back(expressions[i], places_.back());
    }
  }

  void run() {
    static_cast<void>(split_kinds(workload_, choices()));
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i]) continue;
      throw InputError(places_[i], fmt::format("pattern \"{}\" matches no parameter of {}",
                                               expressions_[i], workload_.model));
    }
    for (Tensor& tensor : workload_.tensors) {
      if (tensor.role != TensorRole::parameter) continue;
      const std::int32_t number = workload_.blocks[at(tensor.block)].numbers.front();
      tensor.trained = tensor.trained && is_trained(tensor, number);
    }
  }

 private:
  // A number for each place in the order: of layers alike the same.
  std::vector<int> choices() {
    std::vector<std::vector<TensorId>> parameters(workload_.blocks.size());
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& tensor = workload_.tensors[t];
      if (tensor.role != TensorRole::parameter) continue;
      parameters[at(tensor.block)].push_back(static_cast<TensorId>(t));
    }
    std::map<std::pair<std::vector<bool>, bool>, int> known;
    std::vector<int> numbers;
    bool before = false;
    for (const BlockInstance& instance : workload_.order) {
      const Block& block = workload_.blocks[at(instance.block)];
      const std::int32_t number = block.numbers[at(instance.ordinal)];
      std::vector<bool> trained;
      for (const TensorId parameter : parameters[at(instance.block)]) {
        trained.push_back(is_trained(workload_.tensors[at(parameter)], number));
      }
      const auto next = static_cast<int>(known.size());
      numbers.push_back(known.try_emplace({trained, before}, next).first->second);
      before = before || std::count(trained.begin(), trained.end(), true) > 0;
    }
    return numbers;
  }

  bool is_trained(const Tensor& parameter, std::int32_t number) {
    const std::string name = instance_name(parameter.name, number);
    bool any = false;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      const bool found = patterns_[i].search(name);
      if (found) found_[i] = true;
      any = any || found;
    }
    return any && parameter.trained;
  }

  Workload& workload_;
  const std::vector<std::string>& expressions_;
  std::vector<Place> places_;
  std::vector<Pattern> patterns_;
  std::vector<bool> found_;
};

}  // namespace

void train_only(Workload& workload, const std::vector<std::string>& expressions,
                const Place& place) {
  Freezer(workload, expressions, place).run();
}

}  // namespace shardsim
