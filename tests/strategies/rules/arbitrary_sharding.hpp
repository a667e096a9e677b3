// Meshes, tensors and specs for property tests: small, uneven, axes of one device included.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim::test {

// Up to three axes "a", "b", "c" of 1 to 4 devices.
inline rc::Gen<Mesh> arbitrary_mesh() {
  return rc::gen::exec([] {
    std::vector<MeshAxis> axes;
    const int count = *rc::gen::inRange(1, 4);
    for (int i = 0; i < count; ++i) {
      axes.push_back({std::string(1, static_cast<char>('a' + i)), *rc::gen::inRange(1, 5)});
    }
    return Mesh(std::move(axes));
  });
}

// Up to three dimensions of 0 to 12.
inline rc::Gen<ParameterLeaf> arbitrary_leaf() {
  return rc::gen::exec([] {
    ParameterLeaf leaf;
    const int rank = *rc::gen::inRange(0, 4);
    for (int d = 0; d < rank; ++d) leaf.shape.push_back(*rc::gen::inRange(0, 13));
    leaf.dtype = *rc::gen::element(DType::f32, DType::bf16, DType::i8);
    return leaf;
  });
}

// Every axis of the mesh splits one dimension or none; their order is any.
inline rc::Gen<PartitionSpec> arbitrary_spec(const Mesh& mesh, std::size_t rank) {
  return rc::gen::exec([=] {
    PartitionSpec spec(rank);
    for (const MeshAxis& axis : mesh.axes()) {
      const auto dim = static_cast<std::size_t>(*rc::gen::inRange<std::size_t>(0, rank + 1));
      if (dim == rank) continue;
      std::vector<std::string>& axes = spec[dim].axes;
      const bool first = *rc::gen::arbitrary<bool>();
      axes.insert(first ? axes.begin() : axes.end(), axis.name);
    }
    return spec;
  });
}

}  // namespace shardsim::test
