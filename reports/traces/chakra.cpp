#include "reports/traces/chakra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "reports/traces/chakra_fields.hpp"
#include "reports/traces/step_trace.hpp"

namespace shardsim {
namespace {

using ChakraNode = protozero::pbf_builder<chakra::Node>;
using ChakraAttribute = protozero::pbf_builder<chakra::Attribute>;

constexpr std::int64_t whole_microsecond = 1'000'000;

std::uint64_t nearest_microsecond(SimTime time) {
  return static_cast<std::uint64_t>((time.count() + whole_microsecond / 2) / whole_microsecond);
}

// The message behind its length.
void append_delimited(std::string& file, const std::string& message) {
  protozero::add_varint_to_buffer(&file, message.size());
  file += message;
}

chakra::CollectiveType type_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return chakra::CollectiveType::all_gather;
    case CollectiveKind::reduce_scatter:
      return chakra::CollectiveType::reduce_scatter;
    case CollectiveKind::all_reduce:
      return chakra::CollectiveType::all_reduce;
    case CollectiveKind::all_to_all:
      return chakra::CollectiveType::all_to_all;
    case CollectiveKind::broadcast:
      return chakra::CollectiveType::broadcast;
    case CollectiveKind::collective_permute:
      break;  // messages
  }
  assert(false);
  return chakra::CollectiveType::all_reduce;
}

// A node as it grows; its writer points to its bytes, so it stays where it is.
class NodeMessage {
 public:
  NodeMessage(std::uint64_t id, const std::string& name, chakra::NodeType type) : node_(bytes_) {
    node_.add_uint64(chakra::Node::id, id);
    node_.add_string(chakra::Node::name, name);
    node_.add_enum(chakra::Node::type, static_cast<std::int32_t>(type));
  }
  NodeMessage(const NodeMessage&) = delete;
  NodeMessage& operator=(const NodeMessage&) = delete;

  void depends(chakra::Node field, const std::vector<std::uint64_t>& on) {
    node_.add_packed_uint64(field, on.begin(), on.end());
  }
  void runs(const TaskTimes& times) {
    const std::uint64_t start = nearest_microsecond(times.start);
    node_.add_uint64(chakra::Node::start_time_micros, start);
    node_.add_uint64(chakra::Node::duration_micros, nearest_microsecond(times.end) - start);
  }
  // Of the types that MLCommons' own reader takes them from.
  void set_bool(const char* name, bool value) {
    named(name).add_bool(chakra::Attribute::bool_value, value);
  }
  void set_int32(const char* name, std::int32_t value) {
    named(name).add_int32(chakra::Attribute::int32_value, value);
  }
  void set_int64(const char* name, std::int64_t value) {
    named(name).add_int64(chakra::Attribute::int64_value, value);
  }
  void set_uint64(const char* name, std::int64_t value) {
    named(name).add_uint64(chakra::Attribute::uint64_value, static_cast<std::uint64_t>(value));
  }
  void set_string(const char* name, const std::string& value) {
    named(name).add_string(chakra::Attribute::string_value, value);
  }
  void append_to(std::string& file) const { append_delimited(file, bytes_); }

 private:
  ChakraAttribute named(const char* name) {
    ChakraAttribute attribute(node_, chakra::Node::attributes);
    attribute.add_string(chakra::Attribute::name, name);
    return attribute;
  }

  std::string bytes_;
  ChakraNode node_;
};

// Writes one file. A task has no node where the rank has no part in it, and two where it sends and
// receives; what waits for the task waits for all of its nodes, or for what these would wait for.
class ChakraRank {
 public:
  ChakraRank(const Plan& plan, const ChakraCommunicators& communicators, const Result* result,
             std::int32_t rank)
      : plan_(plan), communicators_(communicators), result_(result), rank_(rank) {
    for (const Transfer& transfer : plan.transfers) {
      channels_ = std::max(channels_, transfer.channel + 1);
    }
  }

  std::string write() {
    write_metadata();
    const std::int32_t p = communicators_.program_of(rank_);
    if (p == none) return std::move(file_);
    const Program& program = plan_.programs[at(p)];
    times_ = result_ == nullptr ? nullptr : &result_->programs[at(p)].tasks;
    nodes_.resize(program.tasks.size());
    std::vector<TaskId> last_in_stream(program.streams.size(), before_the_step);
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      const Task& task = program.tasks[i];
      task_ = static_cast<TaskId>(i);
      data_.clear();
      for (const TaskId id : program.after(task)) add_nodes(data_, id);
      control_.clear();
      const TaskId before = std::exchange(last_in_stream[task.stream], task_);
      if (before != before_the_step) add_nodes(control_, before);
      write_task(task);
      if (nodes_[i].empty()) {  // passes on what it waits for
        nodes_[i] = data_;
        for (const std::uint64_t id : control_) add(nodes_[i], id);
      }
    }
    return std::move(file_);
  }

 private:
  using Ids = std::vector<std::uint64_t>;
  static constexpr std::int32_t none = ChakraCommunicators::none;

  static void add(Ids& ids, std::uint64_t id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  void add_nodes(Ids& ids, TaskId task) const {
    for (const std::uint64_t id : nodes_[at(task)]) add(ids, id);
  }

  void write_metadata() {
    std::string bytes;
    protozero::pbf_builder<chakra::Metadata> metadata(bytes);
    metadata.add_string(chakra::Metadata::version, chakra::schema_version);
    const auto named = [&](const char* name, const auto& fill) {
      ChakraAttribute attribute(metadata, chakra::Metadata::attributes);
      attribute.add_string(chakra::Attribute::name, name);
      fill(attribute);
    };
    const auto set_text = [&](const char* name, const std::string& text) {
      named(name, [&](ChakraAttribute& attribute) {
        attribute.add_string(chakra::Attribute::string_value, text);
      });
    };
    set_text("generator", fmt::format("shardsim {}", program_version));
    set_text("model", plan_.subject.model);
    set_text("strategy", plan_.subject.strategy);
    named("rank", [&](ChakraAttribute& attribute) {
      attribute.add_int64(chakra::Attribute::int64_value, rank_);
    });
    append_delimited(file_, bytes);
  }

  // Every task has room for two nodes, so that their ids are in the order of tasks on all ranks.
  template <class Fill>
  void write_node(const Task& task, chakra::NodeType type, const Fill& fill) {
    Ids& nodes = nodes_[at(task_)];
    const std::uint64_t id = 2 * static_cast<std::uint64_t>(task_) + 1 + nodes.size();
    nodes.push_back(id);
    NodeMessage message(id, label_of(plan_, task), type);
    message.depends(chakra::Node::control_dependencies, control_);
    message.depends(chakra::Node::data_dependencies, data_);
    if (times_ != nullptr) message.runs((*times_)[at(task_)]);
    message.set_bool("is_cpu_op", false);
    fill(message);
    message.append_to(file_);
  }

  void write_task(const Task& task) {
    switch (task.kind) {
      case TaskKind::kernel:
        return write_kernel(task);
      case TaskKind::collective:
        return write_collective(task);
      case TaskKind::transfer:
        return write_transfer(task);
      case TaskKind::to_host:
      case TaskKind::from_host:
        return write_host_copy(task);
    }
  }

  void write_kernel(const Task& task) {
    const Kernel& kernel = plan_.kernels[at(task.work)];
    write_node(task, chakra::NodeType::compute, [&](NodeMessage& message) {
      const std::int64_t operations = std::llround(kernel.flops.count());
      message.set_int64("num_ops", std::max(std::int64_t{1}, operations));
      message.set_uint64("tensor_size", std::max(std::int64_t{1}, kernel.bytes.count()));
      message.set_string("op", kernel.op);
    });
  }

  void write_host_copy(const Task& task) {
    const auto type = task.kind == TaskKind::to_host ? chakra::NodeType::memory_store
                                                     : chakra::NodeType::memory_load;
    write_node(task, type, [&](NodeMessage& message) {
      message.set_uint64("tensor_size", plan_.kernels[at(task.work)].bytes.count());
    });
  }

  void write_collective(const Task& task) {
    const Collective& collective = plan_.collectives[at(task.work)];
    const ChakraCommunicators::Grouping& grouping = communicators_.grouping_of(task.work);
    if (collective.kind == CollectiveKind::collective_permute) {
      const std::int32_t to = grouping.sends_to[at(rank_)];
      const std::int32_t from = grouping.receives_from[at(rank_)];
      // Sends come first: a reader that runs one message at a time would wait for ever else.
      if (to != none) write_message(task, true, to, collective.payload, task_);
      if (from != none) write_message(task, false, from, collective.payload, task_);
      return;
    }
    const std::int32_t group = grouping.group_of[at(rank_)];
    if (group == none) return;
    const auto size = static_cast<std::int64_t>(communicators_.groups()[at(group)].size());
    const bool gathers = collective.kind == CollectiveKind::all_gather;
    write_node(task, chakra::NodeType::collective, [&](NodeMessage& message) {
      message.set_int64("comm_type", static_cast<std::int64_t>(type_of(collective.kind)));
      message.set_int64("comm_size", gathers ? ceil_div(collective.payload.count(), size)
                                             : collective.payload.count());
      message.set_int32("comm_priority", 0);
      message.set_string("pg_name", std::to_string(group + 1));
    });
  }

  void write_transfer(const Task& task) {
    const Transfer& transfer = plan_.transfers[at(task.work)];
    const Program& peer = plan_.programs[at(transfer.peer_program)];
    const std::int64_t place = communicators_.place_of(rank_);
    const Program& own = plan_.programs[at(communicators_.program_of(rank_))];
    if (own.devices.size() != peer.devices.size()) {
      throw InputError({"", "program " + own.name},
                       "messages between programs of different size are in no Chakra trace");
    }
    const std::int64_t other = peer.devices.empty() ? place : peer.devices[at(place)];
    // The k-th of a channel has one tag at both ends, and those of other channels have others.
    const std::int32_t next =
        next_tag_[{transfer.peer_program, transfer.sends, transfer.channel}]++;
    const std::int32_t tag = next * channels_ + transfer.channel;
    write_message(task, transfer.sends, static_cast<std::int32_t>(other), transfer.payload, tag);
  }

  void write_message(const Task& task, bool sends, std::int32_t other, Bytes payload,
                     std::int32_t tag) {
    const auto type = sends ? chakra::NodeType::send : chakra::NodeType::receive;
    write_node(task, type, [&](NodeMessage& message) {
      message.set_int32("comm_src", sends ? rank_ : other);
      message.set_int32("comm_dst", sends ? other : rank_);
      message.set_int32("comm_tag", tag);
      message.set_int64("comm_size", payload.count());
    });
  }

  const Plan& plan_;
  const ChakraCommunicators& communicators_;
  const Result* result_;
  std::int32_t rank_;
  const std::vector<TaskTimes>* times_ = nullptr;
  std::string file_;
  TaskId task_ = 0;         // at hand
  Ids data_;                // what it waits for
  Ids control_;             // the one before it in its stream
  std::vector<Ids> nodes_;  // by task: what to wait for
  std::int32_t channels_ = 1;
  std::map<std::tuple<int, bool, std::int32_t>, std::int32_t> next_tag_;  // by peer and channel
};

}  // namespace

ChakraTraces::ChakraTraces(const Plan& plan, const Result* result)
    : plan_(plan), result_(result), communicators_(plan) {}

std::vector<std::int64_t> ChakraTraces::first_of_each_class() const {
  std::vector<std::int64_t> firsts;
  for (const Program& program : plan_.programs) {
    const std::vector<std::int64_t> devices = communicators_.devices_of(program);
    firsts.push_back(*std::min_element(devices.begin(), devices.end()));
  }
  return firsts;
}

std::string ChakraTraces::rank(std::int64_t rank) const {
  return ChakraRank(plan_, communicators_, result_, static_cast<std::int32_t>(rank)).write();
}

std::string ChakraTraces::communicators() const {
  Json json = Json::object();
  const auto& groups = communicators_.groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    append_member(json, std::to_string(i + 1), groups[i]);
  }
  return json.dump() + "\n";
}

std::string ChakraTraces::warning() const {
  constexpr std::int32_t streams_of_each = 1'000'000;
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max() / streams_of_each;
  const std::size_t count = communicators_.groups().size();
  if (count <= most) return {};
  return fmt::format("{} communicators are more than the {} whose streams ASTRA-sim can number",
                     format_count(static_cast<std::int64_t>(count)), format_count(most));
}

}  // namespace shardsim
