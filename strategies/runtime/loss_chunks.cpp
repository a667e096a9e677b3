#include "strategies/runtime/loss_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "strategies/key_place.hpp"

namespace shardsim {
namespace {

// Does it make something over the vocabulary by a product?
auto is_head(const Workload& workload) {
  return [&workload](const Op& op) {
    if (kind_of(op) != OpKind::einsum) return false;
    const std::vector<Dim>& dims = op.results.front().dims;
    return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) {
      return workload.labels[at(dim.front())].role == LabelRole::vocab;
    });
  };
}

// The last such product, where there is one.
const Op& head_of(const Workload& workload) {
  const std::vector<Op>& ops = workload.blocks.back().forward;
  return *std::find_if(ops.rbegin(), ops.rend(), is_head(workload));
}

TensorId weight_of(const Op& head) { return head.operands.at(1).tensor; }

class Chunks {
 public:
  Chunks(SpmdBuilder& builder, std::int64_t chunks, DType reduced)
      : builder_(builder),
        chunks_(chunks),
        reduced_(reduced),
        head_(weight_of(head_of(builder.workload()))),
        weight_(builder.step.parameters.at(head_).computed),
        forward_(builder.step.blocks.back().forward),
        backward_(builder.step.blocks.back().backward) {}

  ChunkedLoss run() {
    if (is_tied()) add_up_apart();
    take_forward();
    take_backward();
    cut_values();
    const std::size_t begins = forward_.body.size();
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) add_chunk(chunk);
    forward_.inner = BlockPass::Inner{.gathers = forward_.gathers.size(),
                                      .held = forward_.held.size(),
                                      .needed = begins,
                                      .opens = begins,
                                      .closes = forward_.body.size()};
    for (Write& write : forward_.writes) write.after = forward_.body.size();
    builder_.step.blocks.back().loss_in_chunks = true;
    return {builder_.step.blocks.size() - 1, head_};
  }

 private:
  [[nodiscard]] static bool reads(const Item& item, ValueId value) {
    return std::count(item.operands.begin(), item.operands.end(), value) > 0;
  }

  [[nodiscard]] std::size_t block_of_weight() const { return at(builder_.tensor(head_).block); }

  [[nodiscard]] bool is_tied() const {
    return block_of_weight() + 1 != builder_.step.blocks.size();
  }

  // Of a tied table: what the head makes of its gradient is none of what the look-ups make, to
  // which it was added.
  void add_up_apart() {
    BlockPass& first = builder_.step.blocks[block_of_weight()].backward;
    const auto write = std::find_if(first.writes.begin(), first.writes.end(),
                                    [&](const Write& one) { return one.parameter == head_; });
    const auto sum = std::find_if(first.body.begin(), first.body.end(), [&](const Item& item) {
      return item.results.front() == write->gradient;
    });
    assert(write != first.writes.end() && sum != first.body.end() && sum->operands.size() == 2);
    const bool head_is_first = is_made_by(sum->operands[0], backward_);
    const ValueId of_head = sum->operands[head_is_first ? 0 : 1];
    assert(is_made_by(of_head, backward_));
    write->gradient = sum->operands[head_is_first ? 1 : 0];
    const auto place = static_cast<std::size_t>(sum - first.body.begin());
    first.body.erase(sum);
    for (Write& one : first.writes) one.after -= one.after > place ? 1 : 0;
    backward_.writes.push_back({head_, of_head, backward_.body.size()});
  }

  [[nodiscard]] static bool is_made_by(ValueId value, const BlockPass& pass) {
    return std::any_of(pass.body.begin(), pass.body.end(), [&](const Item& item) {
      return std::count(item.results.begin(), item.results.end(), value) > 0;
    });
  }

  void take_forward() {
    const auto begin = std::find_if(forward_.body.begin(), forward_.body.end(),
                                    [&](const Item& item) { return reads(item, weight_); });
    items_.assign(std::make_move_iterator(begin), std::make_move_iterator(forward_.body.end()));
    forward_.body.erase(begin, forward_.body.end());
  }

  // Up to the gradients of the head and of what it reads, but for what is done with the latter.
  void take_backward() {
    const std::set<ValueId> gradients = gradients_of_head();
    std::size_t until = 0;
    for (std::size_t i = 0; i < backward_.body.size(); ++i) {
      const Item& item = backward_.body[i];
      const bool goes_back = reads(item, weight_);
      if (goes_back) input_gradient_ = item.results.front();
      if (goes_back || gradients.contains(item.results.front())) until = i + 1;
    }
    std::vector<Item> left;
    std::vector<std::size_t> left_before = {0};
    for (std::size_t i = 0; i < backward_.body.size(); ++i) {
      Item& item = backward_.body[i];
      const bool is_left =
          i >= until || (input_gradient_ != no_value && reads(item, input_gradient_));
      (is_left ? left : items_).push_back(std::move(item));
      left_before.push_back(left.size());
    }
    backward_.body = std::move(left);
    const auto moves = [&](const Write& write) { return gradients.contains(write.gradient); };
    for (Write& write : backward_.writes) {
      write.after = left_before[write.after];
      if (moves(write)) forward_.writes.push_back(write);
    }
    std::erase_if(backward_.writes, moves);
  }

  // Of all parameters that the items read.
  [[nodiscard]] std::set<ValueId> gradients_of_head() const {
    std::set<ValueId> gradients;
    for (const Write& write : backward_.writes) {
      const ValueId parameter = builder_.step.parameters.at(write.parameter).computed;
      const bool is_read = std::any_of(items_.begin(), items_.end(),
                                       [&](const Item& item) { return reads(item, parameter); });
      if (is_read) gradients.insert(write.gradient);
    }
    return gradients;
  }

  // What a chunk reads and makes, but for parameters, scalars and what is added up, is a part of
  // what all do.
  void cut_values() {
    std::set<ValueId> whole;
    for (const Write& write : forward_.writes) whole.insert(write.gradient);
    for (const Item& item : items_) {
      for (const std::vector<ValueId>* values : {&item.operands, &item.results}) {
        for (const ValueId id : *values) {
          const Value& value = builder_.value(id);
          const bool is_parameter = builder_.tensor(value.tensor).role == TensorRole::parameter;
          const bool is_scalar = value.bytes <= size_of(value.dtype);
          if (!is_parameter && !is_scalar && !whole.contains(id)) of_tokens_.insert(id);
        }
      }
    }
    for (Item& item : items_) cut(item);
    for (const ValueId made : of_tokens_) {
      const bool is_of_chunk = made != input_gradient_ && is_made(made);
      if (is_of_chunk) builder_.value(made).bytes = cut(builder_.value(made).bytes);
    }
  }

  [[nodiscard]] bool is_made(ValueId value) const {
    return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
      return std::count(item.results.begin(), item.results.end(), value) > 0;
    });
  }

  [[nodiscard]] Bytes cut(Bytes bytes) const { return Bytes(ceil_div(bytes.count(), chunks_)); }

  void cut(Item& item) const {
    if (item.kind == TaskKind::collective) {
      item.collective.payload = cut(item.collective.payload);
      for (CollectivePart& part : item.collective.parts) part.payload = cut(part.payload);
      return;
    }
    Bytes all{0}, of_chunk{0};
    for (const std::vector<ValueId>* values : {&item.operands, &item.results}) {
      for (const ValueId id : *values) {
        const Bytes bytes = builder_.value(id).bytes;
        all += bytes;
        of_chunk += of_tokens_.contains(id) ? cut(bytes) : bytes;
      }
    }
    Kernel& kernel = item.kernel;
    const double part = static_cast<double>(of_chunk.count()) / static_cast<double>(all.count());
    kernel.bytes =
        Bytes(static_cast<std::int64_t>(static_cast<double>(kernel.bytes.count()) * part));
    kernel.flops = Flops(kernel.flops.count() / static_cast<double>(chunks_));
    if (!kernel.product) return;
    // The product of a parameter's gradient sums over tokens.
    const bool sums = !of_tokens_.contains(item.results.front());
    std::int64_t& tokens = sums ? kernel.product->k : kernel.product->m;
    tokens = ceil_div(tokens, chunks_);
  }

  void add_chunk(std::int64_t chunk) {
    for (Item item : items_) {
      for (ValueId& result : item.results) {
        if (chunk > 0 && result == input_gradient_) {
          result = builder_.add_view(result, builder_.value(result).sharding);
        }
      }
      forward_.body.push_back(std::move(item));
      for (Write& write : forward_.writes) {
        const std::vector<ValueId>& made = forward_.body.back().results;
        const auto sum = sums_.find(write.parameter);
        const ValueId gradient = sum != sums_.end() ? sum->second.made : write.gradient;
        if (std::count(made.begin(), made.end(), gradient) > 0) add_up(write, gradient);
      }
    }
  }

  // What the chunk has made of a parameter's gradient.
  void add_up(Write& write, ValueId made) {
    const Value added = builder_.value(made);
    Item item;
    item.name = fmt::format("{} gradient accumulation", builder_.tensor(write.parameter).name);
    item.operands = {made};
    item.kernel.op = "cast";
    item.kernel.dtype = reduced_;
    const auto sum = sums_.find(write.parameter);
    if (sum == sums_.end()) {
      write.gradient =
          builder_.add_value(added.tensor, added.sharding, reduced_, BufferCategory::gradients);
      sums_[write.parameter] = {made, write.gradient};
      item.results = {write.gradient};
      item.kernel.bytes = added.bytes + builder_.value(write.gradient).bytes;
    } else {
      const Bytes bytes = builder_.value(write.gradient).bytes;
      item.operands.push_back(write.gradient);
      item.results = {builder_.add_view(write.gradient, added.sharding)};
      if (added.dtype != reduced_) {
        // Autograd casts what it adds to the type of the sum (engine.cpp, validate_outputs).
        item.results.push_back(builder_.add_value(added.tensor, added.sharding, reduced_,
                                                  BufferCategory::temporaries));
      }
      item.kernel.op = "add";
      item.kernel.bytes = added.bytes + 2 * bytes;
      const std::int64_t elements = bytes.count() / size_of(reduced_).count();
      item.kernel.flops = Flops(static_cast<double>(elements));
    }
    forward_.body.push_back(std::move(item));
  }

  struct Sum {
    ValueId made = no_value;  // by each chunk
    ValueId all = no_value;
  };

  SpmdBuilder& builder_;
  std::int64_t chunks_;
  DType reduced_;
  TensorId head_;
  ValueId weight_;
  BlockPass& forward_;
  BlockPass& backward_;
  std::vector<Item> items_;      // of one chunk
  std::set<ValueId> of_tokens_;  // values of which a chunk has its part
  ValueId input_gradient_ = no_value;
  std::map<TensorId, Sum> sums_;
};

}  // namespace

void check_loss_chunks(const Workload& workload, const Layout& layout, const Strategy& strategy) {
  const std::int64_t chunks = strategy.runtime.loss_chunks;
  if (chunks == 1 || !has_backward(workload)) return;
  const auto fail = [&](const std::string& message) {
    throw InputError(place_of_key(strategy.place, "loss_chunks"), message);
  };
  if (strategy.pipeline || strategy.shifting)
    fail("beside a pipeline is not supported by this version");
  if (strategy.runtime.reductions.grain != Grain::unit) {
    fail("needs gradients that are reduced by units: no \"gradient_buffer\", \"gather\": \"unit\"");
  }
  if (!workload.further_losses.empty()) fail("of several losses is not supported by this version");
  const auto last = static_cast<std::int32_t>(workload.blocks.size()) - 1;
  const std::vector<Op>& ops = workload.blocks.back().forward;
  if (std::none_of(ops.begin(), ops.end(), is_head(workload))) {
    fail(fmt::format("{} has no head that makes logits of a vocabulary", workload.model));
  }
  const bool is_tied = workload.tensors[at(weight_of(head_of(workload)))].block != last;
  const bool adds_late = strategy.runtime.reductions.each_microbatch != ReduceEachMicrobatch::all;
  if (is_tied && adds_late) {
    fail("of a tied head needs \"reduce_each_microbatch\": \"all\"");
  }
  for (const Label& label : workload.labels) {
    if (label.role != LabelRole::sequence) continue;
    const std::int64_t tokens = ceil_div(label.size, Mesh::size_of(layout.sequence_axes));
    if (tokens % chunks != 0) {
      fail(fmt::format("{} tokens of a device do not divide into {} chunks", tokens, chunks));
    }
  }
}

ChunkedLoss chunk_loss(SpmdBuilder& builder, std::int64_t chunks, DType reduced) {
  return Chunks(builder, chunks, reduced).run();
}

}  // namespace shardsim
