#include "strategies/partition/ring_attention.hpp"

#include <algorithm>
#include <string>

#include "base/index.hpp"

namespace shardsim {
namespace {

class Ring {
 public:
  Ring(SpmdBuilder& builder, const RingAttention& ring, BlockPass& pass)
      : builder_(builder),
        ring_(ring),
        pass_(pass),
        parts_(Mesh::size_of(ring.axes)),
        is_forward_(ring.op.function == Function::attention) {}

  std::vector<ValueId> run() {
    const bool gathers = ring_.context.rotation == Rotation::gather;
    const bool widens = ring_.context.wide_gradients;
    std::vector<ValueId> part = ring_.keys;
    ValueId gradients = no_value;
    for (std::int64_t i = 0; i < parts_; ++i) {
      const std::vector<ValueId> now = part;
      if (gathers && i == 0) part = {gather(now)};
      if (!gathers && i + 1 < parts_) part = {pass_on(now, keys_and_values)};
      compute(now, i);
      if (is_forward_) {
        if (i > 0) merge();
        continue;
      }
      std::vector<ValueId> sum = gradients == no_value ? made_of_keys() : std::vector{gradients};
      if (widens) sum = {add_up(gradients)};
      gradients = pass_on(sum, "gradients of " + std::string(keys_and_values));
    }
    if (!is_forward_) come_home(gradients);
    std::vector<ValueId> read = ring_.results;
    if (is_forward_ && widens && ring_.context.balanced) read.front() = by_tokens(read.front());
    return read;
  }

 private:
  static constexpr const char* keys_and_values = "keys and values";

  [[nodiscard]] Bytes bytes_of(const std::vector<ValueId>& values) const {
    Bytes bytes{0};
    for (const ValueId id : values) bytes += builder_.value(id).bytes;
    return bytes;
  }

  [[nodiscard]] std::vector<ValueId> made_of_keys() const {
    return {ring_.results.end() - static_cast<std::ptrdiff_t>(ring_.keys.size()),
            ring_.results.end()};
  }

  // A value as these have it, of so many bytes.
  ValueId add(const std::vector<ValueId>& like, DType dtype, Bytes bytes, const std::string& what,
              BufferCategory category) {
    const Value one = builder_.value(like.front());
    const ValueId added = builder_.add_value(one.tensor, one.sharding, dtype, category);
    builder_.value(added).bytes = bytes;
    builder_.value(added).name = ring_.op.name + " " + what;
    return added;
  }

  Item call(CollectiveKind kind, const std::vector<ValueId>& from, ValueId to) {
    const Value& arrives = builder_.value(to);
    Item item;
    item.kind = TaskKind::collective;
    item.stream = Stream::activations;
    item.name = ring_.op.name;
    item.recompute = ring_.op.recompute;
    item.collective.kind = kind;
    item.collective.dtype = arrives.dtype;
    item.collective.payload = arrives.bytes;
    item.collective.parts = {{arrives.name, arrives.bytes}};
    item.reason = KeysPassedOn{&ring_.op};
    item.operands = from;
    item.results = {to};
    return item;
  }

  // Those of all devices.
  ValueId gather(const std::vector<ValueId>& values) {
    const ValueId all = add(values, builder_.value(values.front()).dtype, parts_ * bytes_of(values),
                            "all " + std::string(keys_and_values), BufferCategory::communication);
    Item item = call(CollectiveKind::all_gather, values, all);
    item.collective.axes = ring_.axes;
    pass_.body.push_back(std::move(item));
    return all;
  }

  // To the next device of the ring; answers what comes from the one before.
  ValueId pass_on(const std::vector<ValueId>& values, const std::string& what) {
    const ValueId arrived = add(values, builder_.value(values.front()).dtype, bytes_of(values),
                                what, BufferCategory::communication);
    Item item = call(CollectiveKind::collective_permute, values, arrived);
    for (const std::vector<std::int64_t>& group : builder_.mesh().groups(ring_.axes)) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        item.collective.source_targets.emplace_back(group[i], group[(i + 1) % group.size()]);
      }
    }
    pass_.body.push_back(std::move(item));
    return arrived;
  }

  void compute(const std::vector<ValueId>& part, std::int64_t i) {
    Item item;
    item.name = ring_.op.name;
    item.recompute = ring_.op.recompute;
    item.operands = ring_.reads;
    item.operands.insert(item.operands.end(), part.begin(), part.end());
    item.results = ring_.results;
    if (i > 0)
      item.operands.insert(item.operands.end(), ring_.results.begin(), ring_.results.end());
    item.kernel = ring_.whole;
    // In order, the last device sees all of the parts before its own.
    const double more = !ring_.context.balanced && i > 0 ? 1 / ring_.op.work_fraction : 1;
    item.kernel.flops = Flops(more * ring_.whole.flops.count() / static_cast<double>(parts_));
    if (item.kernel.product) item.kernel.product->n /= parts_;
    pass_.body.push_back(std::move(item));
  }

  // Of a partial result and what there is, kept in fp32 between.
  void merge() {
    const ValueId out = ring_.results.front();
    const Value result = builder_.value(out);
    const std::int64_t elements = result.bytes.count() / size_of(result.dtype).count();
    Item item;
    item.name = ring_.op.name + " merge";
    item.recompute = ring_.op.recompute;
    item.operands = item.results = ring_.results;
    item.kernel.op = "merge";
    item.kernel.dtype = DType::f32;
    item.kernel.bytes = result.bytes + 2 * elements * size_of(DType::f32);
    item.kernel.flops = Flops(3 * static_cast<double>(elements));
    pass_.body.push_back(std::move(item));
  }

  [[nodiscard]] Bytes in_fp32(const std::vector<ValueId>& values) const {
    return bytes_of(values).count() / size_of(builder_.value(values.front()).dtype).count() *
           size_of(DType::f32);
  }

  // What a kernel has made, added to what has come round of keys and values and to what there is of
  // queries, in fp32. Answers the sum that goes on.
  ValueId add_up(ValueId arrived) {
    const std::vector<ValueId> own = made_of_keys();
    const std::vector<ValueId> of_queries(
        ring_.results.begin(), ring_.results.end() - static_cast<std::ptrdiff_t>(own.size()));
    const ValueId sum =
        add(own, DType::f32, in_fp32(own), "gradients so far", BufferCategory::temporaries);
    Item item;
    item.name = ring_.op.name + " gradients";
    item.recompute = ring_.op.recompute;
    item.operands = ring_.results;
    item.results = {sum};
    item.kernel.op = "add";
    item.kernel.dtype = DType::f32;
    item.kernel.bytes = bytes_of(item.operands) + bytes_of(item.results);
    if (arrived != no_value) {
      item.operands.push_back(arrived);
      item.kernel.bytes += builder_.value(arrived).bytes;
    }
    if (queries_ != no_value) {
      item.kernel.bytes += 2 * builder_.value(queries_).bytes;
      item.operands.push_back(queries_);
      item.results.push_back(builder_.add_view(queries_, builder_.value(queries_).sharding));
    } else if (!of_queries.empty()) {
      queries_ = add(of_queries, DType::f32, in_fp32(of_queries), "gradients of queries",
                     BufferCategory::temporaries);
      item.kernel.bytes += builder_.value(queries_).bytes;
      item.results.push_back(queries_);
    }
    pass_.body.push_back(std::move(item));
    return sum;
  }

  ValueId by_tokens(ValueId by_heads) {
    const Value from = builder_.value(by_heads);
    const ValueId copied =
        builder_.add_value(from.tensor, from.sharding, from.dtype, from.category);
    Item item;
    item.name = ring_.op.name + " by tokens";
    item.recompute = ring_.op.recompute;
    item.operands = {by_heads};
    item.results = {copied};
    item.kernel.op = "copy";
    item.kernel.dtype = from.dtype;
    item.kernel.bytes = 2 * from.bytes;
    pass_.body.push_back(std::move(item));
    return copied;
  }

  // What has come round is that of the device's own keys and values.
  void come_home(ValueId gradients) {
    Item item;
    item.name = ring_.op.name + " gradients of own keys";
    item.recompute = ring_.op.recompute;
    item.operands = {gradients};
    item.results = made_of_keys();
    item.kernel.op = "copy";
    if (queries_ != no_value) {
      item.operands.push_back(queries_);
      item.results = ring_.results;
      item.kernel.op = "cast";
    }
    item.kernel.dtype = builder_.value(gradients).dtype;
    item.kernel.bytes = bytes_of(item.operands) + bytes_of(item.results);
    pass_.body.push_back(std::move(item));
  }

  SpmdBuilder& builder_;
  const RingAttention& ring_;
  BlockPass& pass_;
  std::int64_t parts_;
  ValueId queries_ = no_value;  // their gradients so far, in fp32
  bool is_forward_;
};

}  // namespace

LabelId key_tokens(const Workload& workload, const Op& op) {
  const auto is_key = [&](LabelId label) {
    return workload.labels[at(label)].role == LabelRole::key_sequence;
  };
  return *std::find_if(op.whole.begin(), op.whole.end(), is_key);
}

std::vector<ValueId> add_ring_attention(SpmdBuilder& builder, const RingAttention& ring,
                                        BlockPass& pass) {
  return Ring(builder, ring, pass).run();
}

}  // namespace shardsim
