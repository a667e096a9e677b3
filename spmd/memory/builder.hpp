// Makes the kernels of a program; used by kernels_of only (kernels.cpp, loop.cpp).
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "spmd/memory/fusion.hpp"
#include "spmd/memory/kernels.hpp"
#include "spmd/memory/layout.hpp"

namespace shardsim::spmd {

class KernelBuilder {
 public:
  KernelBuilder(const stablehlo::Module& module, const stablehlo::Function& main,
                MemoryTarget target, bool is_tight);
  KernelGraph build();

 private:
  Buffer& buffer_of(BufferId id) { return graph_.buffers[at(id)]; }
  std::vector<Kernel>& kernels(stablehlo::RegionId region) {
    return graph_.regions[at(region)].kernels;
  }
  Sources& sources(stablehlo::ValueId value) { return sources_[at(value)]; }
  BufferId add_buffer(const stablehlo::TensorType& type, stablehlo::OpId op,
                      stablehlo::RegionId region);
  // A kernel that copies one buffer into a new one.
  BufferId add_copy(BufferId from, stablehlo::OpId op, stablehlo::RegionId region);
  // The one buffer among sources, tokens aside.
  BufferId single(const Sources& sources) const;

  void walk(stablehlo::RegionId region);
  void visit(stablehlo::OpId id, stablehlo::RegionId region);
  void barrier(stablehlo::OpId id, stablehlo::RegionId region);
  void fusible(stablehlo::OpId id, stablehlo::RegionId region);
  void update(stablehlo::OpId id, stablehlo::RegionId region);
  void branch(stablehlo::OpId id, stablehlo::RegionId region);
  void add_kernel(stablehlo::OpId id, stablehlo::RegionId region, InPlace in_place);
  bool gathers_across(const stablehlo::Op& op) const;
  bool needs_own_place(const stablehlo::Op& op) const;
  void copy_replaced_arguments();
  void place_outputs();
  void find_windowed(std::vector<Kernel>& kernels) const;
  std::size_t group_size(const stablehlo::Op& op) const;

  Sources sources_of_operands(const stablehlo::Op& op);
  // What a kernel of the op reads.
  Sources sources_read(stablehlo::OpId id, stablehlo::RegionId region);
  Sources dot_sources(const stablehlo::Op& op);

  void loop(stablehlo::OpId id, stablehlo::RegionId region);
  void enter_loop(const stablehlo::Op& op, stablehlo::RegionId region, Kernel& kernel);
  void leave_loop(const stablehlo::Op& op, stablehlo::RegionId region, Kernel& kernel);
  Sources cast_sources(stablehlo::OpId id, stablehlo::RegionId region);
  Sources slice_sources(stablehlo::OpId id, stablehlo::RegionId region);
  BufferId hoist(BufferId source, stablehlo::OpId op, const stablehlo::TensorType& type,
                 const std::string& what);

  const stablehlo::Module& module_;
  const stablehlo::Function& main_;
  MemoryTarget target_;
  bool is_tight_;
  Fusion fusion_;
  LayoutCopies layout_;                       // empty of a TPU
  std::vector<int> donors_;                   // by result of the function
  std::vector<BufferId> arguments_;           // of the function
  std::vector<Sources> sources_;              // by ValueId
  std::map<BufferId, BufferId> other_order_;  // what is kept in two orders
  // What is made before a loop, by what it is made of and how.
  std::map<std::pair<BufferId, std::string>, BufferId> hoisted_;
  std::vector<Kernel> hoists_;  // the kernels that make it, until the region is reached
  std::set<BufferId> wanted_;   // hoisted buffers that the current body reads
  KernelGraph graph_;
};

}  // namespace shardsim::spmd
