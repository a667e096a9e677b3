// The collectives and messages of a plan as calls of MPI, on this process.
//
// Reductions are sums of fp32, whatever the plan's type. Parts are rounded up to elements.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "validate/exchange/membership.hpp"

namespace shardsim {

// Throws CannotRunError with MPI's text.
void check_mpi(int code);

// Elements of `size` bytes that hold `bytes`. Throws InputError for more than MPI counts.
[[nodiscard]] int mpi_count(Bytes bytes, std::int64_t size);

class MpiCalls {
 public:
  MpiCalls();   // MPI is initialized
  ~MpiCalls();  // and not finalized yet
  MpiCalls(const MpiCalls&) = delete;
  MpiCalls& operator=(const MpiCalls&) = delete;

  // All processes call it with the same plan, of which this one runs that program. Throws
  // InputError on all alike.
  void prepare(const Plan& plan, std::size_t program);

  // Of plans prepared before, and what the library decided for them.
  void forget_groups();

  // By index into Plan::collectives and Plan::transfers. What is sent between programs is on its
  // way until finish().
  void run_collective(std::size_t index);
  void run_transfer(std::size_t index);
  void finish();

 private:
  struct Call {
    CollectiveKind kind = CollectiveKind::all_reduce;
    MPI_Comm group = MPI_COMM_NULL;  // null: this process has no part in it
    int count = 0;                   // bytes of a member's part, or fp32 of what is reduced
    std::vector<int> targets;        // of a permute
    std::vector<int> sources;
  };
  struct Message {
    int peer = 0;
    bool sends = true;
    int count = 0;  // bytes
    int tag = 0;
  };

  [[nodiscard]] MPI_Comm communicator(const Groups& groups);
  [[nodiscard]] Call call_of(const Plan& plan, const Collective& collective);
  [[nodiscard]] Call permute_of(const Plan& plan, const Collective& collective) const;
  [[nodiscard]] Message message_of(const Plan& plan, std::size_t program,
                                   const Transfer& transfer) const;
  void permute(const Call& call);

  int rank_ = 0;
  std::map<Groups, MPI_Comm> communicators_;
  std::vector<Call> calls_;
  std::vector<Message> messages_;
  std::vector<char> sent_;
  std::vector<char> received_;
  std::vector<MPI_Request> under_way_;  // messages
};

}  // namespace shardsim
