// A network with round numbers for tests of cross-mesh resharding: 1 byte per nanosecond between
// domains, 10 within one, 100 ns for every message that a device sends or receives.
#pragma once

#include <algorithm>
#include <map>
#include <memory>

#include "sharding/cross_mesh_reshard.hpp"
#include "sharding/partition_spec.hpp"

namespace shardsim::test {

class RoundMeter final : public TransferMeter {
 public:
  explicit RoundMeter(std::int64_t per_domain) : per_domain_(per_domain) {}
  void add(const Message& message) override {
    if (message.source == message.target) return;
    const bool inside = message.source / per_domain_ == message.target / per_domain_;
    const double ns = 100 + static_cast<double>(message.bytes.count()) / (inside ? 10 : 1);
    sent_[message.source] += ns;
    received_[message.target] += ns;
  }
  [[nodiscard]] Seconds time() const override {
    double busiest = 0;
    for (const auto& [device, ns] : sent_) busiest = std::max(busiest, ns);
    for (const auto& [device, ns] : received_) busiest = std::max(busiest, ns);
    return Seconds(busiest * 1e-9);
  }

 private:
  std::int64_t per_domain_;
  std::map<std::int64_t, double> sent_;
  std::map<std::int64_t, double> received_;
};

class RoundCost final : public ReshardCost {
 public:
  explicit RoundCost(std::int64_t per_domain) : per_domain_(per_domain) {}
  [[nodiscard]] std::int64_t domain(std::int64_t device) const override {
    return device / per_domain_;
  }
  // As if every group were in one domain.
  [[nodiscard]] std::optional<Seconds> collective(ReshardPart /*part*/,
                                                  const Collective& collective) const override {
    const std::int64_t members = Mesh::size_of(collective.axes);
    const Bytes wire = wire_bytes_per_device(collective.kind, members, collective.payload);
    return Seconds(
        (static_cast<double>(wire.count()) / 10 + 100 * static_cast<double>(members - 1)) * 1e-9);
  }
  [[nodiscard]] std::unique_ptr<TransferMeter> transfer() const override {
    return std::make_unique<RoundMeter>(per_domain_);
  }
  // Each device has a link of its own, of 1 byte per nanosecond.
  [[nodiscard]] Seconds host_copies(const std::vector<std::int64_t>& /*devices*/,
                                    Bytes bytes) const override {
    return Seconds((100 + static_cast<double>(bytes.count())) * 1e-9);
  }

 private:
  std::int64_t per_domain_;
};

// Specs as people write them, on meshes whose devices are numbered from `first`.
inline ReshardTask task(std::vector<std::int64_t> shape, const Mesh& from,
                        const std::string& from_spec, const Mesh& to, const std::string& to_spec,
                        bool shared) {
  const std::size_t rank = shape.size();
  const auto sharding = [&](const Mesh& mesh, const std::string& spec) {
    return to_sharding(parse_partition_spec(spec, {}), rank, mesh, {});
  };
  return {std::move(shape),
          DType::bf16,
          numbered(from, 0),
          sharding(from, from_spec),
          numbered(to, shared ? 0 : from.devices()),
          sharding(to, to_spec),
          {}};
}

}  // namespace shardsim::test
