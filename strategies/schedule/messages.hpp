// A schedule with its sends and receives: what a rank posts, in order.
//
//   rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
//   rank 1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1
//
// A forward's result goes to the next stage, the gradient that a B or an I makes to the stage
// before, where that stage is another rank's. A send stands right behind its action (behind both of
// an overlapped pair). Where its receive stands on the other rank:
//
// when_needed: right before the action that needs it, as runtimes do that loop over microbatches
// (PyTorch's ScheduleGPipe and Schedule1F1B, Megatron's 1F1B).
//
// one_ahead: what the next forward of a rank needs right behind the forward before it, what the
// next backward needs behind the backward before it; the first backward's behind the last forward
// of the warm-up. With the send of the same action, which comes first on even ranks and last on odd
// ones (Megatron's interleaved schedule with overlap_p2p_comm, pipeline_parallel/schedules.py and
// p2p_communication.py of core 0.20). What the last rank of a direction hands on to the first one
// is received as it comes, ranks - 1 passes behind the one that makes it, which is one ahead unless
// more than `ranks` microbatches go through a stage in turn (recv_tensor_from_previous_stage).
//
// exchanged: as one_ahead, but all that a forward and the backward behind it send and receive goes
// in one exchange behind both, and the kernel behind that waits for what it brings (the same
// without overlap_p2p_comm: send_forward_backward_recv_forward_backward).
//
// with_sends: PyTorch's rule for lists of actions (_add_send_recv). Ranks take turns, each adds one
// action when what it needs has been sent, and a sender puts the receive at the end of what the
// receiver has so far. So receives are in the order of the sends of one such round, no rank
// receives in another order than its peer sends, and nothing hangs. What is no computation
// (unshards.hpp) takes its turn, too.
//
// What is sent is there until the send is through. Sends say who waits for that:
//
// unawaited: nobody before the schedule's end (the zero-bubble paper's runtime, which only asks
// whether sends have completed): what the order tells anyway holds (acknowledged.hpp).
//
// own_backward: of activations, who is next after the microbatch's backward pass through the same
// stage; of gradients nobody before the schedule's end (torch.distributed.pipelining's lists,
// PyTorch 2.15, schedules.py, _add_wait_send).
//
// next_kernel: the kernel behind the send (Megatron's batched exchanges, batch_isend_irecv followed
// by a wait for all: p2p_communication.py, batch_p2p_comm).
//
// next_send: the next send the same way, the kernel behind it (Megatron's interleaved schedule with
// overlap_p2p_comm, send_next_wait_handle and send_prev_wait_handle of schedules.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct Call {
  // From unshard on: of a stage, see unshards.hpp.
  enum class Kind : std::uint8_t {
    compute,
    send,
    receive,
    unshard,
    reshard,
    reduce,
    await_reduced
  };
  Kind kind = Kind::compute;
  // The computation; the one whose result is sent; the one that needs what is received; of others
  // its stage alone.
  Action action;

  friend bool operator==(const Call&, const Call&) = default;
};

// By rank.
using CallLists = std::vector<std::vector<Call>>;

// "0SEND_F0", "1RECV_B3", "2W1", "3UNSHARD". Words for a gradient are _B, for I as for B.
[[nodiscard]] std::string call_text(const Call& call);

// The computations of a schedule.
[[nodiscard]] CallLists computations(const PipelineSchedule& schedule);
// `lists` have no messages yet; they are of a schedule that verify() passes, or of its forwards.
[[nodiscard]] CallLists with_messages(const CallLists& lists, const PipelineShape& shape,
                                      Receives receives);

}  // namespace shardsim
