#include "validate/mpi_backend.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <map>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "sim/collective_cost.hpp"
#include "validate/cpu_work.hpp"
#include "validate/watchdog.hpp"

namespace shardsim {
namespace {

using Clock = std::chrono::steady_clock;
using Groups = std::vector<std::vector<std::int64_t>>;

constexpr int cannot_run = 4;  // exit code

void check(int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CannotRunError("MPI: " + std::string(text.data(), at(length)));
}

// Elements of `size` bytes that hold `bytes`, as MPI counts them.
int count_of(Bytes bytes, std::int64_t size) {
  const std::int64_t count = ceil_div(bytes.count(), size);
  if (count <= INT_MAX) return static_cast<int>(count);
  throw InputError(
      {"", "/collectives"},
      fmt::format("a message of {}: MPI counts {} elements at most", format_bytes(bytes), INT_MAX));
}

// How a collective is run on this process.
struct Call {
  CollectiveKind kind = CollectiveKind::all_reduce;
  MPI_Comm group = MPI_COMM_NULL;  // null: it has no part in it
  int count = 0;                   // bytes of a member's part, or fp32 of what is reduced
  std::vector<int> targets;        // of a permute
  std::vector<int> sources;
  std::string name;
};

// A message to or from a process.
struct Message {
  int peer = 0;
  bool sends = true;
  int count = 0;
};

class MpiBackend : public Backend {
 public:
  MpiBackend(Seconds patience, Stalled stalled);
  ~MpiBackend() override;
  MpiBackend(const MpiBackend&) = delete;
  MpiBackend& operator=(const MpiBackend&) = delete;

  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::string name() const override { return "mpi"; }
  [[nodiscard]] std::string library() const override;
  [[nodiscard]] std::string host() const override;
  [[nodiscard]] std::vector<std::string> notes() const override;
  [[nodiscard]] std::vector<std::string> exchange(const std::string& mine) override;
  void prepare(const Plan& plan) override;
  [[nodiscard]] std::vector<TaskSpan> run_step() override;
  void abort(int code) override;

 private:
  void stall(const std::string& what);
  [[nodiscard]] MPI_Comm communicator(const Groups& groups);
  [[nodiscard]] Call call_of(const Plan& plan, const Collective& collective);
  [[nodiscard]] Message message_of(const Plan& plan, std::size_t program, const Transfer& transfer);
  void run(const Call& call);
  void permute(const Call& call);
  void run(const Message& message);
  void run(const Task& task);
  [[nodiscard]] std::string name_of_task(const Task& task) const;

  int rank_ = 0;
  int size_ = 1;
  Stalled stalled_;
  std::map<Groups, MPI_Comm> communicators_;
  CpuWork work_;
  const Plan* plan_ = nullptr;
  const Program* program_ = nullptr;
  std::vector<Call> calls_;         // by index into Plan::collectives
  std::vector<Message> messages_;   // by index into Plan::transfers
  std::vector<std::string> names_;  // of the program's tasks, for who waits in vain
  std::vector<char> sent_;
  std::vector<char> received_;
  std::vector<MPI_Request> under_way_;  // messages of the step
  Watchdog watchdog_;
};

MpiBackend::MpiBackend(Seconds patience, Stalled stalled)
    : stalled_(std::move(stalled)),
      watchdog_(std::chrono::duration<double>(patience.count()),
                [this](const std::string& what) { stall(what); }) {
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_));
}

MpiBackend::~MpiBackend() {
  for (auto& [groups, communicator] : communicators_) {
    if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
  }
  watchdog_.tell("the end of all processes");
  MPI_Finalize();
  watchdog_.rest();
}

std::string MpiBackend::library() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length));
  const std::string whole(text.data(), at(length));
  return whole.substr(0, whole.find_first_of(",\n"));
}

std::string MpiBackend::host() const {
  std::array<char, MPI_MAX_PROCESSOR_NAME> text{};
  int length = 0;
  check(MPI_Get_processor_name(text.data(), &length));
  return {text.data(), at(length)};
}

std::vector<std::string> MpiBackend::notes() const {
  return {"streams one behind the other: a core computes or communicates",
          "matmuls and attention as fp32 products of as many operations and elements, reductions "
          "as sums "
          "of fp32 of as many bytes"};
}

std::vector<std::string> MpiBackend::exchange(const std::string& mine) {
  watchdog_.tell("what all processes exchange");
  const int length = count_of(Bytes(static_cast<std::int64_t>(mine.size())), 1);
  std::vector<int> lengths(at(size_));
  check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD));
  std::vector<int> begins(at(size_), 0);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    begins[i] = count_of(Bytes(total), 1);
    total += lengths[i];
  }
  std::string all(at(total), '\0');
  check(MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(),
                       MPI_CHAR, MPI_COMM_WORLD));
  watchdog_.rest();
  std::vector<std::string> given;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    given.push_back(all.substr(at(begins[i]), at(lengths[i])));
  }
  return given;
}

// The others, who wait for the same, are given the time to say so.
void MpiBackend::stall(const std::string& what) {
  stalled_(what);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  abort(cannot_run);
}

void MpiBackend::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

// Of the group that this process is in; null where it is in none. Every process splits.
MPI_Comm MpiBackend::communicator(const Groups& groups) {
  const auto found = communicators_.find(groups);
  if (found != communicators_.end()) return found->second;
  int color = MPI_UNDEFINED;
  int key = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto member = std::find(groups[i].begin(), groups[i].end(), rank_);
    if (member == groups[i].end()) continue;
    color = static_cast<int>(i);
    key = static_cast<int>(member - groups[i].begin());
  }
  MPI_Comm group = MPI_COMM_NULL;
  check(MPI_Comm_split(MPI_COMM_WORLD, color, key, &group));
  communicators_.emplace(groups, group);
  return group;
}

Call MpiBackend::call_of(const Plan& plan, const Collective& collective) {
  Call call;
  call.kind = collective.kind;
  call.name = fmt::format("{} of {}", name_of(collective.kind), format_bytes(collective.payload));
  if (collective.kind == CollectiveKind::collective_permute) {
    for (const auto& [source, target] : permute_pairs(plan.mesh, collective)) {
      if (source == rank_) call.targets.push_back(static_cast<int>(target));
      if (target == rank_) call.sources.push_back(static_cast<int>(source));
    }
    if (!call.targets.empty() || !call.sources.empty()) call.group = MPI_COMM_WORLD;
    call.count = count_of(collective.payload, 1);
    return call;
  }
  const Groups groups =
      collective.groups.empty() ? plan.mesh.groups(collective.axes) : collective.groups;
  call.group = communicator(groups);
  const auto members = static_cast<std::int64_t>(groups.front().size());
  constexpr std::int64_t size = sizeof(float);
  switch (collective.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      call.count = count_of(collective.payload, members);
      break;
    case CollectiveKind::reduce_scatter:
      call.count = count_of(collective.payload, size * members);
      break;
    case CollectiveKind::all_reduce:
      call.count = count_of(collective.payload, size);
      break;
    case CollectiveKind::broadcast:
    case CollectiveKind::collective_permute:
      call.count = count_of(collective.payload, 1);
      break;
  }
  return call;
}

// The device of the same place in the other program.
Message MpiBackend::message_of(const Plan& plan, std::size_t program, const Transfer& transfer) {
  const auto& mine = plan.programs[program].devices;
  const auto& theirs = plan.programs[at(transfer.peer_program)].devices;
  const auto place = std::find(mine.begin(), mine.end(), rank_) - mine.begin();
  return {static_cast<int>(theirs.at(at(place))), transfer.sends, count_of(transfer.payload, 1)};
}

// The same on all processes, so that none waits for one that cannot.
void check_can_run(const Plan& plan) {
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) {
      if (task.kind != TaskKind::host_copy) continue;
      throw InputError({"", "/programs"}, "copies to the host are not run by the backend mpi");
    }
  }
  for (const Transfer& transfer : plan.transfers) (void)count_of(transfer.payload, 1);
}

void MpiBackend::prepare(const Plan& plan) {
  if (plan.mesh.devices() != size_) {
    throw InputError({"", "/mesh"}, fmt::format("a mesh of {} for MPI's {}: mpirun -n {}",
                                                counted(plan.mesh.devices(), "device"), size_,
                                                plan.mesh.devices()));
  }
  check_can_run(plan);
  plan_ = &plan;
  const std::size_t program = program_at(plan, rank_);
  program_ = &plan.programs[program];
  calls_.clear();
  messages_.clear();
  Bytes largest{0};
  for (const Collective& collective : plan.collectives) {
    watchdog_.tell("a split into groups");
    calls_.push_back(call_of(plan, collective));
    largest = std::max(largest, collective.payload);
  }
  watchdog_.rest();
  messages_.resize(plan.transfers.size());
  for (const Task& task : program_->tasks) {
    if (task.kind != TaskKind::transfer) continue;
    const Transfer& transfer = plan.transfers[at(task.work)];
    messages_[at(task.work)] = message_of(plan, program, transfer);
    largest = std::max(largest, transfer.payload);
  }
  names_.clear();
  for (const Task& task : program_->tasks) names_.push_back(name_of_task(task));
  // Parts are rounded up to elements, of which every member has one more at most.
  const auto room = at(largest.count()) + sizeof(float) * at(size_);
  sent_.assign(room, 0);
  received_.assign(room, 0);
}

void MpiBackend::permute(const Call& call) {
  std::vector<MPI_Request> requests;
  for (const int source : call.sources) {
    check(MPI_Irecv(received_.data(), call.count, MPI_BYTE, source, 0, MPI_COMM_WORLD,
                    &requests.emplace_back()));
  }
  for (const int target : call.targets) {
    check(MPI_Isend(sent_.data(), call.count, MPI_BYTE, target, 0, MPI_COMM_WORLD,
                    &requests.emplace_back()));
  }
  check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

void MpiBackend::run(const Call& call) {
  void* to = received_.data();
  const void* from = sent_.data();
  switch (call.kind) {
    case CollectiveKind::all_gather:
      return check(MPI_Allgather(from, call.count, MPI_BYTE, to, call.count, MPI_BYTE, call.group));
    case CollectiveKind::all_to_all:
      return check(MPI_Alltoall(from, call.count, MPI_BYTE, to, call.count, MPI_BYTE, call.group));
    case CollectiveKind::reduce_scatter:
      return check(MPI_Reduce_scatter_block(from, to, call.count, MPI_FLOAT, MPI_SUM, call.group));
    case CollectiveKind::all_reduce:
      return check(MPI_Allreduce(from, to, call.count, MPI_FLOAT, MPI_SUM, call.group));
    case CollectiveKind::broadcast:
      return check(MPI_Bcast(to, call.count, MPI_BYTE, 0, call.group));
    case CollectiveKind::collective_permute:
      return permute(call);
  }
}

// What is sent is on its way until the step ends; what is received is waited for.
void MpiBackend::run(const Message& message) {
  constexpr int tag = 1;
  if (message.sends) {
    check(MPI_Isend(sent_.data(), message.count, MPI_BYTE, message.peer, tag, MPI_COMM_WORLD,
                    &under_way_.emplace_back()));
    return;
  }
  check(MPI_Recv(received_.data(), message.count, MPI_BYTE, message.peer, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE));
}

void MpiBackend::run(const Task& task) {
  switch (task.kind) {
    case TaskKind::kernel:
      return work_.run(plan_->kernels[at(task.work)]);
    case TaskKind::collective:
      if (calls_[at(task.work)].group == MPI_COMM_NULL) return;
      return run(calls_[at(task.work)]);
    case TaskKind::transfer:
      return run(messages_[at(task.work)]);
    case TaskKind::host_copy:
      return;  // refused before
  }
}

std::string MpiBackend::name_of_task(const Task& task) const {
  const std::string name = plan_->task_name(task);
  if (task.kind != TaskKind::collective) return name;
  return fmt::format("{} ({})", calls_[at(task.work)].name, name);
}

std::vector<TaskSpan> MpiBackend::run_step() {
  std::vector<TaskSpan> spans(program_->tasks.size());
  watchdog_.tell("the beginning of a step");
  check(MPI_Barrier(MPI_COMM_WORLD));
  const auto begin = Clock::now();
  const auto since = [&] {
    return Seconds(std::chrono::duration<double>(Clock::now() - begin).count());
  };
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Task& task = program_->tasks[i];
    watchdog_.tell(names_[i]);
    spans[i].start = since();
    run(task);
    spans[i].end = since();
  }
  check(MPI_Waitall(static_cast<int>(under_way_.size()), under_way_.data(), MPI_STATUSES_IGNORE));
  under_way_.clear();
  watchdog_.rest();
  return spans;
}

}  // namespace

std::unique_ptr<Backend> make_mpi_backend(Seconds patience, Stalled stalled) {
  return std::make_unique<MpiBackend>(patience, std::move(stalled));
}

}  // namespace shardsim
