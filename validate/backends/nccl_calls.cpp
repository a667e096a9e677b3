#include "validate/backends/nccl_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace shardsim {
namespace {

struct NcclType {
  ncclDataType_t type = ncclInt8;
  std::int64_t bytes = 1;
};

std::optional<NcclType> summed_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return NcclType{ncclFloat64, 8};
    case DType::f32:
      return NcclType{ncclFloat32, 4};
    case DType::bf16:
      return NcclType{ncclBfloat16, 2};
    case DType::f16:
      return NcclType{ncclFloat16, 2};
    case DType::f8:
    case DType::f8_e4m3:
      return NcclType{ncclFloat8e4m3, 1};
    case DType::f8_e5m2:
      return NcclType{ncclFloat8e5m2, 1};
    case DType::i64:
      return NcclType{ncclInt64, 8};
    case DType::u64:
      return NcclType{ncclUint64, 8};
    case DType::i32:
      return NcclType{ncclInt32, 4};
    case DType::u32:
      return NcclType{ncclUint32, 4};
    case DType::i8:
      return NcclType{ncclInt8, 1};
    case DType::u8:
      return NcclType{ncclUint8, 1};
    default:
      return std::nullopt;
  }
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
}

// As NCCL_ALGO names it.
const char* nccl_function(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "allreduce";
    case CollectiveKind::all_gather:
      return "allgather";
    case CollectiveKind::reduce_scatter:
      return "reducescatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
    case CollectiveKind::collective_permute:
      break;
  }
  return nullptr;
}

// The largest payload, with room for parts that are rounded up.
std::size_t room_for(const Plan& plan) {
  constexpr std::int64_t largest_element = 8;
  Bytes largest{0};
  for (const Collective& collective : plan.collectives) {
    largest = std::max(largest, collective.payload);
  }
  for (const Transfer& transfer : plan.transfers) largest = std::max(largest, transfer.payload);
  return at(largest.count() + largest_element * plan.mesh.devices());
}

}  // namespace

// All ranks at once, of an id that the first has made.
void NcclCalls::connect() {
  ncclUniqueId id{};
  std::string mine;
  if (exchange_.rank() == 0) {
    check_nccl(ncclGetUniqueId(&id));
    mine.assign(id.internal, sizeof id.internal);
  }
  const std::vector<std::string> given = exchange_.all_gather(mine);
  std::copy_n(given.front().begin(), sizeof id.internal, id.internal);
  ncclComm_t made = nullptr;
  check_nccl(ncclCommInitRank(&made, static_cast<int>(exchange_.size()), id,
                              static_cast<int>(exchange_.rank())));
  world_.reset(made);
  met_ = cuda::device_array(Bytes(sizeof(float)));
  check_cuda(cudaMemset(met_.get(), 0, sizeof(float)));
}

// Of the group that this process is in; null where it is in none. Every process splits.
ncclComm_t NcclCalls::communicator(const Groups& groups, std::int32_t channel) {
  const auto found = communicators_.find({groups, channel});
  if (found != communicators_.end()) return found->second.get();
  const std::optional<Membership> mine = membership_in(groups, exchange_.rank());
  ncclComm_t made = nullptr;
  check_nccl(ncclCommSplit(world_.get(), mine ? mine->color : NCCL_SPLIT_NOCOLOR,
                           mine ? mine->key : 0, &made, nullptr));
  communicators_.emplace(std::pair(groups, channel), cuda::Communicator(made));
  return made;
}

NcclCalls::Call NcclCalls::call_of(const Plan& plan, const Collective& collective) {
  Call call;
  call.kind = collective.kind;
  if (collective.kind == CollectiveKind::collective_permute) {
    call.count = at(collective.payload.count());
    call.neighbours = neighbours_in(plan, collective, exchange_.rank());
    const bool takes_part = !call.neighbours.sources.empty() || !call.neighbours.targets.empty();
    call.group = takes_part ? world_.get() : nullptr;
    return call;
  }
  const Groups groups = groups_of(plan, collective);
  call.group = communicator(groups);
  call.members = static_cast<int>(groups.front().size());
  std::int64_t bytes = collective.payload.count();
  if (reduces(collective.kind)) {
    const std::optional<NcclType> type = summed_type(collective.dtype);
    if (!type) {
      throw InputError({"", "/collectives"},
                       fmt::format("NCCL does not sum {}", name_of(collective.dtype)));
    }
    call.type = type->type;
    bytes = ceil_div(bytes, type->bytes);
  }
  const bool is_whole =
      call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::broadcast;
  call.count = at(is_whole ? bytes : ceil_div(bytes, std::int64_t{call.members}));
  return call;
}

// Every process splits, in the order of the programs. A channel has communicators of its own: on
// one of them messages arrive in the order in which both ends call for them.
void NcclCalls::prepare_messages(const Plan& plan, std::size_t program) {
  messages_.assign(plan.transfers.size(), {});
  check_messages(plan);
  using Channel = std::tuple<std::size_t, std::size_t, std::int32_t>;  // who sends to whom on which
  const auto channel_of = [](std::size_t p, const Transfer& transfer) {
    const std::size_t peer = at(transfer.peer_program);
    return transfer.sends ? Channel{p, peer, transfer.channel} : Channel{peer, p, transfer.channel};
  };
  std::set<Channel> channels;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    for (const Task& task : plan.programs[p].tasks) {
      if (task.kind != TaskKind::transfer) continue;
      channels.insert(channel_of(p, plan.transfers[at(task.work)]));
    }
  }
  std::map<Channel, cuda::Communicator*> of_channel;
  for (const auto& [sender, receiver, number] : channels) {
    Groups groups;
    const auto& senders = plan.programs[sender].devices;
    const auto& receivers = plan.programs[receiver].devices;
    for (std::size_t i = 0; i < senders.size(); ++i) groups.push_back({senders[i], receivers[i]});
    (void)communicator(groups, number);
    of_channel[{sender, receiver, number}] = &communicators_.at({groups, number});
  }
  for (const Task& task : plan.programs[program].tasks) {
    if (task.kind != TaskKind::transfer) continue;
    const Transfer& transfer = plan.transfers[at(task.work)];
    messages_[at(task.work)] = {of_channel.at(channel_of(program, transfer))->get(),
                                transfer.sends ? 1 : 0, transfer.sends,
                                at(transfer.payload.count())};
  }
}

// NCCL_ALGO is read when a communicator is made: "allreduce:ring;broadcast:tree" (NCCL 2.24,
// src/graph/tuning.cc). Threads of a process set it together, and none makes one meanwhile.
void NcclCalls::choose_algorithm(CollectiveKind kind, const std::string& algorithm) {
  if (algorithms_[kind] == algorithm) return;
  const char* function = nccl_function(kind);
  if (function == nullptr) {
    throw InputError({"command line", "/algorithms"},
                     fmt::format("NCCL has no algorithms for {}", name_of(kind)));
  }
  algorithms_[kind] = algorithm;
  std::string value;
  for (const auto& [of, chosen] : algorithms_) {
    if (chosen.empty()) continue;
    value += fmt::format("{}{}:{}", value.empty() ? "" : ";", nccl_function(of), chosen);
  }
  (void)exchange_.all_gather("");
  {
    static std::mutex of_environment;
    const std::lock_guard lock(of_environment);
    if (value.empty()) {
      unsetenv("NCCL_ALGO");
    } else {
      setenv("NCCL_ALGO", value.c_str(), 1);
    }
  }
  (void)exchange_.all_gather("");
  communicators_.clear();  // they were made for the one before
}

void NcclCalls::prepare(const Plan& plan, std::size_t program) {
  if (!world_) connect();
  calls_.clear();
  for (const Collective& collective : plan.collectives) calls_.push_back(call_of(plan, collective));
  prepare_messages(plan, program);
  if (plan.collectives.empty() && plan.transfers.empty()) return;
  if (room_for(plan) <= room_) return;
  room_ = room_for(plan);
  sent_ = {};  // before more is taken
  received_ = {};
  sent_ = cuda::device_array(Bytes(static_cast<std::int64_t>(room_)));
  received_ = cuda::device_array(Bytes(static_cast<std::int64_t>(room_)));
  check_cuda(cudaMemset(sent_.get(), 0, room_));
}

void NcclCalls::send_and_receive(const Call& call, cudaStream_t stream) {
  const auto* sent = static_cast<const char*>(sent_.get());
  auto* received = static_cast<char*>(received_.get());
  if (call.kind == CollectiveKind::collective_permute) {
    for (const int target : call.neighbours.targets) {
      check_nccl(ncclSend(sent, call.count, call.type, target, call.group, stream));
    }
    for (const int source : call.neighbours.sources) {
      check_nccl(ncclRecv(received, call.count, call.type, source, call.group, stream));
    }
    return;
  }
  for (int peer = 0; peer < call.members; ++peer) {
    const std::size_t offset = call.count * at(peer);
    check_nccl(ncclSend(sent + offset, call.count, call.type, peer, call.group, stream));
    check_nccl(ncclRecv(received + offset, call.count, call.type, peer, call.group, stream));
  }
}

void NcclCalls::call(const Call& call, cudaStream_t stream) {
  const void* from = sent_.get();
  void* to = received_.get();
  switch (call.kind) {
    case CollectiveKind::all_gather:
      return check_nccl(ncclAllGather(from, to, call.count, call.type, call.group, stream));
    case CollectiveKind::reduce_scatter:
      return check_nccl(
          ncclReduceScatter(from, to, call.count, call.type, ncclSum, call.group, stream));
    case CollectiveKind::all_reduce:
      return check_nccl(
          ncclAllReduce(from, to, call.count, call.type, ncclSum, call.group, stream));
    case CollectiveKind::broadcast:
      return check_nccl(ncclBroadcast(from, to, call.count, call.type, 0, call.group, stream));
    case CollectiveKind::all_to_all:
    case CollectiveKind::collective_permute:
      return send_and_receive(call, stream);
  }
}

void NcclCalls::launch_collective(std::size_t index, cudaStream_t stream) {
  if (calls_[index].group == nullptr) return;
  check_nccl(ncclGroupStart());
  call(calls_[index], stream);
  check_nccl(ncclGroupEnd());
}

void NcclCalls::launch_transfer(std::size_t index, cudaStream_t stream) {
  const Message& message = messages_[index];
  if (message.sends) {
    return check_nccl(
        ncclSend(sent_.get(), message.bytes, ncclInt8, message.peer, message.pair, stream));
  }
  check_nccl(
      ncclRecv(received_.get(), message.bytes, ncclInt8, message.peer, message.pair, stream));
}

void NcclCalls::meet(cudaStream_t stream) {
  check_nccl(ncclAllReduce(met_.get(), met_.get(), 1, ncclFloat32, ncclSum, world_.get(), stream));
}

std::optional<Seconds> NcclCalls::estimate(std::size_t index) {
  if (calls_[index].group == nullptr) return std::nullopt;
  check_nccl(ncclGroupStart());
  call(calls_[index], nullptr);
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  check_nccl(ncclGroupSimulateEnd(&info));
  if (info.estimatedTime <= 0) return std::nullopt;
  constexpr double microsecond = 1e-6;
  return Seconds(static_cast<double>(info.estimatedTime) * microsecond);
}

void NcclCalls::check() const {
  const auto check_one = [](const cuda::Communicator& communicator) {
    if (!communicator) return;
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(communicator.get(), &state));
    check_nccl(state);
  };
  check_one(world_);
  for (const auto& [groups, communicator] : communicators_) check_one(communicator);
}

}  // namespace shardsim
