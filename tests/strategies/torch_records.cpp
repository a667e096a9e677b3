#include "torch_records.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>

#include "sharding/sharding.hpp"

namespace shardsim::test {
namespace {

// Experts' groups, "ep" and "efsdp", are parts of dp_shard, and tp with what "ep" has of it.
std::string recorded_axis(const Json& record, const std::string& name) {
  if (name != "ep" && name != "efsdp") return name;
  const Json& settings = record["strategy"]["settings"];
  int left = settings["ep"];  // of the devices of ep, which are the innermost
  std::string text;
  for (const std::string axis : {"tp", "cp", "dp_shard"}) {
    const int size = settings.value(axis, 1), taken = std::gcd(left, size);
    left /= taken;
    const int part = name == "ep" ? taken : size / taken;
    if (part == 1) continue;
    const std::string own = part == size ? axis : axis + "_sub" + std::to_string(part);
    text = text.empty() ? own : own + "_" + text;
  }
  return text;
}

// An all-to-all of which each rank sends everything to one other is a permute.
bool goes_to_one(const Json& call) {
  const auto holds_all = [&](const Json& split) { return split != "0"; };
  if (!call.contains("in_splits")) return false;
  const Json& splits = call["in_splits"];
  return splits.size() > 1 && std::count_if(splits.begin(), splits.end(), holds_all) == 1;
}

std::string recorded_call(const Json& record, const Json& call) {
  std::string kind = call["kind"];
  std::replace(kind.begin(), kind.end(), '_', '-');
  if (kind == "all-to-all" && goes_to_one(call)) kind = "collective-permute";
  const std::int64_t bytes = call[kind == "all-gather" ? "bytes_out" : "bytes_in"];
  if (call.contains("peer")) return kind + " " + std::to_string(bytes);
  const std::map<std::string, std::string> types = {{"bfloat16", "bf16"}, {"float32", "fp32"},
                                                    {"float64", "fp64"},  {"int64", "int64"},
                                                    {"int8", "int8"},     {"uint8", "uint8"}};
  return kind + " " + recorded_axis(record, call["axis"]) + " " + std::to_string(bytes) + " " +
         types.at(call["dtype"]);
}

// Does every message of a permute stay in one of the groups?
bool stay_within(const std::vector<std::pair<std::int64_t, std::int64_t>>& messages,
                 const std::vector<std::vector<std::int64_t>>& groups) {
  const auto stays = [&](const auto& message) {
    return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::count(group.begin(), group.end(), message.first) > 0 &&
             std::count(group.begin(), group.end(), message.second) > 0;
    });
  };
  return !messages.empty() && std::all_of(messages.begin(), messages.end(), stays);
}

// Over which a call of several programs goes, which has its groups alone.
AxisList axes_of(const Mesh& mesh, const Collective& call) {
  for (std::size_t i = 0; i < mesh.axes().size() && call.axes.empty(); ++i) {
    const AxisRef axis = mesh.whole(static_cast<int>(i));
    const auto groups = mesh.groups({axis});
    if (groups == call.groups || stay_within(call.source_targets, groups)) return {axis};
  }
  return call.axes;
}

// "dp_shard", and as the records have it "dp_shard_sub4" for four neighbours of a larger axis.
std::string recorded_name(const Mesh& mesh, const AxisList& axes) {
  std::string text;
  for (const AxisRef& part : axes) {
    const std::string name = mesh.name_of(mesh.whole(part.axis));
    text += (text.empty() ? "" : "_") + name +
            (mesh.is_whole(part) ? "" : "_sub" + std::to_string(part.size));
  }
  return text;
}

}  // namespace

Calls recorded_calls(const Json& record, bool with_clipping) {
  Calls calls;
  const Json& distinct = record["collectives"];
  for (const Json& run : record["order"]) {
    for (int times = run[1]; times > 0; --times) {
      for (const std::size_t index : run[0]) {
        const bool is_left_out = !with_clipping && distinct[index]["phase"] == "clip";
        if (!is_left_out) calls.push_back(recorded_call(record, distinct[index]));
      }
    }
  }
  return calls;
}

Calls planned_calls(const Plan& plan, const Program& program) {
  Calls calls;
  for (const Task& task : program.tasks) {
    if (task.kind == TaskKind::transfer) {
      const Transfer& t = plan.transfers[static_cast<std::size_t>(task.work)];
      calls.push_back((t.sends ? "send " : "recv ") + std::to_string(t.payload.count()));
    }
    if (task.kind != TaskKind::collective) continue;
    const Collective& c = plan.collectives[static_cast<std::size_t>(task.work)];
    calls.push_back(std::string(name_of(c.kind)) + " " +
                    recorded_name(plan.mesh, axes_of(plan.mesh, c)) + " " +
                    std::to_string(c.payload.count()) + " " + std::string(name_of(c.dtype)));
  }
  return calls;
}

bool same_calls(const Calls& ours, const Calls& theirs, const std::string& id) {
  const auto [mine, other] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (mine == ours.end() && other == theirs.end()) return true;
  std::cout << "  " << id << ": call " << mine - ours.begin() << " of " << theirs.size() << ": "
            << (mine == ours.end() ? "nothing" : *mine) << ", recorded "
            << (other == theirs.end() ? "nothing" : *other) << "\n";
  return false;
}

std::int64_t held_bytes(const Program& program, BufferCategory category) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.category == category && buffer.free_count == 0) bytes += buffer.bytes.count();
  }
  return bytes;
}

}  // namespace shardsim::test
