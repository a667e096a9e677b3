#include "strategies/compile/weighed_rows.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Bytes of an element of the rows that further kernels move: forward the product in fp32 is
// written, read and narrowed (4 + 4 + 2); backward the gradient is widened (2 + 4), multiplied by
// scores (4 + 4) and narrowed (4 + 2), multiplied by rows (4 + 4 + 4) and added up (4), of which 6
// are there already.
constexpr std::int64_t moved_forward = 10;
constexpr std::int64_t moved_backward = 30;

class Rows {
 public:
  Rows(const Workload& workload, SpmdStep& step, bool casts_again)
      : workload_(workload), step_(step), casts_again_(casts_again) {}

  void weigh(BlockPass& pass) {
    std::vector<Item> made = std::move(pass.body);
    std::vector<std::size_t> places;
    pass.body.clear();
    for (Item& item : made) {
      places.push_back(pass.body.size());
      if (item.kernel.op == "combine") {
        weigh_forward(item, pass.body);
      } else if (item.kernel.op == "combine_backward") {
        weigh_backward(item, pass.body);
      }
      pass.body.push_back(std::move(item));
    }
    places.push_back(pass.body.size());
    for (Write& write : pass.writes) write.after = places[write.after];
  }

 private:
  // The largest of what it reads that is no gradient.
  [[nodiscard]] ValueId rows_of(const Item& combine) const {
    std::vector<ValueId> made;
    for (const ValueId operand : combine.operands) {
      const TensorId tensor = step_.values[at(operand)].tensor;
      if (workload_.tensors[at(tensor)].role == TensorRole::activation) made.push_back(operand);
    }
    return largest(made);
  }

  [[nodiscard]] ValueId largest(const std::vector<ValueId>& values) const {
    return *std::max_element(values.begin(), values.end(), [&](ValueId a, ValueId b) {
      return step_.values[at(a)].bytes < step_.values[at(b)].bytes;
    });
  }

  [[nodiscard]] std::int64_t elements(ValueId rows) const {
    const Value& value = step_.values[at(rows)];
    return value.bytes.count() / size_of(value.dtype).count();
  }

  // Nothing but this kernel's own parts reads it.
  ValueId passing(ValueId rows) {
    const ValueId wide = in_fp32(rows, BufferCategory::temporaries);
    step_.values[at(wide)].tensor = no_tensor;
    return wide;
  }

  ValueId in_fp32(ValueId rows, BufferCategory category) {
    Value wide = step_.values[at(rows)];
    wide.name += ".fp32";
    wide.storage = no_value;
    wide.dtype = DType::f32;
    wide.bytes = elements(rows) * size_of(DType::f32);
    wide.category = category;
    step_.values.push_back(std::move(wide));
    return static_cast<ValueId>(step_.values.size()) - 1;
  }

  // The kernel before; what is kept is what it has made.
  void weigh_forward(Item& combine, std::vector<Item>& body) {
    const ValueId rows = rows_of(combine);
    if (step_.values[at(rows)].dtype == DType::f32) return;
    const bool keeps_rows =
        casts_again_ && step_.values[at(rows)].category == BufferCategory::activations;
    const ValueId wide =
        in_fp32(rows, keeps_rows ? BufferCategory::temporaries : step_.values[at(rows)].category);
    if (!keeps_rows) {
      step_.values[at(rows)].category = BufferCategory::temporaries;
      wide_[rows] = wide;
    }
    std::replace(combine.operands.begin(), combine.operands.end(), rows, wide);
    combine.results.push_back(passing(rows));
    combine.kernel.bytes += Bytes(moved_forward * elements(rows));
    combine.kernel.launches += 2;
    body.push_back(cast_of(combine, rows, wide, combine.recompute));
  }

  [[nodiscard]] Item cast_of(const Item& combine, ValueId rows, ValueId wide, bool again) const {
    Item cast;
    cast.name = combine.name;
    cast.recompute = again;
    cast.operands = {rows};
    cast.results = {wide};
    cast.kernel = Kernel{"cast", KernelClass::memory, DType::f32, Flops(0),
                         step_.values[at(rows)].bytes + step_.values[at(wide)].bytes};
    return cast;
  }

  void weigh_backward(Item& combine, std::vector<Item>& body) {
    const ValueId rows = rows_of(combine);
    if (step_.values[at(rows)].dtype == DType::f32) return;
    if (!wide_.contains(rows)) {
      wide_[rows] = in_fp32(rows, BufferCategory::temporaries);
      body.push_back(cast_of(combine, rows, wide_[rows], /*again=*/true));
    }
    std::replace(combine.operands.begin(), combine.operands.end(), rows, wide_[rows]);
    const ValueId gradient = largest(combine.results);
    for (int i = 0; i < 2; ++i) combine.results.push_back(passing(gradient));
    combine.kernel.bytes += Bytes(moved_backward * elements(gradient));
    combine.kernel.launches += 4;
  }

  const Workload& workload_;
  SpmdStep& step_;
  bool casts_again_;
  std::map<ValueId, ValueId> wide_;  // by rows as they have come
};

}  // namespace

void weigh_rows_in_fp32(const Workload& workload, SpmdStep& step, bool casts_again) {
  Rows rows(workload, step, casts_again);
  for (BlockProgram& block : step.blocks) rows.weigh(block.forward);
  for (auto block = step.blocks.rbegin(); block != step.blocks.rend(); ++block) {
    rows.weigh(block->backward);
  }
}

}  // namespace shardsim
