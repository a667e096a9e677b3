#include "strategies/layout/projection.hpp"

#include <algorithm>

namespace shardsim {
namespace {

// Walks the factors of one dimension while axes fill them.
class DimProjection {
 public:
  DimProjection(const Dim& dim, const std::vector<Label>& labels, std::int64_t blocks)
      : dim_(dim), labels_(labels) {
    // The blocks are the major factors that stay whole.
    for (std::int64_t skipped = 1; skipped < blocks && at_ + 1 < dim_.size(); ++at_) {
      skipped *= size(at_);
    }
    left_ = size(at_);
  }

  // False when `axis` or a part of it cuts across a factor.
  bool place(AxisRef axis, FactorAxes& factors) {
    const bool last_factor = at_ + 1 == dim_.size();
    if (last_factor && dim_.size() == 1) {  // padded if it does not divide
      factors[dim_[at_]].push_back(axis);
      return true;
    }
    while (axis.size > 1) {
      if (left_ == 1) {
        if (at_ + 1 == dim_.size()) return false;
        left_ = size(++at_);
      } else if (left_ % axis.size == 0) {
        factors[dim_[at_]].push_back(axis);
        left_ /= axis.size;
        return true;
      } else if (axis.size % left_ == 0) {
        factors[dim_[at_]].push_back({axis.axis, axis.pre_size, left_});
        axis = {axis.axis, axis.pre_size * left_, axis.size / left_};
        left_ = 1;
      } else {
        return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] std::int64_t size(std::size_t i) const {
    return labels_[static_cast<std::size_t>(dim_[i])].size;
  }

  const Dim& dim_;
  const std::vector<Label>& labels_;
  std::size_t at_ = 0;
  std::int64_t left_ = 1;  // of the current factor, not yet split
};

}  // namespace

FactorAxes project(const Sharding& sharding, const std::vector<Dim>& dims,
                   const std::vector<Label>& labels) {
  FactorAxes factors;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    DimProjection projection(dims[d], labels, sharding.dims[d].blocks);
    for (const AxisRef& axis : sharding.dims[d].axes) {
      if (!projection.place(axis, factors)) break;
    }
  }
  return factors;
}

Sharding sharding_of(const std::vector<Dim>& dims, const FactorAxes& factors,
                     const std::vector<Label>& labels) {
  Sharding sharding = replicated(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    DimSharding& dim = sharding.dims[d];
    std::int64_t whole_before = 1;  // major factors that are not split at all
    bool contiguous = true;         // the next factor's split continues the one before
    for (const LabelId factor : dims[d]) {
      const std::int64_t size = labels[static_cast<std::size_t>(factor)].size;
      const auto found = factors.find(factor);
      if (found == factors.end() || found->second.empty()) {
        if (dim.axes.empty()) {
          whole_before *= size;
        } else if (size > 1) {
          contiguous = false;
        }
        continue;
      }
      if (!contiguous) break;
      dim.axes.insert(dim.axes.end(), found->second.begin(), found->second.end());
      dim.blocks = whole_before;
      contiguous = Mesh::size_of(found->second) == size;
    }
    dim.axes = merged(dim.axes);
  }
  return sharding;
}

}  // namespace shardsim
