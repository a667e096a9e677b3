#include "strategies/partition/ring_attention.hpp"

#include <string>

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

  void run() {
    std::vector<ValueId> part = ring_.keys;
    ValueId gradients = no_value;
    for (std::int64_t i = 0; i < parts_; ++i) {
      const std::vector<ValueId> now = part;
      if (i + 1 < parts_) part = {pass_on(now, "keys and values")};
      compute(now, i);
      if (is_forward_) {
        if (i > 0) merge();
      } else {
        gradients = pass_on(gradients == no_value ? made_of_keys() : std::vector{gradients},
                            "gradients of keys and values");
      }
    }
    if (!is_forward_) come_home(gradients);
  }

 private:
  [[nodiscard]] Bytes bytes_of(const std::vector<ValueId>& values) const {
    Bytes bytes{0};
    for (const ValueId id : values) bytes += builder_.value(id).bytes;
    return bytes;
  }

  [[nodiscard]] std::vector<ValueId> made_of_keys() const {
    return {ring_.results.end() - static_cast<std::ptrdiff_t>(ring_.keys.size()),
            ring_.results.end()};
  }

  // To the next device of the ring; answers what comes from the one before.
  ValueId pass_on(const std::vector<ValueId>& values, const std::string& what) {
    const Value like = builder_.value(values.front());
    const ValueId arrived =
        builder_.add_value(like.tensor, like.sharding, like.dtype, BufferCategory::communication);
    builder_.value(arrived).bytes = bytes_of(values);
    builder_.value(arrived).name = ring_.op.name + " " + what;
    Item item;
    item.kind = TaskKind::collective;
    item.stream = Stream::activations;
    item.name = ring_.op.name;
    item.recompute = ring_.op.recompute;
    item.collective.kind = CollectiveKind::collective_permute;
    for (const std::vector<std::int64_t>& group : builder_.mesh().groups(ring_.axes)) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        item.collective.source_targets.emplace_back(group[i], group[(i + 1) % group.size()]);
      }
    }
    item.collective.dtype = like.dtype;
    item.collective.payload = bytes_of(values);
    item.collective.parts = {{builder_.value(arrived).name, item.collective.payload}};
    item.reason = KeysPassedOn{&ring_.op};
    item.operands = values;
    item.results = {arrived};
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
    const double more = !ring_.balanced && i > 0 ? 1 / ring_.op.work_fraction : 1;
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

  // What has come round is that of the device's own keys and values.
  void come_home(ValueId gradients) {
    Item item;
    item.name = ring_.op.name + " gradients of own keys";
    item.recompute = ring_.op.recompute;
    item.operands = {gradients};
    item.results = made_of_keys();
    item.kernel.op = "copy";
    item.kernel.dtype = builder_.value(gradients).dtype;
    item.kernel.bytes = 2 * builder_.value(gradients).bytes;
    pass_.body.push_back(std::move(item));
  }

  SpmdBuilder& builder_;
  const RingAttention& ring_;
  BlockPass& pass_;
  std::int64_t parts_;
  bool is_forward_;
};

}  // namespace

void add_ring_attention(SpmdBuilder& builder, const RingAttention& ring, BlockPass& pass) {
  Ring(builder, ring, pass).run();
}

}  // namespace shardsim
