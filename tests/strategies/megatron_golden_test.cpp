// Against Megatron-Core: what a rank sends in a step, in order, its gradient buffers and what it
// holds between steps. Cases: tests/golden/megatron/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "megatron_experiment.hpp"
#include "megatron_records.hpp"
#include "tests/base/golden_files.hpp"
#include "torch_memory.hpp"
#include "torch_records.hpp"

namespace shardsim::megatron_test {
namespace {

using test::Calls;
using test::golden_folder;
using test::held_bytes;
using test::same_calls;

// Calls as torch_records.hpp has them, without types. Groups by their size and, from the first on,
// their first and last ranks, which is what records have of large ones: Megatron's have names of
// their own.
std::string group_text(std::int64_t size, const std::vector<std::int64_t>& first,
                       std::int64_t last) {
  std::string text = std::to_string(size) + " ranks";
  for (const std::int64_t rank : first) text += " +" + std::to_string(rank - first.front());
  return text + " to +" + std::to_string(last - first.front());
}

constexpr std::size_t first_ranks = 4;

std::string group_text(const std::vector<std::int64_t>& ranks) {
  const std::size_t named = std::min(ranks.size(), first_ranks);
  return group_text(static_cast<std::int64_t>(ranks.size()),
                    {ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(named)},
                    ranks.back());
}

// [0, 1, 2, 3, "...", 63, "64 ranks"]
std::string cut_group_text(const Json& group) {
  std::vector<std::int64_t> first;
  for (const Json& rank : group) {
    if (rank.is_string()) break;
    first.push_back(rank);
  }
  return group_text(std::stoll(group.back().get<std::string>()), first, group[group.size() - 2]);
}

std::string recorded_group(const Json& record, const std::string& name) {
  if (name == "intra_dist_opt" || name == "mp" || name == "expt_mp") return "norm";
  const Json& groups = record["groups"];
  if (!groups.contains(name)) return name;
  return groups[name].back().is_string()
             ? cut_group_text(groups[name])
             : group_text(groups[name].get<std::vector<std::int64_t>>());
}

Calls recorded(const Json& record) {
  Calls calls;
  const Json& distinct = record["collectives"];
  for (const Json& run : record["order"]) {
    for (int times = run[1]; times > 0; --times) {
      for (const std::size_t index : run[0]) {
        const Json& call = distinct[index];
        // train_step's own all-reduces of what it logs are no part of our step.
        if (call["phase"] == "report") continue;
        std::string kind = call["kind"];
        std::replace(kind.begin(), kind.end(), '_', '-');
        const std::int64_t bytes = call[kind == "all-gather" ? "bytes_out" : "bytes_in"];
        const bool is_message = kind == "send" || kind == "recv";
        calls.push_back(kind + " " +
                        (is_message ? "" : recorded_group(record, call["axis"]) + " ") +
                        std::to_string(bytes));
      }
    }
  }
  return calls;
}

std::string planned_group(const Plan& plan, const Collective& call) {
  if (call.reason.starts_with("the norm")) return "norm";
  if (!call.groups.empty()) {
    std::vector<std::int64_t> group = call.groups.front();
    std::sort(group.begin(), group.end());  // a broadcast's begins with who has it
    return group_text(group);
  }
  return group_text(plan.mesh.first_group(call.axes));
}

Calls planned(const Plan& plan, const Program& program) {
  Calls calls;
  for (const Task& task : program.tasks) {
    const auto work = static_cast<std::size_t>(task.work);
    if (task.kind == TaskKind::transfer) {
      const Transfer& t = plan.transfers[work];
      calls.push_back((t.sends ? "send " : "recv ") + std::to_string(t.payload.count()));
    }
    if (task.kind != TaskKind::collective) continue;
    const Collective& c = plan.collectives[work];
    // Records have no attention over a split sequence, which is Transformer Engine's.
    if (c.kind == CollectiveKind::collective_permute) continue;
    calls.push_back(std::string(name_of(c.kind)) + " " + planned_group(plan, c) + " " +
                    std::to_string(c.payload.count()));
  }
  return calls;
}

constexpr double of_peak = 0.03;
double furthest_peak = 0;  // of all records

class Comparison {
 public:
  explicit Comparison(const Json& record) : record_(record), step_(compile_record(record)) {}

  bool agrees() {
    const Json& settings = record_["strategy"]["settings"];
    const auto rank = settings.contains("pp_rank") ? settings["pp_rank"].get<std::size_t>()
                                                   : stage_of(record_["rank"]);
    const Program& program = step_.plan.programs.at(rank);
    same_ = same_calls(planned(step_.plan, program), recorded(record_), record_["id"]);
    const Json& memory = record_["memory"]["marks"]["step2 end"];
    compare("parameters", held_bytes(program, BufferCategory::parameters) - biases(program),
            memory["params"]);
    compare("gradient buffers", held_bytes(program, BufferCategory::gradients),
            memory["grad_buffer"]);
    compare_buckets(program);
    compare_peak(program);
    return same_;
  }

 private:
  // Devices of a stage follow each other: it is the mesh's first axis.
  [[nodiscard]] std::size_t stage_of(std::size_t rank) const {
    const std::size_t devices = record_["world_size"], stages = record_["mesh"][0][1];
    return rank / (devices / stages);
  }

  // Of routers: ours are counted with parameters, Megatron's as other buffers.
  [[nodiscard]] std::int64_t biases(const Program& program) const {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : program.buffers) {
      const std::string& name = step_.plan.buffer_name(buffer);
      if (name.ends_with("correction_bias")) bytes += buffer.bytes.count();
    }
    return bytes;
  }

  void compare(const char* what, std::int64_t ours, std::int64_t theirs) {
    if (ours == theirs) return;
    tell() << what << " " << ours << ", Megatron " << theirs << "\n";
    same_ = false;
  }

  // Messages of the stubbed transport that nobody has freed when the step ends are left out.
  void compare_peak(const Program& program) {
    const Json& memory = record_["memory"];
    const Json& end = memory["marks"]["step2 end"];
    const double theirs =
        memory["peak"]["total"].get<double>() - end.value("other", 0.0) - end.value("temp", 0.0);
    const double ours = test::replayed_peak(program);
    furthest_peak = std::max(furthest_peak, std::abs(ours / theirs - 1));
    if (std::abs(ours / theirs - 1) <= of_peak) return;
    tell() << "peak " << ours << ", Megatron " << theirs << "\n";
    same_ = false;
  }

  void compare_buckets(const Program& program) {
    std::vector<std::int64_t> ours, theirs;
    const std::int64_t element = record_["strategy"]["settings"]["grad_fp32"] == true ? 4 : 2;
    for (const Buffer& buffer : program.buffers) {
      if (!step_.plan.buffer_name(buffer).starts_with("gradient bucket")) continue;
      ours.push_back(buffer.bytes.count() / element);
    }
    for (const Json& buffer : record_["buffers"]) {
      for (const Json& bucket : buffer["buckets"]) theirs.push_back(bucket["numel"]);
    }
    if (ours == theirs) return;
    const auto [mine, other] =
        std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
    tell() << ours.size() << " buckets, Megatron " << theirs.size() << "; number "
           << mine - ours.begin() << ": " << (mine == ours.end() ? 0 : *mine) << ", Megatron "
           << (other == theirs.end() ? 0 : *other) << "\n";
    same_ = false;
  }

  std::ostream& tell() const { return std::cout << "  " << record_["id"] << ": "; }

  const Json& record_;
  CompiledStep step_;
  bool same_ = true;
};

// What of a record we refuse is told, and the others are compared.
bool agrees(const Json& record) {
  try {
    return Comparison(record).agrees();
  } catch (const std::exception& refused) {
    std::cout << "  " << record["id"] << ": refused: " << refused.what() << "\n";
    return false;
  }
}

}  // namespace

TEST_CASE("Ranks do what Megatron-Core's do, in order", "[golden]") {
  if (!std::filesystem::exists(golden_folder("megatron"))) return;
  int compared = 0;
  for (const auto& [file, record] : test::megatron_records()) {
    const bool passed = agrees(record);
    std::cout << file << ": " << (passed ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n");
    CHECK(passed);
    ++compared;
  }
  CHECK(compared > 0);
  std::cout << "the furthest peak: " << 100 * furthest_peak << " %\n";
}

}  // namespace shardsim::megatron_test
