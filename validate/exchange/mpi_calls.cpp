#include "validate/exchange/mpi_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t element = sizeof(float);  // of reductions
constexpr int first_tag = 3;                     // permutes have 0, clocks 2

// The same on all processes, so that none waits for one that cannot.
void check_can_run(const Plan& plan) {
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) {
      if (!is_host_copy(task.kind)) continue;
      throw InputError({"", "/programs"},
                       "copies to the host and back are not run by the backend mpi");
    }
  }
  check_messages(plan);
  for (const Transfer& transfer : plan.transfers) (void)mpi_count(transfer.payload, 1);
}

// In bytes of a part, or elements of what is reduced.
int count_for(CollectiveKind kind, Bytes payload, std::int64_t members) {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return mpi_count(payload, members);
    case CollectiveKind::reduce_scatter:
      return mpi_count(payload, element * members);
    case CollectiveKind::all_reduce:
      return mpi_count(payload, element);
    case CollectiveKind::broadcast:
    case CollectiveKind::collective_permute:
      break;
  }
  return mpi_count(payload, 1);
}

// With room for parts that are rounded up.
std::size_t largest_buffer(const Plan& plan) {
  Bytes largest{0};
  for (const Collective& collective : plan.collectives) {
    largest = std::max(largest, collective.payload);
  }
  for (const Transfer& transfer : plan.transfers) largest = std::max(largest, transfer.payload);
  return at(largest.count() + element * plan.mesh.devices());
}

}  // namespace

void check_mpi(int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CannotRunError("MPI: " + std::string(text.data(), at(length)));
}

int mpi_count(Bytes bytes, std::int64_t size) {
  const std::int64_t count = ceil_div(bytes.count(), size);
  if (count <= INT_MAX) return static_cast<int>(count);
  throw InputError(
      {"", "/collectives"},
      fmt::format("a message of {}: MPI counts {} elements at most", format_bytes(bytes), INT_MAX));
}

MpiCalls::MpiCalls() { check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_)); }

MpiCalls::~MpiCalls() { forget_groups(); }

void MpiCalls::forget_groups() {
  for (auto& [groups, communicator] : communicators_) {
    if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
  }
  communicators_.clear();
}

// Of the group that this process is in; null where it is in none. Every process splits.
MPI_Comm MpiCalls::communicator(const Groups& groups) {
  const auto found = communicators_.find(groups);
  if (found != communicators_.end()) return found->second;
  const std::optional<Membership> mine = membership_in(groups, rank_);
  MPI_Comm group = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(MPI_COMM_WORLD, mine ? mine->color : MPI_UNDEFINED, mine ? mine->key : 0,
                           &group));
  communicators_.emplace(groups, group);
  return group;
}

MpiCalls::Call MpiCalls::permute_of(const Plan& plan, const Collective& collective) const {
  Call call;
  call.kind = collective.kind;
  call.count = mpi_count(collective.payload, 1);
  Neighbours neighbours = neighbours_in(plan, collective, rank_);
  call.targets = std::move(neighbours.targets);
  call.sources = std::move(neighbours.sources);
  if (!call.targets.empty() || !call.sources.empty()) call.group = MPI_COMM_WORLD;
  return call;
}

MpiCalls::Call MpiCalls::call_of(const Plan& plan, const Collective& collective) {
  if (collective.kind == CollectiveKind::collective_permute) return permute_of(plan, collective);
  const Groups groups = groups_of(plan, collective);
  Call call;
  call.kind = collective.kind;
  call.count = count_for(collective.kind, collective.payload,
                         static_cast<std::int64_t>(groups.front().size()));
  call.group = communicator(groups);
  return call;
}

MpiCalls::Message MpiCalls::message_of(const Plan& plan, std::size_t program,
                                       const Transfer& transfer) const {
  return {static_cast<int>(peer_of(plan, program, transfer, rank_)), transfer.sends,
          mpi_count(transfer.payload, 1), first_tag + transfer.channel};
}

void MpiCalls::prepare(const Plan& plan, std::size_t program) {
  check_can_run(plan);
  calls_.clear();
  for (const Collective& collective : plan.collectives) calls_.push_back(call_of(plan, collective));
  messages_.assign(plan.transfers.size(), {});
  for (const Task& task : plan.programs[program].tasks) {
    if (task.kind != TaskKind::transfer) continue;
    messages_[at(task.work)] = message_of(plan, program, plan.transfers[at(task.work)]);
  }
  sent_.assign(largest_buffer(plan), 0);
  received_.assign(largest_buffer(plan), 0);
}

void MpiCalls::permute(const Call& call) {
  std::vector<MPI_Request> requests;
  for (const int source : call.sources) {
    check_mpi(MPI_Irecv(received_.data(), call.count, MPI_BYTE, source, 0, call.group,
                        &requests.emplace_back()));
  }
  for (const int target : call.targets) {
    check_mpi(MPI_Isend(sent_.data(), call.count, MPI_BYTE, target, 0, call.group,
                        &requests.emplace_back()));
  }
  check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

void MpiCalls::run_collective(std::size_t index) {
  const Call& call = calls_[index];
  if (call.group == MPI_COMM_NULL) return;
  void* to = received_.data();
  const void* from = sent_.data();
  switch (call.kind) {
    case CollectiveKind::all_gather:
      return check_mpi(
          MPI_Allgather(from, call.count, MPI_BYTE, to, call.count, MPI_BYTE, call.group));
    case CollectiveKind::all_to_all:
      return check_mpi(
          MPI_Alltoall(from, call.count, MPI_BYTE, to, call.count, MPI_BYTE, call.group));
    case CollectiveKind::reduce_scatter:
      return check_mpi(
          MPI_Reduce_scatter_block(from, to, call.count, MPI_FLOAT, MPI_SUM, call.group));
    case CollectiveKind::all_reduce:
      return check_mpi(MPI_Allreduce(from, to, call.count, MPI_FLOAT, MPI_SUM, call.group));
    case CollectiveKind::broadcast:
      return check_mpi(MPI_Bcast(to, call.count, MPI_BYTE, 0, call.group));
    case CollectiveKind::collective_permute:
      return permute(call);
  }
}

void MpiCalls::run_transfer(std::size_t index) {
  const Message& message = messages_[index];
  if (message.sends) {
    check_mpi(MPI_Isend(sent_.data(), message.count, MPI_BYTE, message.peer, message.tag,
                        MPI_COMM_WORLD, &under_way_.emplace_back()));
    return;
  }
  check_mpi(MPI_Recv(received_.data(), message.count, MPI_BYTE, message.peer, message.tag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

void MpiCalls::finish() {
  check_mpi(
      MPI_Waitall(static_cast<int>(under_way_.size()), under_way_.data(), MPI_STATUSES_IGNORE));
  under_way_.clear();
}

}  // namespace shardsim
