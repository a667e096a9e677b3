#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>

#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_devices = std::int64_t{1} << 40;
constexpr std::int64_t most_devices_per_chip = 64;

// YYYY-MM or YYYY-MM-DD.
bool is_date(const std::string& text) {
  if (text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : std::isdigit(static_cast<unsigned char>(text[i])) == 0)
      return false;
  }
  return true;
}

std::string read_text(const JsonReader& reader) {
  std::string text = reader.string();
  if (text.empty()) reader.fail("is empty");
  return text;
}

Source read_source(const JsonReader& number) {
  Source source;
  source.kind = number.at("kind").choice({"vendor", "code", "measured", "derived", "estimate"});
  source.reference = read_text(number.at("source"));
  source.date = number.at("date").string();
  if (!is_date(source.date)) {
    number.at("date").fail(
        fmt::format("\"{}\" is not a date, expected for example \"2026-08\"", source.date));
  }
  if (const auto note = number.find("note")) source.note = note->string();
  return source;
}

// A number with its source: `read` turns the reader of "value" into the number.
template <class Read>
auto read_sourced(const JsonReader& number, Read read) {
  number.only_keys({"value", "kind", "source", "date", "note"});
  Sourced<std::invoke_result_t<Read, const JsonReader&>> result;
  result.value = read(number.at("value"));
  result.source = read_source(number);
  return result;
}

// Text with its unit. A plain number goes to the parser too, which says what unit is missing.
template <class Quantity>
Quantity read_quantity(const JsonReader& value, Quantity (*parse)(std::string_view, const Place&)) {
  return parse(value.is_number() ? value.json().dump() : value.string(), value.place());
}

template <class Quantity>
Quantity read_positive(const JsonReader& value, Quantity (*parse)(std::string_view, const Place&)) {
  const Quantity quantity = read_quantity(value, parse);
  if (!(quantity > Quantity{})) value.fail("must be more than zero");
  return quantity;
}

Bytes read_bytes(const JsonReader& value) { return read_positive(value, parse_bytes); }
Bandwidth read_bandwidth(const JsonReader& value) { return read_positive(value, parse_bandwidth); }
FlopRate read_flop_rate(const JsonReader& value) { return read_positive(value, parse_flop_rate); }
Seconds read_seconds(const JsonReader& value) { return read_quantity(value, parse_seconds); }

double read_fraction(const JsonReader& value) {
  const double fraction = value.number();
  if (!(fraction > 0 && fraction <= 1)) {
    value.fail(fmt::format("{} is not an efficiency, must be above 0 and at most 1", fraction));
  }
  return fraction;
}

DeviceProfile read_device(const JsonReader& reader) {
  reader.only_keys({"name", "memory_capacity", "memory_bandwidth", "peak", "matmul_efficiency",
                    "attention_efficiency", "memory_efficiency", "kernel_launch"});
  DeviceProfile device;
  device.name = read_text(reader.at("name"));
  device.memory_capacity = read_sourced(reader.at("memory_capacity"), read_bytes);
  device.memory_bandwidth = read_sourced(reader.at("memory_bandwidth"), read_bandwidth);
  const JsonReader peak = reader.at("peak");
  for (const auto& [name, rate] : peak.members()) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) peak.fail(fmt::format("unknown dtype \"{}\", expected for example \"bf16\"", name));
    if (!device.peak.emplace(*dtype, read_sourced(rate, read_flop_rate)).second) {
      peak.fail(fmt::format("dtype {} is given twice", name_of(*dtype)));
    }
  }
  if (device.peak.empty()) peak.fail("is empty, expected at least one dtype");
  device.matmul_efficiency = read_sourced(reader.at("matmul_efficiency"), read_fraction);
  device.attention_efficiency = read_sourced(reader.at("attention_efficiency"), read_fraction);
  device.memory_efficiency = read_sourced(reader.at("memory_efficiency"), read_fraction);
  device.kernel_launch = read_sourced(reader.at("kernel_launch"), read_seconds);
  return device;
}

LinkProfile read_link(const JsonReader& reader) {
  reader.only_keys({"bandwidth", "efficiency", "latency"});
  return {read_sourced(reader.at("bandwidth"), read_bandwidth),
          read_sourced(reader.at("efficiency"), read_fraction),
          read_sourced(reader.at("latency"), read_seconds)};
}

ClusterProfile read_cluster(const JsonReader& reader) {
  reader.only_keys({"devices_per_node", "scale_up", "scale_out"});
  const auto read_count = [](const JsonReader& value) { return value.integer(1, most_devices); };
  return {read_sourced(reader.at("devices_per_node"), read_count), read_link(reader.at("scale_up")),
          read_link(reader.at("scale_out"))};
}

SliceRule read_slices(const JsonReader& reader) {
  reader.only_keys({"listed", "multiples_of", "largest"});
  SliceRule rule;
  for (const JsonReader& shape : reader.at("listed").elements()) {
    rule.listed.push_back(parse_shape(shape.string(), shape.place()));
    if (rule.listed.back().size() != rule.listed.front().size()) {
      shape.fail("has another number of dimensions than the shapes before it");
    }
  }
  if (rule.listed.empty()) reader.at("listed").fail("is empty, expected at least one shape");
  const std::size_t dimensions = rule.listed.front().size();
  if (dimensions > 3) reader.at("listed").fail("a torus has at most 3 dimensions");
  if (const auto multiple = reader.find("multiples_of")) {
    rule.multiple = multiple->integer(1, 1024);
    const JsonReader largest = reader.at("largest");
    rule.largest = parse_shape(largest.string(), largest.place());
    if (rule.largest.size() != dimensions)
      largest.fail("has another number of dimensions than \"listed\"");
    // make_machine looks through all of them.
    std::int64_t shapes = 1;
    for (const std::int64_t size : rule.largest) {
      shapes *= std::max<std::int64_t>(size / rule.multiple, 1);
      if (shapes > 1'000'000) largest.fail("allows more than a million shapes");
    }
  } else if (reader.find("largest")) {
    reader.fail("\"largest\" is given without \"multiples_of\"");
  }
  return rule;
}

WrapRule read_wrap(const JsonReader& value) {
  const std::string rule = value.choice({"axis_of_16", "axis_of_32", "multiples_of_4"});
  if (rule == "multiples_of_4") return WrapRule::multiples_of_4;
  return rule == "axis_of_16" ? WrapRule::axis_of_16 : WrapRule::axis_of_32;
}

ChipProfile read_chip(const JsonReader& reader) {
  reader.only_keys({"devices", "link"});
  const auto read_count = [](const JsonReader& value) {
    return value.integer(2, most_devices_per_chip);
  };
  return {read_sourced(reader.at("devices"), read_count), read_link(reader.at("link"))};
}

TorusProfile read_torus(const JsonReader& reader) {
  reader.only_keys({"link", "chip", "slices", "wraparound"});
  TorusProfile torus;
  torus.link = read_link(reader.at("link"));
  if (const auto chip = reader.find("chip")) torus.chip = read_chip(*chip);
  torus.slices = read_sourced(reader.at("slices"), read_slices);
  torus.dimensions = static_cast<int>(torus.slices.value.listed.front().size());
  torus.wraparound = read_sourced(reader.at("wraparound"), read_wrap);
  return torus;
}

}  // namespace

std::vector<std::int64_t> parse_shape(const std::string& text, const Place& place) {
  std::vector<std::int64_t> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto [next, status] = std::from_chars(at, end, size);
    const bool separated = next == end || *next == 'x';
    if (status != std::errc{} || size < 1 || size > most_devices || !separated) {
      throw InputError(place,
                       fmt::format("\"{}\" is not a shape, expected for example \"4x4x4\"", text));
    }
    sizes.push_back(size);
    if (next == end) return sizes;
    at = next + 1;
  }
}

Profile read_profile(const Json& document, const std::string& file) {
  const JsonReader reader(document, {file, ""});
  reader.only_keys(
      {"schema", "shardsim", "name", "title", "device", "collective_launch", "cluster", "torus"});
  (void)reader.at("schema").choice({"shardsim/profile/1"});
  Profile profile;
  profile.name = read_text(reader.at("name"));
  profile.title = read_text(reader.at("title"));
  profile.path = file;
  profile.device = read_device(reader.at("device"));
  profile.collective_launch = read_sourced(reader.at("collective_launch"), read_seconds);
  const auto cluster = reader.find("cluster");
  const auto torus = reader.find("torus");
  if (cluster.has_value() == torus.has_value()) {
    reader.fail("expected exactly one of \"cluster\" and \"torus\"");
  }
  if (cluster) {
    profile.network = read_cluster(*cluster);
  } else {
    profile.network = read_torus(*torus);
  }
  return profile;
}

}  // namespace shardsim
