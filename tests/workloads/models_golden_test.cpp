// Runs tests/golden/models/*.json, or those of SHARDSIM_GOLDEN_DIR: what transformers and PyTorch
// say that released models are made of (torch 2.15.0, transformers 5.23.0, diffusers 0.42.1 on
// tensors without data; the records' README says how). Names and shapes, totals, ties, FLOPs by
// operator are equal to the last digit; saved activations, too, but for those of models whose
// modules read data, which lie within a hundredth.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/json.hpp"
#include "base/text.hpp"
#include "tests/base/golden_files.hpp"
#include "tests/workloads/model_records.hpp"
#include "workloads/models/config_keys.hpp"
#include "workloads/models/hub_names.hpp"
#include "workloads/models/walk.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

struct Checks : Comparison {
  void equal(const std::string& what, std::int64_t expected, std::int64_t actual) {
    near(what, expected, actual, 0);
  }
  void near(const std::string& what, std::int64_t expected, std::int64_t actual, double share) {
    const double gap = static_cast<double>(actual) - static_cast<double>(expected);
    if (std::abs(gap) <= share * static_cast<double>(expected)) {
      ++passed;
    } else {
      failures.push_back(fmt::format("{}: expected {}, found {} ({:+})", what, expected, actual,
                                     actual - expected));
    }
  }
};

void compare_parameters(Checks& checks, const Json& record, const models::ModelCounts& n) {
  const Shapes expected = recorded_shapes(record);
  Shapes actual;
  for (const models::Parameter& p : n.parameters) actual[p.name] = p.shape;
  for (const auto& [name, shape] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end()) {
      checks.failures.push_back("parameter missing: " + name);
    } else if (found->second != shape) {
      checks.failures.push_back(fmt::format("shape of {}: expected {}, found {}", name,
                                            dims_text(shape), dims_text(found->second)));
    } else {
      ++checks.passed;
    }
  }
  for (const auto& [name, shape] : actual) {
    if (!expected.contains(name)) checks.failures.push_back("parameter too many: " + name);
  }
}

std::vector<std::vector<std::string>> sorted_groups(std::vector<std::vector<std::string>> groups) {
  for (auto& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

void compare_totals(Checks& checks, const Json& record, const models::ModelCounts& n) {
  checks.equal("total parameters", record["total_parameters"], n.total_parameters);
  if (record.contains("active_parameters")) {
    checks.equal("active parameters", record["active_parameters"], n.active_parameters);
  }
  checks.equal("embedding parameters", record["embedding_parameters"], n.embedding_parameters);
  std::vector<std::vector<std::string>> tied;
  for (const Json& group : record["tied"]) {
    std::vector<std::string> names;
    for (const Json& pattern : group) {
      for (const std::string& name : names_of(pattern)) names.push_back(name);
    }
    tied.push_back(std::move(names));
  }
  const bool same = sorted_groups(tied) == sorted_groups(n.tied);
  if (same) {
    ++checks.passed;
  } else {
    checks.failures.push_back(
        fmt::format("tied: expected {} groups, found {}", tied.size(), n.tied.size()));
  }
  Shapes buffers;
  if (record.contains("persistent_buffers")) {
    for (const auto& [pattern, buffer] : record["persistent_buffers"].items()) {
      for (const std::string& name : names_of(pattern)) {
        buffers[name] = buffer[0].get<std::vector<std::int64_t>>();
      }
    }
  }
  Shapes found;
  for (const models::Buffer& buffer : n.buffers) found[buffer.name] = buffer.shape;
  if (found == buffers) {
    ++checks.passed;
  } else {
    checks.failures.push_back(
        fmt::format("buffers: expected {}, found {}", buffers.size(), found.size()));
  }
}

void compare_hub_tensors(Checks& checks, const Json& record, const models::ModelSpec& spec,
                         const models::ModelCounts& n) {
  Shapes expected;
  if (!record.contains("hub_tensors")) {  // files are as the module tree
    expected = recorded_shapes(record);
    for (const models::Buffer& buffer : n.buffers) expected[buffer.name] = buffer.shape;
  }
  const Json files = record.value("hub_tensors", Json::object());
  for (const auto& [pattern, shape] : files.items()) {
    for (const std::string& name : names_of(pattern)) {
      expected[name] = shape.get<std::vector<std::int64_t>>();
    }
  }
  Shapes found;
  for (const models::HubTensor& tensor : models::hub_tensors(spec.family, n)) {
    found[tensor.name] = tensor.shape;
  }
  for (const auto& [name, shape] : expected) {
    if (!found.contains(name)) {
      checks.failures.push_back("hub tensor missing: " + name);
    } else if (found[name] != shape) {
      checks.failures.push_back("hub tensor's shape: " + name);
    } else {
      ++checks.passed;
    }
  }
  for (const auto& [name, shape] : found) {
    if (!expected.contains(name)) checks.failures.push_back("hub tensor too many: " + name);
  }
}

void compare_flops(Checks& checks, const std::string& at, const Json& flops,
                   const models::ModelCounts& n) {
  models::OperatorFlops both = n.forward;
  for (const auto& [op, count] : n.backward) both[op] += count;
  const auto compare = [&](const char* key, const models::OperatorFlops& found) {
    for (const auto& [op, expected] : flops[key].items()) {
      const auto mine = found.find(op);
      checks.equal(fmt::format("{} {} {}", at, key, op), expected,
                   mine == found.end() ? 0 : mine->second);
    }
    for (const auto& [op, count] : found) {
      if (!flops[key].contains(op)) checks.equal(fmt::format("{} {} {}", at, key, op), 0, count);
    }
  };
  compare("forward", n.forward);
  compare("forward_backward", both);
}

void compare_saved(Checks& checks, const std::string& at, const Json& saved,
                   const models::ModelCounts& n, double share) {
  checks.near(at + " saved", saved["total_bytes"], n.saved_bytes, share);
  std::map<std::string, std::int64_t> layers;
  for (const models::LayerCounts& layer : n.layers) layers[layer.prefix] = layer.saved_bytes;
  for (const auto& [pattern, bytes] : saved["per_layer"].items()) {
    const std::string name = names_of(pattern).front();
    if (layers.contains(name)) {
      checks.near(at + " saved by " + pattern, bytes, layers[name], share);
    }
  }
}

// Of what reads no tokens: 1. Beside an image: those of its text.
std::int64_t sequence_of(const Json& point) {
  if (point.contains("text_tokens")) return point["text_tokens"].get<int>();
  const Json& inputs = point["inputs"];
  if (inputs.contains("input_ids")) return inputs["input_ids"][1].get<int>();
  return point.contains("sequence") && !point["sequence"].is_null() ? point["sequence"].get<int>()
                                                                    : 1;
}

// A side of the image or of its latents, where the record varies it.
std::optional<std::int64_t> image_of(const Json& point) {
  for (const char* key : {"image", "latent"}) {
    if (point.contains(key)) return point[key].get<int>();
  }
  return {};
}

// Tokens that a decoder reads: labels, where the inputs are not as many.
std::optional<std::int64_t> target_of(const Json& point) {
  if (point.contains("target") && !point["target"].is_null()) return point["target"].get<int>();
  return {};
}

// Of experts, state spaces, images beside text: what is kept depends on packages' own kernels.
double share_of(const Json& record) {
  const std::string kind = record["kind"];
  if (kind == "diffusion" || kind == "image") return 0;
  const bool dense = kind == "causal" && !record.contains("experts_implementation");
  return dense ? 0 : 0.01;
}

Checks compare(const Json& record, const std::string& path) {
  Checks checks;
  const JsonReader config(record["config"], {path, "/config"});
  const models::ModelSpec spec = read_known_model(config, path);
  const models::Point least{.batch = 1, .sequence = 1};
  const models::ModelCounts parts = models::count(spec, least, config.place());
  compare_parameters(checks, record, parts);
  compare_totals(checks, record, parts);
  compare_hub_tensors(checks, record, spec, parts);
  for (std::size_t i = 0; i < record["flops"].size(); ++i) {
    const Json& flops = record["flops"][i];
    // Images and text together: shardsim counts text alone.
    if (record["kind"] == "image_text" && flops["inputs"].contains("pixel_values")) continue;
    const models::Point point{.batch = flops["batch"],
                              .sequence = sequence_of(flops),
                              .target = target_of(flops),
                              .image = image_of(flops)};
    const models::ModelCounts n = models::count(spec, point, config.place());
    const std::string at = fmt::format("{}x{}", point.batch, point.sequence);
    compare_flops(checks, at, flops, n);
    compare_saved(checks, at, record["saved_activations"][i], n, share_of(record));
  }
  if (record.contains("eager_attention") && !record["eager_attention"].is_null()) {
    const Json& eager = record["eager_attention"];
    const models::Point point{.batch = eager["flops"]["batch"],
                              .sequence = sequence_of(eager["flops"]),
                              .target = target_of(eager["flops"]),
                              .attention = models::AttentionKernel::plain};
    const models::ModelCounts n = models::count(spec, point, config.place());
    compare_flops(checks, "plain", eager["flops"], n);
    compare_saved(checks, "plain", eager["saved_activations"], n, share_of(record));
  }
  return checks;
}

}  // namespace

TEST_CASE("Models are made of what transformers and PyTorch say") {
  for (const std::string& path : golden_files(golden_folder("models"), ".json")) {
    const Json record = load_json(path);
    if (!record.is_object() || !record.contains("config")) continue;
    Checks checks;
    try {
      checks = compare(record, path);
    } catch (const InputError& error) {
      checks.failures.emplace_back(error.what());
    }
    report(path, checks);
    CHECK(checks.failures.empty());
  }
}
