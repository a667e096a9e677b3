// Makes values and items of an SpmdStep; shared by the partitioner and the runtime's calls.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sharding/reshard.hpp"
#include "strategies/partition/spmd.hpp"

namespace shardsim {

// `from`, in the order of axes in which those that stay in `to` come first: then a gather over
// those that leave is enough.
[[nodiscard]] Sharding with_axes_that_stay_first(const Sharding& from, const Sharding& to);

class SpmdBuilder {
 public:
  SpmdBuilder(const Workload& workload, const Mesh& mesh, SpmdStep started = {})
      : step(std::move(started)), workload_(workload), mesh_(mesh) {}

  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const {
    return workload_.tensors[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Value& value(ValueId id) const {
    return step.values[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Value& value(ValueId id) { return step.values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::vector<std::int64_t> shape(TensorId id) const {
    return workload_.shape(tensor(id).dims);
  }

  // A new value of `id` under `sharding`, its bytes filled in.
  ValueId add_value(TensorId id, const Sharding& sharding, DType dtype, BufferCategory category);
  // The same memory seen under a finer sharding.
  ValueId add_view(ValueId of, const Sharding& sharding);

  // Brings a value to another sharding, adding items; answers the value that has it.
  ValueId bring(ValueId from, const Sharding& to, Stream stream, const Reason& reason,
                std::vector<Item>& items);
  // One step of a reshard, taken by many values together: items with the same kind and axes become
  // one call of that name, where `joins` of both tensors says so (nothing: all do). Answers the
  // values that have arrived, in order.
  using Joins = std::function<bool(TensorId, TensorId)>;
  [[nodiscard]] std::vector<ValueId> bring_together(const std::vector<ValueId>& from,
                                                    const std::vector<Sharding>& to, Stream stream,
                                                    std::string_view name, const Reason& reason,
                                                    std::vector<Item>& items,
                                                    const Joins& joins = {});
  // The same shards on other devices, where `to` has the axes of each dimension in another order:
  // one permute.
  ValueId permute(ValueId from, const Sharding& to, Stream stream, Reason reason,
                  std::vector<Item>& items);

  // A kernel that converts element types; memory bound.
  [[nodiscard]] Item cast(std::string name, const std::vector<ValueId>& from,
                          const std::vector<ValueId>& to, Stream stream) const;

  // A kernel that copies values, whole, within what they already have; memory bound.
  [[nodiscard]] Item copy(std::string name, const std::vector<ValueId>& values,
                          Stream stream) const;

  // A kernel that copies of each value the part that its target holds; memory bound.
  [[nodiscard]] Item slice(std::string name, const std::vector<ValueId>& from,
                           const std::vector<ValueId>& to, Stream stream) const;

  // Of an item of `block`, whose operands and results may be of layers elsewhere: these stand for
  // all instances of their layers, and their sizes count so often.
  void count_instances(Item& item, std::size_t block) const;
  // What a gather has brought, and what is scattered, lies there with its padding.
  void hold_padding(const Item& item);

  // "fsdp", "data and model".
  [[nodiscard]] std::string names(const AxisList& axes) const;

  SpmdStep step;

 private:
  [[nodiscard]] Bytes bytes_of(const std::vector<ValueId>& values) const;
  // A kernel without arithmetic; `bytes` are read and written.
  [[nodiscard]] Item moved(std::string op, std::string name, const std::vector<ValueId>& from,
                           const std::vector<ValueId>& to, Stream stream, Bytes bytes) const;

  const Workload& workload_;
  const Mesh& mesh_;
};

}  // namespace shardsim
