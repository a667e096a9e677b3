// The program of one rank of a pipeline, or of a step without one, written call by call.
//
// A pass over one instance of one block is a segment; segments follow each other in execution
// order. Parameters of segment k may be gathered once segment k - 1 - prefetch has computed, so
// that `prefetch` units wait ready beside the one at work; the unit that opens the backward pass is
// gathered when it is first read, as FSDP2's root is. A value dies with its last reader; a unit
// that is given back whole, with its segment.
//
// Calls for them are made when their pass begins or, asked ahead, behind those of the one at work.
// Segment k waits for the gradient reductions of segment k - 2 that leave something to give back,
// as FSDP2 waits for a unit's reduce-scatter: unreduced gradients of two units are there at most.
//
// In a pipeline
//   - what passes from the last block of a stage to the first of the next is sent and received, a
//     message for each value, on a stream for each direction (docs/pipelines.md);
//   - an I runs the part of the backward pass that the gradient for the stage before needs, a W the
//     rest. The first stage has nobody before it: its I does nothing and its W everything, as in
//     torch.distributed.pipelining; a stage's root is gathered before its layers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "strategies/compile/emit.hpp"
#include "strategies/compile/held_gradients.hpp"
#include "strategies/compile/open_parameters.hpp"
#include "strategies/compile/plan_tables.hpp"
#include "strategies/compile/shift_loop.hpp"
#include "strategies/compile/stage_borders.hpp"
#include "strategies/compile/value_buffers.hpp"
#include "strategies/runtime/module_walk.hpp"
#include "strategies/runtime/parameter_fetches.hpp"
#include "strategies/schedule/acknowledged.hpp"
#include "strategies/schedule/messages.hpp"

namespace shardsim {

class ProgramEmitter {
 public:
  ProgramEmitter(const EmitInput& input, const std::vector<bool>& of_step, std::int32_t rank,
                 PlanTables& tables);

  // With what messages.hpp adds. The optimizer's steps of its stages come last where the calls have
  // none.
  [[nodiscard]] Program run(const std::vector<Call>& calls,
                            const std::vector<Acknowledged>& acknowledged);

 private:
  static constexpr std::size_t no_bucket = ~std::size_t{0};
  static constexpr std::size_t no_place = ~std::size_t{0};
  enum class Part : std::uint8_t { whole, input, weight };
  struct Segment {
    const ResolvedPass& pass;
    BlockInstance instance;
    Part part = Part::whole;
    bool opens_backward = false;
    bool is_asked = false;  // its gathers are issued
    bool is_asked_within = false;
    bool copies_out = false;  // what they have brought, before it is read
    bool copies_out_within = false;
  };
  enum class Of : std::uint8_t { block, within };  // gathered for a segment, or for its unit within
  void set_phase(Phase phase);                     // outside of layers
  void open_buckets(), open_room_of_values();
  void hand_over_gradients(const Item& item);
  void open_bucket(Bucket bucket, std::int16_t stage);
  [[nodiscard]] BufferIndex open_buffer(const std::string& name, BufferCategory category,
                                        Bytes bytes);
  void open_gradients(OpenBucket& bucket);
  void open_ddp_bucket(const OpenBucket& bucket);
  void open_beside(OpenBucket& bucket);
  void list_gradients(OpenBucket& bucket);
  void copy_beside(TensorId parameter, std::int64_t ordinal);
  void copy_out_of(const OpenBucket& bucket);
  void open_gradients_of(const BlockPass& pass, std::int64_t ordinal);
  [[nodiscard]] std::vector<RegisteredParameter> listed_parameters(std::size_t block,
                                                                   BufferOrder order) const;
  [[nodiscard]] bool reduces_each_microbatch() const;
  void keep_shard(OpenBucket& bucket, const std::vector<BufferIndex>& reduced);
  void scatter_in_room(OpenBucket& bucket);
  [[nodiscard]] static const std::vector<BufferIndex>& reduced(const OpenBucket& bucket);
  void sum_up(const OfAllGradients& number, Bytes bytes, const std::vector<BufferIndex>& gradients,
              const AxisList& axes);
  TaskId reduce_behind(  // a task that no buffer tells of, on their stream
      TaskId before, const std::string& name, const Collective& collective);
  [[nodiscard]] std::vector<Parted> gradients_by_parts() const;
  [[nodiscard]] std::vector<BufferedParameter> buffered_parameters(std::int16_t stage,
                                                                   BufferOrder order) const;
  void split_into_experts(std::vector<BufferedParameter>& parameters, std::size_t first) const;
  void open_step_rooms(), note_first_gradient(), close_step_rooms();
  void reduce_waiting(), reduce_last();
  [[nodiscard]] bool fills_rooms() const;
  [[nodiscard]] BufferIndex place_of(const OpenBucket& bucket);
  void fill_room(OpenBucket& bucket);
  [[nodiscard]] bool is_of_own_part(const Bucket& bucket) const;
  void deal_out(const std::vector<std::size_t>& parameters);
  void count_written(const BlockPass& pass, std::size_t items, std::int64_t ordinal);
  std::size_t handed_over(const BlockPass& pass, std::size_t writes);
  void count_gradient(std::size_t number);
  void reduce_bucket(OpenBucket& bucket);
  void reduce_aligned(const Action& action);
  [[nodiscard]] bool reduces_when_ready() const;
  void finish_gradients();
  void add_up_over_model(), add_up_shared();
  void add_up_routing(), scale_by_tokens(), take_norm(), widen_gradients(), average_norm();
  // Parts of ZeRO 1 and 2 (emit_gradient_parts.cpp).
  [[nodiscard]] bool has_parts() const;
  void open_parts(std::int16_t stage), add_up_parts(), widen_parts();
  void keep_in_part(OpenBucket& bucket, const std::vector<BufferIndex>& reduced);
  [[nodiscard]] std::vector<BufferIndex> updated_from(const OpenBucket& bucket) const;
  void scale_by_norm(const std::vector<Parted>& all);
  void update_bucket(const OpenBucket& bucket);
  void update_with_host(std::int16_t stage);  // emit_hybrid_optimizer.cpp
  void gather_buckets();
  void gather_buckets_for(const ResolvedPass& pass, std::size_t item, std::int64_t ordinal);
  void gather_buckets_of(ValueId parameter, std::int64_t ordinal);
  [[nodiscard]] std::optional<std::size_t> next_of(std::size_t number) const;
  [[nodiscard]] bool are_one_group(std::int16_t stage) const;
  void gather_unless_asked(std::size_t number);
  void gather_next_bucket();
  void emit_gather(const OpenBucket& bucket);
  // A task that reads whole buffers, and writes those that are not only read.
  TaskId emit_on(Task task, const std::string& name, const std::vector<BufferIndex>& read,
                 const std::vector<BufferIndex>& written);
  TaskId emit_kernel(const Kernel& kernel, const std::string& name,
                     const std::vector<BufferIndex>& read, const std::vector<BufferIndex>& written,
                     Stream stream = Stream::compute);
  TaskId emit_collective(const Collective& collective, Stream stream, const std::string& name,
                         const std::vector<BufferIndex>& written,
                         const std::vector<BufferIndex>& read = {});
  // A kernel that moves so many bytes, read and written.
  TaskId emit_copy(std::string_view op, DType dtype, Bytes bytes, const std::string& name,
                   const std::vector<BufferIndex>& read, const std::vector<BufferIndex>& written,
                   Stream stream);
  // One that comes to life with the next task.
  [[nodiscard]] BufferIndex open_staging(const std::string& name, Bytes bytes);

  // An activation of a block instance that lies on the host (emit_offload.cpp).
  struct OnHost {
    std::int32_t microbatch = 0;
    ValueId value = no_value;
    std::int32_t layer = 0;
    auto operator<=>(const OnHost&) const = default;
  };
  void open_host_streams();
  void await_copies();
  void send_to_host(const Segment& segment);
  void bring_from_host(const Segment& segment, TaskId window);
  void bring_ahead(const std::vector<Segment>& segments, std::size_t k);
  [[nodiscard]] std::vector<ValueId> on_host(const BlockInstance& instance) const;
  TaskId emit_host_copy(TaskKind kind, BufferIndex buffer, std::int32_t name);

  // The optimizer on the host (emit_host_optimizer.cpp).
  [[nodiscard]] BufferIndex open_on_host(const std::string& name, BufferCategory category,
                                         Bytes bytes);
  [[nodiscard]] std::size_t host_stream() const { return program_.streams.size() - 3; }
  [[nodiscard]] std::uint8_t host_copies(TaskKind kind) const {
    return static_cast<std::uint8_t>(program_.streams.size() - (kind == TaskKind::to_host ? 2 : 1));
  }
  void open_way_to_host();
  void open_host_gradients(OpenBucket& bucket, std::int64_t elements);
  void open_state(OpenBucket& bucket, std::int64_t elements, Bytes of_each);
  void add_on_host(OpenBucket& bucket, BufferIndex reduced, std::int64_t elements);
  void update_on_host(const HostUpdate& update);
  TaskId emit_on_host(std::string_view op, Bytes bytes, const std::string& name,
                      const std::vector<BufferIndex>& read,
                      const std::vector<BufferIndex>& written);

  // Parameters there (emit_host_parameters.cpp).
  [[nodiscard]] BufferIndex bring_part(std::size_t parameter);
  TaskId emit_host_copy_of(TaskKind kind, Bytes bytes, const std::string& name,
                           const std::vector<BufferIndex>& read,
                           const std::vector<BufferIndex>& written);

  void open_flat_parameters();
  void keep_secondary(FlatParameter& flat);
  [[nodiscard]] BufferIndex open_secondary(const FlatParameter& flat);
  void run_modules(std::size_t segment, std::size_t item);
  void fetch(const std::vector<std::size_t>& parameters, const std::string& name);
  TaskId gather_call(const PartsCall& call, DType as, const std::vector<BufferIndex>& read,
                     BufferIndex to);
  void move_parts(const PartsCall& call, const char* op, Bytes bytes,
                  const std::vector<BufferIndex>& read, const std::vector<BufferIndex>& written);
  // Answer the buffer that they are in, one behind the other.
  [[nodiscard]] BufferIndex gather_side_by_side(const PartsCall& call);
  [[nodiscard]] BufferIndex gather_quantized(const PartsCall& call);
  void gather_parts(const std::vector<std::size_t>& parameters, bool is_secondary,
                    const std::string& name);
  [[nodiscard]] BufferIndex open_whole(FlatParameter& parameter, std::int64_t elements);
  void give_back_whole(std::size_t parameter);
  void give_back_all();
  void keep_viewed(const Item& item, std::int64_t i);
  void end_with_last_task(BufferIndex buffer);
  void gather_whole();
  [[nodiscard]] Bucket as_bucket(const std::vector<std::size_t>& parameters, const AxisList& axes,
                                 std::int64_t elements) const;
  void open_update_groups(std::int16_t stage);
  void take_norms_of_groups();
  void update_group(const UpdateGroup& group, std::size_t number);
  [[nodiscard]] std::vector<BufferIndex> gradients_of(const UpdateGroup& group) const;
  [[nodiscard]] std::vector<BufferIndex> parameters_of(const OpenBucket& bucket);
  [[nodiscard]] std::int64_t shards_of(const Bucket& bucket) const;

  // A pass over a stage: its segments, and what is carried from one to the next.
  struct Passage {
    std::vector<Segment> segments = {};
    std::vector<BufferIndex> carried = {};
  };
  class Pair;            // emit_pairs.cpp
  class Shift;           // emit_shifts.cpp
  struct LateGradient {  // an item that waits (emit_late_gradients.cpp)
    std::int32_t microbatch = 0;
    BlockInstance instance;
    std::size_t item = 0;
  };
  [[nodiscard]] bool puts_off(const Segment& segment, std::size_t item);
  void emit_late_gradients();
  void run_action(const Action& action);
  void run_pair(const Action& forward, const Action& backward);
  void begin_action(const Action& action);
  void end_action(const Action& action);
  void forward(const Action& action);
  void backward(const Action& action, Part part);
  [[nodiscard]] Passage begin_forward(const Action& action);
  [[nodiscard]] Passage begin_backward(const Action& action, Part part);
  void run_segment(Passage& passage, std::size_t k, Phase phase);
  void enter_segment(const Passage& passage, std::size_t k, Phase phase);
  void leave_segment(Passage& passage, std::size_t k, Phase phase);
  void end_passage(const Action& action, const Passage& passage);
  void optimizer(std::int16_t stage);
  void gather(std::int16_t stage);  // all parameters of a stage
  void give_back(std::int16_t stage);
  void reduce(std::int16_t stage);
  void count_pass(std::int16_t stage);
  void count_actions();
  void hand_over(std::int16_t stage, std::int32_t microbatch, bool is_gradient,
                 const std::vector<BufferIndex>& carried);

  [[nodiscard]] std::vector<BufferIndex> take(const Inlet& inlet);
  void enter(const std::vector<ValueId>& values, const std::vector<BufferIndex>& carried,
             std::int64_t i);
  [[nodiscard]] std::vector<BufferIndex> leave(const std::vector<ValueId>& values, std::int64_t i);
  [[nodiscard]] Border border_of(const Call& call) const;
  [[nodiscard]] Task message(const Call& call, const Border& border, ValueId value);
  void send(const Call& call, std::size_t place);
  void await_sends(std::size_t place);
  void receive(const Call& call);

  // The k-th of those that follow each other, all of one phase.
  void emit_segment(std::vector<Segment>& segments, std::size_t k, Phase phase);
  void begin_segment();
  void end_segment(const Segment& segment, Phase phase);
  void emit_body(std::vector<Segment>& segments, std::size_t k);
  void ask(Segment& segment, Of unit, TaskId window);
  [[nodiscard]] static bool runs_again(const Segment& segment, const Segment& next);
  // For what comes behind one of the k-th.
  void ask_ahead(std::vector<Segment>& segments, std::size_t k, Of unit);
  void open_within(std::vector<Segment>& segments, std::size_t k, std::size_t item);
  void close_within(const Segment& segment, std::size_t item);
  void gather_root(std::int16_t stage, Phase phase);
  void accumulate(const ResolvedPass& pass, std::int64_t i);
  // Of what adds up (Item::adds_up): the first, where it is what the sum shall be.
  [[nodiscard]] bool becomes_sum(const Item& item, std::int64_t i);
  void cast_apart(const Item& addition, TaskId task);
  void join_outputs(std::int16_t stage);
  [[nodiscard]] bool stays(Phase phase) const;
  void give_back(const ResolvedPass& pass, std::int64_t i);
  void give_back(const ResolvedPass& pass, Of unit, std::int64_t i);
  void give_back(ValueId held, std::int64_t i);
  void emit_gathers(const ResolvedPass& pass, Of unit, std::int64_t i, TaskId window);
  void copy_out(Segment& segment, Of unit);
  BufferIndex copy_out(const ResolvedPass& pass, Of unit, std::int64_t i);
  static std::span<const ResolvedItem> gathers_of(const ResolvedPass& pass, Of unit);
  void emit_items(const std::vector<ResolvedItem>& items, std::int64_t i);
  void emit_item(const ResolvedItem& resolved, std::int64_t i, TaskId window);
  void put_behind(const Item& item, std::int64_t i, TaskId window, bool in_place);
  [[nodiscard]] bool is_gathered(const ResolvedPass& pass, Of unit, std::int64_t i);
  [[nodiscard]] bool reads_parameter(const Item& item) const;
  [[nodiscard]] std::size_t end_of_modules(const ResolvedPass& pass) const;
  [[nodiscard]] bool may_give_back(const Item& item, std::int64_t i);
  void hold_gradients(const Item& reduction, std::int64_t i);
  void await_reductions();
  void free_copied_out();
  void hold_graph(std::int16_t stage);
  // Of the segment that comes after so many others.
  [[nodiscard]] TaskId window(std::size_t others = 0) const;
  void set_place(const BlockInstance& instance, Phase phase);
  [[nodiscard]] std::uint8_t stream_of(const Item& item) const;
  // What a message of the pass that has just been issued follows.
  [[nodiscard]] TaskId issued_before(bool is_gradient) const;
  // Puts `after` in order.
  TaskId add_task(const Task& task, std::vector<TaskId>& after);

  // Of a value that the item of the i-th instance of a block reads or makes: that of its own, or of
  // all layers of another block (UnitsOf::model).
  template <class Visit>
  void for_each_buffer(ValueId value, std::int64_t i, const Visit& visit);
  [[nodiscard]] std::vector<BlockInstance> instances_of(std::int16_t stage) const;
  void clip_gradients();
  [[nodiscard]] std::vector<AxisList> one_after_another(const AxisList& axes) const;
  void add_up_norms(const AxisList& axes, std::vector<std::vector<std::int64_t>> groups,
                    DType dtype, std::int64_t norms, const std::string& what);
  [[nodiscard]] std::vector<BlockInstance> root_first(std::int16_t stage) const;
  [[nodiscard]] bool is_first(std::int16_t stage) const { return stage == 0; }
  [[nodiscard]] const BlockProgram& program_of(const BlockInstance& instance) const;
  [[nodiscard]] std::int32_t layer_of(const BlockInstance& instance) const;  // -1: none

  const EmitInput& input_;
  std::int32_t rank_;
  bool has_stages_;
  std::uint8_t exchange_stream_ = 0;  // of rows on their way to experts; 0: that of activations
  PlanTables& tables_;
  Program program_;
  ValueBuffers buffers_;
  std::vector<OpenBucket> open_buckets_;  // stage by stage, in the order of the buffer
  // A stack of experts lies in as many places as there are experts, in order.
  std::map<ParameterInstance, std::vector<std::size_t>> buckets_of_;
  std::map<const BlockPass*, std::vector<TensorId>> turns_;  // of gradients, as autograd has them
  std::size_t waiting_ = no_bucket;        // is full, and reduced when the next gradient is there
  BufferIndex room_ = no_buffer;           // for one bucket, that stays
  std::vector<BufferIndex> step_rooms_;    // the same of a microbatch
  std::vector<BufferIndex> beside_rooms_;  // gradients that are larger, till all are reduced
  std::map<AxisList, OpenPart> parts_;     // by what buckets are reduced over
  BufferIndex last_gradient_ = no_buffer, wide_ = no_buffer;
  std::vector<TaskId> reductions_in_room_;
  std::vector<UndealtCall> undealt_;
  std::vector<FlatParameter> flat_;  // as the walk has them
  std::map<ParameterInstance, BufferIndex> viewed_;
  ModuleWalk walk_;
  std::vector<Fetch> fetches_;  // by step of the walk
  std::size_t next_step_ = 0;   // of the walk
  TaskId last_gather_ = no_task;
  std::vector<UpdateGroup> update_groups_;
  std::vector<std::vector<ValueId>> read_by_backward_;  // activations, by block
  std::map<OnHost, TaskId> copies_;                     // that have brought it there
  std::vector<TaskId> segment_copies_;                  // to the host, of every segment so far
  bool has_host_streams_ = false;
  std::vector<std::size_t> to_gather_;  // the next one last
  bool gradients_are_done_ = false;
  std::int32_t backward_passes_ = 0;                 // that have left gradients of weights
  std::map<std::int16_t, std::int32_t> through_at_;  // of stages: so many of these
  std::vector<LateGradient> late_gradients_;
  std::vector<BufferIndex> made_;  // gradients of the pass under way
  TaskId norm_ = no_task;          // by which gradients are scaled, so far as it is added up
  std::map<Inlet, std::vector<BufferIndex>> inlets_;
  std::map<std::int16_t, std::int64_t> passes_of_;    // by stage: microbatches that go through it
  std::map<std::int32_t, std::int64_t> passes_with_;  // by microbatch: stages that it goes through
  std::map<std::int16_t, std::int64_t> passes_done_;  // by stage: microbatches that are through
  std::map<std::int32_t, std::int64_t> passes_left_;  // by microbatch: stages still to go through
  std::vector<TaskId> after_;                         // of the task that is being written
  std::vector<TaskId> segment_ends_;                  // last kernel of every segment so far
  std::vector<TaskId> segment_reductions_;            // last_reduction_ of every segment so far
  TaskId last_kernel_ = no_task, kernel_before_ = no_task;
  HeldGradients held_gradients_{buffers_};
  std::vector<BufferIndex> copied_out_;  // what the last unit has been gathered into, in forward
  TaskId last_reduction_ = no_task;      // of this segment that gives memory back
  TaskId awaited_ = no_task;             // by the next kernel
  std::vector<TaskId> awaited_sends_;    // by the next kernel, too; and receives in an exchange
  std::array<std::size_t, 2> last_send_{no_place, no_place};  // of activations, of gradients
  // What has been sent and nobody awaits yet, by place of call.
  std::map<std::size_t, std::vector<std::pair<TaskId, BufferIndex>>> sends_;
  // Of overlapped passes, forward's and backward's: what their messages follow; no_task: all.
  std::array<TaskId, 2> pair_ends_{no_task, no_task};
  TaskId last_reduced_ = no_task;  // at the end of a stage
  TaskId issued_after_ = no_task;  // reductions that wait for more than what they reduce
  Phase phase_ = Phase::forward;
  std::int32_t block_ = 0, layer_ = -1, microbatch_ = 0;
  // Of the pass that a microbatch leaves a stage with: backward, of a forward step forward.
  bool is_first_pass_ = false, is_last_pass_ = false;
  ShiftLoop loop_;
};

template <class Visit>
void ProgramEmitter::for_each_buffer(ValueId value, std::int64_t i, const Visit& visit) {
  const Value& v = buffers_.value(value);
  if (v.shared || v.block == block_) {
    visit(i);
    return;
  }
  const std::int64_t instances =
      input_.workload.blocks[static_cast<std::size_t>(v.block)].instances();
  for (std::int64_t other = 0; other < instances; ++other) visit(other);
}

}  // namespace shardsim
