// Where the values of one program lie while its plan is written: a buffer for every instance of a
// value, in every microbatch that is under way.
//
//   of the step        what is there before it (parameters, optimizer state, inputs), sums over
//                      microbatches, and what comes of them; parameters that a pipeline keeps
//                      gathered over microbatches
//   of a microbatch    all else: nobody asks for it when its last backward pass is through
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/index.hpp"
#include "plan/plan.hpp"
#include "strategies/compile/plan_tables.hpp"
#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

using BufferIndex = std::int32_t;
inline constexpr BufferIndex no_buffer = -1;
inline constexpr TaskId no_task = -1;
inline constexpr std::size_t most_streams = 12;

// A buffer while its life is being written.
struct OpenBuffer {
  Buffer buffer;
  bool persistent = false;
  bool to_end = false;              // the step's last task gives it back
  bool opens_when_written = false;  // by an item, rather than with the task that is given
  TaskId written_by = no_task;
  std::array<TaskId, most_streams> last_use{};
};

// Of every value: is it of the step? `keeps_gathered`: parameters are, where they are gathered.
[[nodiscard]] std::vector<bool> values_of_step(const SpmdStep& step, std::int64_t microbatches,
                                               bool keeps_gathered);

class ValueBuffers {
 public:
  // `here`: the block instances that the program runs. Opens what is there before the step.
  ValueBuffers(const SpmdStep& step, const Workload& workload, const std::vector<bool>& of_step,
               const std::vector<BlockInstance>& here, PlanTables& tables);

  // The microbatch that entries are of from now on.
  void select(std::int64_t microbatch);
  // Its values are asked for no more.
  void end(std::int64_t microbatch);

  // Of a value in instance i of its block. The value itself, or what it lies in.
  [[nodiscard]] BufferIndex& entry(ValueId id, std::int64_t i) {
    const Value& v = value(id);
    Frame& frame = of_step_[at(id)] ? step_frame_ : *current_;
    return v.shared ? frame.shared[at(id)] : frame.of_instance[at(v.block)][at(i)][at(id)];
  }
  [[nodiscard]] BufferIndex buffer_of(ValueId id, std::int64_t i) {
    while (value(id).storage != no_value) id = value(id).storage;
    return entry(id, i);
  }
  [[nodiscard]] OpenBuffer& operator[](BufferIndex buffer) {
    return buffers_[static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] const Value& value(ValueId id) const {
    return step_.values[static_cast<std::size_t>(id)];
  }

  BufferIndex open(ValueId id, std::int64_t i, TaskId task);
  // One that is no single value's.
  BufferIndex open_of_program(const Buffer& buffer);
  void use(BufferIndex buffer, TaskId task, std::size_t stream);
  [[nodiscard]] std::vector<BufferIndex> kept_to_end() const;
  // Adds them all to the program.
  void close(Program& program) const;

 private:
  using Entries = std::vector<BufferIndex>;  // of every value
  struct Frame {
    Entries shared;
    std::vector<std::vector<Entries>> of_instance;  // by block, of what is here
  };
  [[nodiscard]] Frame new_frame() const;
  void open_persistent(const std::vector<BlockInstance>& here);
  [[nodiscard]] std::vector<bool> read_here(const std::vector<BlockInstance>& here) const;

  const SpmdStep& step_;
  const Workload& workload_;
  const std::vector<bool>& of_step_;
  PlanTables& tables_;
  std::vector<std::vector<bool>> is_here_;  // by block and ordinal
  std::vector<OpenBuffer> buffers_;
  Frame step_frame_;
  std::vector<Frame> frames_;      // of microbatches under way, and free ones
  std::vector<std::size_t> free_;  // of frames_
  std::map<std::int64_t, std::size_t> under_way_;
  Frame* current_ = nullptr;
};

}  // namespace shardsim
