// Runs tests/golden/mesh_assignment/*.json, or those of SHARDSIM_GOLDEN_DIR, against jax's rules.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/json.hpp"
#include "hardware_profiles/machine.hpp"
#include "hardware_profiles/mesh_assignment.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

using Sizes = std::vector<std::int64_t>;

// The physical position of a logical one: every axis' coordinate is a mixed-radix number over its
// spans, major to minor.
Sizes physical_position(const std::vector<std::vector<TorusSpan>>& spans, const Sizes& logical,
                        std::size_t dimensions) {
  Sizes position(dimensions, 0);
  for (std::size_t l = 0; l < logical.size(); ++l) {
    std::int64_t rest = logical[l];
    for (auto span = spans[l].rbegin(); span != spans[l].rend(); ++span) {
      position[static_cast<std::size_t>(span->dimension)] += rest % span->size * span->stride;
      rest /= span->size;
    }
  }
  return position;
}

// What is wrong with our answer to a case; empty when nothing is.
std::string complaint(const Json& test) {
  const Json& input = test.at("input");
  const auto physical = input.at("physical").get<Sizes>();
  const auto logical = input.at("logical").get<Sizes>();
  const TorusShape torus{physical, std::vector<bool>(physical.size(), true)};
  std::vector<std::vector<TorusSpan>> spans;
  try {
    spans = assign_mesh(torus, logical, {});
  } catch (const InputError& error) {
    if (test.value("error", "") == "ValueError") return "";
    return fmt::format("unexpected error: {}", error.what());
  }
  std::optional<MeshAssignment> assignment = assign_whole_axes(physical, logical);
  if (!assignment && input.at("allow_split_physical_axes").get<bool>()) {
    assignment = assign_split_axes(physical, logical);
  }
  if (!assignment) {
    return test.value("error", "") == "NotImplementedError" ? "" : "no assignment found";
  }
  if (test.contains("error")) return "an error was expected";
  if (Json(*assignment) != test.at("expected")) {
    return fmt::format("expected {} because {}, actual {}", test.at("expected").dump(),
                       test.at("source").get<std::string>(), Json(*assignment).dump());
  }
  for (const Json& pair : test.value("coordinates", Json::array())) {
    const Sizes actual = physical_position(spans, pair.at("logical").get<Sizes>(), physical.size());
    if (Json(actual) != pair.at("physical")) {
      return fmt::format("expected {}, actual {}", pair.dump(), Json(actual).dump());
    }
  }
  return "";
}

}  // namespace

TEST_CASE("mesh axes lie on a torus where jax puts them", "[golden]") {
  const char* other = std::getenv("SHARDSIM_GOLDEN_DIR");
  const std::filesystem::path root = other != nullptr ? other : SHARDSIM_SOURCE_DIR "/tests/golden";
  const std::filesystem::path folder = root / "mesh_assignment";
  if (!std::filesystem::is_directory(folder)) {
    fmt::print("{}: no such folder, skipped\n", folder.string());
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    int passed = 0;
    int failed = 0;
    const Json document = load_json(file.string());
    for (const Json& test : document.at("cases")) {
      const std::string wrong = complaint(test);
      ++(wrong.empty() ? passed : failed);
      if (!wrong.empty()) fmt::print("{}: {}\n", test.at("name").get<std::string>(), wrong);
    }
    fmt::print("{}: {} passed, {} failed\n", file.filename().string(), passed, failed);
    CHECK(failed == 0);
  }
}
