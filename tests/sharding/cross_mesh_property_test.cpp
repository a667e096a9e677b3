// Laws of resharding between meshes, for random arrays, meshes and shardings, and the golden
// intermediates of Pathways' documented behaviour.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>

#include "base/json.hpp"
#include "cross_mesh_helpers.hpp"
#include "sharding/cross_mesh_candidates.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

Mesh random_mesh() {
  return Mesh({{"a", *rc::gen::inRange<std::int64_t>(1, 5)},
               {"b", *rc::gen::inRange<std::int64_t>(1, 4)},
               {"c", *rc::gen::inRange<std::int64_t>(1, 3)}});
}

// Every axis splits one dimension or none; `all` leaves none out.
Sharding random_sharding(const Mesh& mesh, std::size_t rank, bool all) {
  Sharding sharding = replicated(rank);
  const int nowhere = all ? 0 : 1;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    const auto dim = *rc::gen::inRange<std::size_t>(0, rank + static_cast<std::size_t>(nowhere));
    if (dim < rank) sharding.dims[dim].axes.push_back(mesh.whole(axis));
  }
  return sharding;
}

ReshardTask random_task(bool all_axes) {
  const auto shape = *rc::gen::nonEmpty(rc::gen::resize(
      3, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 13))));
  const Mesh from = random_mesh();
  const Mesh to = random_mesh();
  const bool shared = *rc::gen::arbitrary<bool>();
  return {shape,
          DType::bf16,
          numbered(from, 0),
          random_sharding(from, shape.size(), all_axes),
          numbered(to, shared ? 0 : from.devices()),
          random_sharding(to, shape.size(), all_axes),
          {}};
}

std::vector<Message> messages_of(const ReshardTask& task) {
  std::vector<Message> messages;
  for_each_message(
      task.shape, size_of(task.dtype), {task.source_mesh, task.source},
      {task.target_mesh, task.target}, [](std::int64_t device) { return device / 4; },
      [&](const Message& message) { messages.push_back(message); });
  return messages;
}

std::int64_t elements(const std::vector<DimRange>& box) {
  std::int64_t count = 1;
  for (const DimRange& range : box) count *= range.size();
  return count;
}

std::vector<DimRange> common(const std::vector<DimRange>& a, const std::vector<DimRange>& b) {
  std::vector<DimRange> box;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const std::int64_t begin = std::max(a[d].begin, b[d].begin);
    box.push_back({begin, std::max(begin, std::min(a[d].end, b[d].end))});
  }
  return box;
}

// Row-major numbers of the elements in a box.
std::vector<std::int64_t> cells(const std::vector<DimRange>& box,
                                const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> result{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t cell : result) {
      for (std::int64_t i = box[d].begin; i < box[d].end; ++i) next.push_back(cell * shape[d] + i);
    }
    result = std::move(next);
  }
  return result;
}

ReshardTask reversed(const ReshardTask& task) {
  return {task.shape,       task.dtype,  task.target_mesh, task.target,
          task.source_mesh, task.source, task.place};
}

bool is_disjoint(const ReshardTask& task) { return task.target_mesh.devices[0] != 0; }

}  // namespace

TEST_CASE("Every element of every target shard is delivered exactly once") {
  CHECK(rc::check([] {
    const ReshardTask task = random_task(/*all_axes=*/false);
    std::map<std::int64_t, std::map<std::int64_t, int>> delivered;  // by device, by element
    const auto box_of = [&](const DeviceMesh& on, const Sharding& sharding, std::int64_t device) {
      return index_ranges(task.shape, sharding, on.mesh, device - on.devices[0]);
    };
    const std::vector<Message> messages = messages_of(task);
    RC_ASSERT(static_cast<double>(messages.size()) ==
              count_messages(task.shape, {task.source_mesh, task.source},
                             {task.target_mesh, task.target}));
    for (const Message& message : messages) {
      // The one box that the sender has and the receiver wants.
      const auto box = common(box_of(task.source_mesh, task.source, message.source),
                              box_of(task.target_mesh, task.target, message.target));
      RC_ASSERT(message.bytes == Bytes(2 * elements(box)));
      for (const std::int64_t cell : cells(box, task.shape)) ++delivered[message.target][cell];
    }
    for (const std::int64_t device : task.target_mesh.devices) {
      const auto wanted = cells(box_of(task.target_mesh, task.target, device), task.shape);
      RC_ASSERT(delivered[device].size() == wanted.size());
      for (const std::int64_t cell : wanted) RC_ASSERT(delivered[device][cell] == 1);
    }
  }));
}

TEST_CASE("There and back: the same messages the other way where there is one copy of each shard") {
  CHECK(rc::check([] {
    const ReshardTask task = random_task(/*all_axes=*/true);
    std::map<std::pair<std::int64_t, std::int64_t>, Bytes> there;
    std::map<std::pair<std::int64_t, std::int64_t>, Bytes> back;
    for (const Message& one : messages_of(task)) there[{one.source, one.target}] = one.bytes;
    for (const Message& one : messages_of(reversed(task)))
      back[{one.target, one.source}] = one.bytes;
    RC_ASSERT(there == back);
  }));
}

TEST_CASE("A plan ends where it should and is never dearer than direct") {
  CHECK(rc::check([] {
    const ReshardTask task = random_task(/*all_axes=*/false);
    const RoundCost cost(4);
    const ReshardChoice choice = plan_reshard(task, cost);
    RC_ASSERT(choice.best().time <= choice.direct.time);
    RC_ASSERT(choice.best().peak >= choice.direct.target_shard);
    if (choice.intermediate) {
      const PlannedReshardStep& last = choice.intermediate->steps.back();
      const bool at_target = last.part == ReshardPart::target;
      if (at_target) RC_ASSERT(last.after == normalized(task.target));
      RC_ASSERT(choice.intermediate->time.count() > 0);
    }
    Seconds sum{0};
    for (const PlannedReshardStep& step : choice.best().steps) sum += step.time;
    RC_ASSERT(choice.best().time == sum);
    // To give an array away can only help.
    RC_ASSERT(choice.best().donated_peak <= choice.best().peak);
  }));
}

TEST_CASE("Direct crossing is a copy for every replica of the target") {
  CHECK(rc::check([] {
    const ReshardTask task = random_task(/*all_axes=*/false);
    RC_PRE(is_disjoint(task));
    std::int64_t shards = 1;
    for (const DimSharding& dim : task.target.dims) shards *= Mesh::size_of(dim.axes);
    const std::int64_t copies = task.target_mesh.mesh.devices() / shards;
    const Bytes array(std::accumulate(task.shape.begin(), task.shape.end(), std::int64_t{2},
                                      std::multiplies<>()));
    RC_ASSERT(plan_reshard(task, RoundCost(4)).direct.crossing == array * copies);
    // Split further over what is replicated, one copy crosses.
    for (const Sharding& finer :
         target_candidates(task.shape, task.target, task.target_mesh.mesh)) {
      if (Mesh::size_of(split_axes(finer)) != task.target_mesh.mesh.devices()) continue;
      ReshardTask once = task;
      once.target = finer;
      RC_ASSERT(plan_reshard(once, RoundCost(4)).direct.crossing == array);
    }
  }));
}

// Tunix (tunix/rl/reshard.py @eb5a07e1), the predecessor of Pathways' function, does what the
// docstring of both says: the most sharded dimension of the source keeps as many shards as the most
// sharded one of the target has (8 to 4), and the rest becomes replicas. The golden cases hold what
// it answers, as mesh axes X_intermediate_split and X_intermediate_replica.
TEST_CASE("Pathways' documented intermediates are among the candidates", "[golden]") {
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  const std::filesystem::path file =
      std::filesystem::path(set != nullptr ? set : SHARDSIM_SOURCE_DIR "/tests/golden") /
      "rules/pathways_intermediate.json";
  if (!std::filesystem::exists(file)) {
    std::cout << file.string() << ": not there, skipped\n";
    return;
  }
  const Json document = load_json(file.string());
  int checked = 0;
  for (const JsonReader& test_case : JsonReader(document, {}).at("cases").elements()) {
    const auto documented = test_case.find("older_tunix_result");
    if (!documented) continue;
    INFO(test_case.at("name").string());
    const JsonReader source = test_case.at("input").at("src");
    std::vector<MeshAxis> axes;
    for (const JsonReader& axis : source.at("mesh").elements()) {
      axes.push_back({axis.elements().at(0).string(), axis.elements().at(1).integer(1, 1 << 20)});
    }
    const Mesh mesh(axes);
    const PartitionSpec spec = read_partition_spec(source.at("spec"));
    // Divisible by every axis and product of axes.
    const std::size_t rank = documented->at("spec").elements().size();
    const std::vector<std::int64_t> shape(rank, mesh.devices());
    const auto candidates = source_candidates(shape, to_sharding(spec, rank, mesh, {}));

    // X_intermediate_split of size k is the major part X:(1)k.
    std::map<std::string, std::string> parts;
    for (const JsonReader& axis : documented->at("mesh").elements()) {
      const std::string name = axis.elements().at(0).string();
      const std::size_t suffix = name.rfind("_intermediate_split");
      if (suffix == std::string::npos) continue;
      const std::string whole = name.substr(0, suffix);
      const std::int64_t size = axis.elements().at(1).integer(1, 1 << 20);
      parts[name] = mesh.name_of({*mesh.find(whole), 1, size});
    }
    PartitionSpec wanted = read_partition_spec(documented->at("spec"));
    for (SpecEntry& entry : wanted) {
      for (std::string& axis : entry.axes) {
        if (parts.count(axis) > 0) axis = parts[axis];
      }
    }
    const Sharding sharding = normalized(to_sharding(wanted, rank, mesh, {}));
    CHECK(std::find(candidates.begin(), candidates.end(), sharding) != candidates.end());
    ++checked;
  }
  if (set == nullptr) CHECK(checked > 0);
}
