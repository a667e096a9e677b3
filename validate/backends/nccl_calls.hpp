// The collectives and messages of a plan as calls of NCCL, of this process or thread.
//
// A communicator for each set of groups, split off the world's, and one for each two programs and
// direction of their messages. What is reduced is summed in the plan's type; all else are bytes.
// All-to-alls and permutes are sends and receives at once, as PyTorch and NCCL's own tests have
// them. Parts are rounded up to elements. All share one buffer to send from and one to receive in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "validate/backends/cuda_handles.hpp"
#include "validate/exchange/exchange.hpp"
#include "validate/exchange/membership.hpp"

namespace shardsim {

class NcclCalls {
 public:
  explicit NcclCalls(Exchange& exchange) : exchange_(exchange) {}

  // All ranks call it with the same plan, of which this one runs that program. Throws InputError on
  // all alike for a reduction of a type that NCCL does not sum.
  void prepare(const Plan& plan, std::size_t program);

  // NCCL's name for it, "ring", for communicators that are made from now on; empty: its own choice.
  void choose_algorithm(CollectiveKind kind, const std::string& algorithm);

  // Behind what is on that stream already. By index into Plan::collectives and Plan::transfers.
  void launch_collective(std::size_t index, cudaStream_t stream);
  void launch_transfer(std::size_t index, cudaStream_t stream);

  // A small all-reduce of all ranks, which none leaves before the last has come.
  void meet(cudaStream_t stream);

  // What NCCL itself expects a collective to take (ncclGroupSimulateEnd); nothing where it does not
  // say, or this process has no part in it.
  [[nodiscard]] std::optional<Seconds> estimate(std::size_t index);

  // Throws CannotRunError where a communicator has failed, as it does when a process is gone.
  void check() const;

 private:
  struct Call {
    CollectiveKind kind = CollectiveKind::all_reduce;
    ncclComm_t group = nullptr;  // null: this process has no part in it
    int members = 1;
    std::size_t count = 0;  // elements of a member's part, or of all that is reduced
    ncclDataType_t type = ncclInt8;
    Neighbours neighbours;  // of a permute
  };
  struct Message {
    ncclComm_t pair = nullptr;
    int peer = 0;
    bool sends = true;
    std::size_t bytes = 0;
  };

  void connect();
  [[nodiscard]] ncclComm_t communicator(const Groups& groups, std::int32_t channel = 0);
  [[nodiscard]] Call call_of(const Plan& plan, const Collective& collective);
  void prepare_messages(const Plan& plan, std::size_t program);
  void call(const Call& call, cudaStream_t stream);
  void send_and_receive(const Call& call, cudaStream_t stream);

  Exchange& exchange_;
  cuda::Communicator world_;
  std::map<std::pair<Groups, std::int32_t>, cuda::Communicator> communicators_;  // and channel
  std::map<CollectiveKind, std::string> algorithms_;                             // chosen
  std::vector<Call> calls_;
  std::vector<Message> messages_;
  std::size_t room_ = 0;   // bytes of each buffer
  cuda::DeviceArray met_;  // an element, of meet()
  cuda::DeviceArray sent_;
  cuda::DeviceArray received_;
};

}  // namespace shardsim
