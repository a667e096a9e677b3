#include "strategies/runtime/overlapped_products.hpp"

#include <algorithm>
#include <vector>

#include "base/index.hpp"

namespace shardsim {
namespace {

// The XLA TPU compiler of libtpu 0.0.51 leaves 2 devices alone (2026-10, 329 programs).
constexpr std::int64_t fewest_windowed = 4;

bool reads(const Item& item, ValueId value) {
  return std::find(item.operands.begin(), item.operands.end(), value) != item.operands.end();
}

bool is_product(const Item& item) {
  return item.kind == TaskKind::kernel && item.kernel.kernel_class == KernelClass::matmul &&
         item.kernel.launches > 0 && item.kernel.product && item.kernel.product->batch == 1;
}

class Overlapping {
 public:
  Overlapping(SpmdStep& step, const AxisRef& axis, bool windowed)
      : step_(step), axis_(axis), pieces_(axis.size), windowed_(windowed) {}

  void run(BlockPass& pass, bool scatters) {
    std::vector<Item> body;
    std::vector<std::size_t> ends;  // in the new body, behind every item of the old one
    for (std::size_t i = 0; i < pass.body.size(); ++i) {
      const Item& item = pass.body[i];
      const Item* const gather = windowed_ ? nullptr : gather_before(pass.body, i);
      const bool is_scattered = (scatters || item.recompute) && may_scatter(pass, i);
      if (gather != nullptr) {
        add_in_pieces(item, *gather, body);
      } else if (is_scattered) {
        add_with_scatter(item, pass.body[i + 1], body);
        ends.push_back(body.size());
        ++i;
      } else {
        body.push_back(item);
      }
      ends.push_back(body.size());
    }
    pass.body = std::move(body);
    for (Write& write : pass.writes) write.after = write.after == 0 ? 0 : ends[write.after - 1];
  }

 private:
  [[nodiscard]] bool is_over_axis(const Item& item, CollectiveKind kind) const {
    return item.kind == TaskKind::collective && item.stream == Stream::activations &&
           item.collective.kind == kind && item.collective.axes == AxisList{axis_};
  }

  [[nodiscard]] bool is_weight(ValueId value) const {
    const BufferCategory category = step_.values[at(value)].category;
    return category == BufferCategory::parameters ||
           category == BufferCategory::gathered_parameters;
  }

  // Of a product with weights that is the first to read what was gathered; else none.
  [[nodiscard]] const Item* gather_before(const std::vector<Item>& body, std::size_t i) const {
    const Item& product = body[i];
    if (!is_product(product) || product.kernel.product->m % pieces_ != 0) return nullptr;
    if (std::none_of(product.operands.begin(), product.operands.end(),
                     [&](ValueId operand) { return is_weight(operand); })) {
      return nullptr;
    }
    for (std::size_t g = 0; g < i; ++g) {
      if (!is_over_axis(body[g], CollectiveKind::all_gather)) continue;
      const ValueId whole = body[g].results.front();
      const auto behind = body.begin() + static_cast<std::ptrdiff_t>(g) + 1;
      const auto until = body.begin() + static_cast<std::ptrdiff_t>(i);
      const bool is_first =
          std::none_of(behind, until, [&](const Item& item) { return reads(item, whole); });
      if (reads(product, whole) && is_first) return &body[g];
    }
    return nullptr;
  }

  // A product whose sums' parts the scatter behind it alone reads, where its pieces are whole.
  [[nodiscard]] bool may_scatter(const BlockPass& pass, std::size_t i) const {
    const Item& product = pass.body[i];
    if (i + 1 >= pass.body.size() || !is_product(product) || product.results.size() != 1) {
      return false;
    }
    const Item& scatter = pass.body[i + 1];
    if (!is_over_axis(scatter, CollectiveKind::reduce_scatter) ||
        scatter.operands != product.results) {
      return false;
    }
    const ValueId made = product.results.front();
    const auto readers = std::count_if(pass.body.begin(), pass.body.end(),
                                       [&](const Item& item) { return reads(item, made); });
    const std::int64_t parts = pieces_ * pieces_ * size_of(scatter.collective.dtype).count();
    return readers == 1 && scatter.collective.parts.size() <= 1 &&
           product.kernel.product->m % pieces_ == 0 &&
           scatter.collective.payload.count() % parts == 0 &&
           step_.values[at(made)].storage == no_value;
  }

  [[nodiscard]] Bytes part(Bytes bytes, std::int64_t pieces) const {
    return Bytes(bytes.count() * pieces / pieces_);
  }

  // So many pieces of a product, along its rows; weights are read whole by every task.
  [[nodiscard]] Item pieces_of(const Item& product, std::int64_t count) const {
    Item piece = product;
    Kernel& kernel = piece.kernel;
    kernel.flops =
        Flops(kernel.flops.count() * static_cast<double>(count) / static_cast<double>(pieces_));
    Bytes weights{0};
    for (const ValueId operand : product.operands) {
      if (is_weight(operand)) weights += step_.values[at(operand)].bytes;
    }
    weights = std::min(weights, kernel.bytes);
    kernel.bytes = weights + part(kernel.bytes - weights, count);
    kernel.product->m = kernel.product->m * count / pieces_;
    return piece;
  }

  // Of a scatter of one tensor.
  [[nodiscard]] Item pieces_of_scatter(const Item& product, const Item& scatter,
                                       std::int64_t count) const {
    Item piece = scatter;
    piece.collective.payload = part(scatter.collective.payload, count);
    for (CollectivePart& one : piece.collective.parts) one.payload = piece.collective.payload;
    if (windowed_) piece.collective.contracted = product.kernel.product->k * pieces_;
    return piece;
  }

  ValueId add_value(const Value& value) {
    step_.values.push_back(value);
    return static_cast<ValueId>(step_.values.size()) - 1;
  }

  // The same memory, written once more.
  ValueId add_view(ValueId of) {
    Value view = step_.values[at(of)];
    if (view.storage == no_value) view.storage = of;
    return add_value(view);
  }

  void add_in_pieces(const Item& product, const Item& gather, std::vector<Item>& body) {
    Item last = pieces_of(product, 1);
    Item first = pieces_of(product, pieces_ - 1);
    std::replace(first.operands.begin(), first.operands.end(), gather.results.front(),
                 gather.operands.front());
    for (ValueId& result : last.results) result = add_view(result);
    body.push_back(std::move(first));
    body.push_back(std::move(last));
  }

  void add_with_scatter(const Item& product, const Item& scatter, std::vector<Item>& body) {
    const ValueId made = product.results.front();
    Value& rest = step_.values[at(made)];
    Value early = rest;
    early.bytes = part(rest.bytes, 1);
    rest.bytes = rest.bytes - early.bytes;
    Item first = pieces_of(product, 1);
    first.results = {add_value(early)};
    Item beside = pieces_of_scatter(product, scatter, pieces_ - 1);
    beside.operands = first.results;
    Item behind = pieces_of_scatter(product, scatter, 1);
    behind.results = {add_view(scatter.results.front())};
    body.push_back(std::move(first));
    body.push_back(std::move(beside));
    body.push_back(pieces_of(product, pieces_ - 1));
    body.push_back(std::move(behind));
  }

  SpmdStep& step_;
  const AxisRef& axis_;
  std::int64_t pieces_;
  bool windowed_;
};

// What is summed in backward is issued as products are, and the one behind waits for it.
void run_in_turn(SpmdStep& step, const AxisRef& axis) {
  for (BlockProgram& block : step.blocks) {
    for (Item& item : block.backward.body) {
      if (item.kind == TaskKind::collective && item.collective.axes == AxisList{axis}) {
        item.stream = Stream::compute;
      }
    }
  }
}

}  // namespace

void overlap_products(SpmdStep& step, const AxisRef& axis, ProductOverlap overlap) {
  if (overlap == ProductOverlap::in_turn) return run_in_turn(step, axis);
  const bool windowed = overlap == ProductOverlap::windowed;
  if (overlap == ProductOverlap::none || axis.size < (windowed ? fewest_windowed : 2)) return;
  Overlapping overlapping(step, axis, windowed);
  for (BlockProgram& block : step.blocks) {
    overlapping.run(block.forward, /*scatters=*/true);
    overlapping.run(block.backward, windowed || overlap == ProductOverlap::asynchronous);
  }
}

}  // namespace shardsim
