// Runs tests/golden/tpu_compiler/*.json(.gz), or those of SHARDSIM_GOLDEN_DIR: what libtpu made of
// thousands of collectives against sim/tpu, from the topology and the devices of a group on.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <iostream>
#include <map>

#include "base/gzip.hpp"
#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "sim/tpu/compiler_choice.hpp"
#include "tests/base/golden_files.hpp"

namespace shardsim {
namespace {

using tpu::Choice;
using tpu::Coordinates;
using tpu::Slice;

// What docs/tpu-collectives.md says of the agreement, rounded down.
constexpr double least_choices = 0.995;
constexpr double least_latencies = 0.985;
constexpr double latency_tolerance = 0.01;
constexpr double cycle_tolerance = 1.5;  // cycles are printed with six digits, one at least

constexpr std::int64_t most = std::int64_t{1} << 40;

tpu::Generation generation_of(const JsonReader& chip) {
  static const std::map<std::string, tpu::Generation> generations = {
      {"v4", tpu::Generation::v4},
      {"v5e", tpu::Generation::v5e},
      {"v5p", tpu::Generation::v5p},
      {"v6e", tpu::Generation::v6e},
      {"tpu7x", tpu::Generation::tpu7x}};
  const auto found = generations.find(chip.string());
  if (found == generations.end()) chip.fail("is no generation");
  return found->second;
}

Slice slice_of(const JsonReader& row) {
  Slice slice;
  slice.generation = generation_of(row.at("chip"));
  const auto sizes = parse_shape(row.at("topology").string(), row.place());
  for (std::size_t i = 0; i < sizes.size(); ++i) slice.sizes.at(i) = sizes[i];
  const auto options = row.find("options");
  if (const auto wrap = options ? options->find("wrap") : std::nullopt) {
    const std::vector<JsonReader> wraps = wrap->elements();
    for (std::size_t i = 0; i < wraps.size(); ++i) {
      slice.wraps.at(i) = wraps[i].integer(0, 1) == 1;
    }
  }
  const bool two_cores =
      slice.generation == tpu::Generation::v4 || slice.generation == tpu::Generation::tpu7x;
  const bool megacore = options && options->find("chip_config_name");
  if (two_cores && !megacore) slice.devices_per_chip = 2;
  return slice;
}

// "v5e:4x4 {"wrap": [1, 1, 0]}|xy"
std::string layout_key(const JsonReader& row) {
  std::string options;
  if (const auto given = row.find("options")) {
    std::string members;
    for (const auto& [name, value] : given->members()) {
      std::string text;
      if (value.is_string()) {
        text = fmt::format("\"{}\"", value.string());
      } else {
        for (const JsonReader& wrap : value.elements()) {
          text += fmt::format("{}{}", text.empty() ? "" : ", ", wrap.integer(0, 1));
        }
        text = fmt::format("[{}]", text);
      }
      members += fmt::format("{}\"{}\": {}", members.empty() ? "" : ", ", name, text);
    }
    options = " {" + members + "}";
  }
  return fmt::format("{}:{}{}|{}", row.at("chip").string(), row.at("topology").string(), options,
                     row.at("layout").string());
}

Coordinates coordinates_of(const JsonReader& device) {
  const std::vector<JsonReader> digits = device.elements();
  Coordinates coordinates;
  for (std::size_t i = 0; i < tpu::dimensions; ++i) {
    coordinates.chip.at(i) = digits.at(i).integer(0, most);
  }
  coordinates.core = digits.at(tpu::dimensions).integer(0, 1);
  return coordinates;
}

// All of a box in rank order, from its corner on: digits counted up, or to and fro in the last
// dimension.
std::vector<Coordinates> fill_box(const Coordinates& corner, const std::vector<std::int64_t>& span,
                                  bool to_and_fro) {
  std::vector<Coordinates> devices;
  bool back = false;
  for (std::int64_t x = 0; x < span[0]; ++x) {
    for (std::int64_t y = 0; y < span[1]; ++y) {
      for (std::int64_t z = 0; z < span[2]; ++z) {
        for (std::int64_t core = 0; core < span[3]; ++core) {
          Coordinates device = corner;
          device.chip[0] += x;
          device.chip[1] += back ? span[1] - 1 - y : y;
          device.chip[2] += z;
          device.core += core;
          devices.push_back(device);
        }
      }
    }
    back = to_and_fro && !back;
  }
  return devices;
}

// The files hold the first 16 devices of a group; a larger one is a box that they begin.
std::vector<Coordinates> devices_of(const JsonReader& layout) {
  std::vector<Coordinates> first;
  for (const JsonReader& device : layout.at("first_group").elements()) {
    first.push_back(coordinates_of(device));
  }
  const auto members = static_cast<std::size_t>(layout.at("group_size").integer(1, most));
  if (first.size() == members) return first;
  std::vector<std::int64_t> span;
  for (const JsonReader& extent : layout.at("span").elements()) {
    span.push_back(extent.integer(1, most));
  }
  for (const bool to_and_fro : {false, true}) {
    std::vector<Coordinates> devices = fill_box(first.front(), span, to_and_fro);
    if (devices.size() == members && std::equal(first.begin(), first.end(), devices.begin())) {
      return devices;
    }
  }
  layout.fail("is not told by its first devices");
}

// Ring shift, ring shift without the last pair, shift by half the group.
std::vector<std::pair<Coordinates, Coordinates>> pairs_of(const std::vector<Coordinates>& devices,
                                                          const std::string& variant) {
  const std::size_t shift = variant == "far" ? devices.size() / 2 : 1;
  const std::size_t last = variant == "shift1_nowrap" ? devices.size() - 1 : devices.size();
  std::vector<std::pair<Coordinates, Coordinates>> pairs;
  for (std::size_t i = 0; i < last; ++i) {
    pairs.emplace_back(devices[i], devices[(i + shift) % devices.size()]);
  }
  return pairs;
}

CollectiveKind kind_of(const JsonReader& collective) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
        CollectiveKind::all_to_all, CollectiveKind::collective_permute}) {
    if (name_of(kind) == collective.string()) return kind;
  }
  collective.fail("is no collective");
}

std::optional<Choice> choice_of(const JsonReader& row, const std::vector<Coordinates>& devices) {
  const Slice slice = slice_of(row);
  const auto variant = row.find("variant");
  tpu::Request request;
  request.kind = kind_of(row.at("collective"));
  request.bytes = Bytes(row.at("bytes").integer(1, most));
  request.major_dimension = !variant || variant->string() != "dim1";
  if (request.kind == CollectiveKind::collective_permute) {
    request.uniform_shift = is_uniform_shift(slice, pairs_of(devices, variant->string()));
  }
  return choose(slice, describe(slice, devices), request);
}

std::string text_of(const JsonReader& row, const char* key) {
  const auto value = row.find(key);
  return value ? value->string() : "";
}

std::int64_t count_of(const JsonReader& row, const char* key) {
  const auto value = row.find(key);
  return value ? value->integer(0, most) : 0;
}

// What is wrong with our choice; empty when nothing is.
std::string other_choice(const JsonReader& row, const Choice& ours) {
  std::string op = text_of(row, "op");
  if (op == "collective-permute-start") op = "collective-permute";
  const bool same =
      name_of(ours.instruction) == op && name_of(ours.emitter) == text_of(row, "emitter") &&
      name_of(ours.strategy) == text_of(row, "strategy") &&
      ours.colors == count_of(row, "colors") && ours.phases == count_of(row, "phases");
  const auto scheduled = row.find("sched");
  const bool asynchronous = scheduled ? scheduled->at("async").boolean() : ours.asynchronous;
  if (same && ours.asynchronous == asynchronous) return "";
  return fmt::format("expected {}{} {} {} {}x{}, actual {}{} {} {} {}x{}",
                     asynchronous ? "async " : "", op, text_of(row, "emitter"),
                     text_of(row, "strategy"), count_of(row, "colors"), count_of(row, "phases"),
                     ours.asynchronous ? "async " : "", name_of(ours.instruction),
                     name_of(ours.emitter), name_of(ours.strategy), ours.colors, ours.phases);
}

// Our cycles less the scheduler's, over its; nothing where it did not run.
std::optional<double> latency_error(const JsonReader& row, const Slice& slice, const Choice& ours) {
  const auto scheduled = row.find("sched");
  if (!scheduled) return std::nullopt;
  const double cycles = scheduled->at("cycles").number();
  const double actual = ours.scheduler_latency.count() * clock_of(slice.generation).hertz;
  return std::abs(actual - cycles) <= cycle_tolerance ? 0 : actual / cycles - 1;
}

struct Agreement {
  int rows = 0;
  int choices = 0;
  int estimated = 0;
  int latencies = 0;
};

struct Totals {
  std::map<std::string, Agreement> by_kind;  // "v5e all-reduce"
  Agreement all;
  int refused = 0;
  test::Comparison comparison;
};

std::string row_name(const JsonReader& row) {
  return fmt::format("{} {} {} of {} bytes", layout_key(row), row.at("collective").string(),
                     text_of(row, "variant"), row.at("bytes").integer(1, most));
}

void compare(const JsonReader& row, const std::vector<Coordinates>& devices, Totals& totals) {
  const std::optional<Choice> ours = choice_of(row, devices);
  REQUIRE(ours);
  const std::string wrong = other_choice(row, *ours);
  const std::optional<double> error = latency_error(row, slice_of(row), *ours);
  const bool close = error && std::abs(*error) <= latency_tolerance;
  const std::string kind =
      fmt::format("{} {}", row.at("chip").string(), row.at("collective").string());
  for (Agreement* agreement : {&totals.by_kind[kind], &totals.all}) {
    ++agreement->rows;
    if (wrong.empty()) ++agreement->choices;
    if (error) ++agreement->estimated;
    if (close) ++agreement->latencies;
  }
  if (wrong.empty() && (close || !error)) {
    ++totals.comparison.passed;
  } else if (!wrong.empty()) {
    totals.comparison.failures.push_back(row_name(row) + ": " + wrong);
  } else {
    totals.comparison.failures.push_back(
        fmt::format("{}: latency {:+.1f} %", row_name(row), 100 * *error));
  }
}

}  // namespace

TEST_CASE("the TPU compiler's choices and its scheduler's latencies", "[golden]") {
  for (const std::string& file : test::golden_files(test::golden_folder("tpu_compiler"), ".json")) {
    const Json document = parse_json(read_maybe_gzip(file), file);
    const JsonReader reader(document, {file, ""});
    std::map<std::string, std::vector<Coordinates>> layouts;
    for (const auto& [key, layout] : reader.at("layouts").members()) {
      layouts[key] = devices_of(layout);
    }
    Totals totals;
    for (const JsonReader& row : reader.at("rows").elements()) {
      if (row.find("error")) {
        ++totals.refused;
        continue;
      }
      compare(row, layouts.at(layout_key(row)), totals);
    }
    test::report(file, totals.comparison);
    for (const auto& [kind, agreement] : totals.by_kind) {
      std::cout << fmt::format("  {:24} {:4} of {:4} choices, {:4} of {:4} latencies\n", kind,
                               agreement.choices, agreement.rows, agreement.latencies,
                               agreement.estimated);
    }
    std::cout << fmt::format("  {} refused by the compiler\n", totals.refused);
    CHECK(totals.all.rows > 0);
    CHECK(totals.all.choices >= least_choices * totals.all.rows);
    CHECK(totals.all.latencies >= least_latencies * totals.all.estimated);
  }
}

}  // namespace shardsim
