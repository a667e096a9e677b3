#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim {
namespace {

std::string slices_text(const Json& slices) {
  const auto listed = slices.at("listed").get<std::vector<std::string>>();
  std::string text = fmt::format("{}", fmt::join(listed, " "));
  if (slices.contains("multiples_of")) {
    text += fmt::format(", multiples of {} up to {}", slices.at("multiples_of").get<std::int64_t>(),
                        slices.at("largest").get<std::string>());
  }
  return text;
}

std::string value_text(const Json& value) {
  if (value.is_object()) return slices_text(value);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void add_numbers(const std::string& path, const Json& json, std::vector<ProfileNumber>& numbers) {
  if (!json.is_object()) return;
  if (json.contains("value")) {
    numbers.push_back({path, value_text(json.at("value")), json.at("kind"), json.value("date", ""),
                       json.value("source", "given without a source"), json.value("note", "")});
    return;
  }
  for (const auto& [key, member] : json.items()) {
    add_numbers(path.empty() ? key : fmt::format("{}.{}", path, key), member, numbers);
  }
}

// Which kernels of the device are looked up, and how sure they are.
std::string kernels_text(const DeviceProfile& device, std::size_t width) {
  const KernelData& data = *device.kernels;
  TextTable table({{"kernels"}, {"dtype"}, {"how"}});
  const auto how = [](const Source& source) {
    return source.kind == "measured" ? "modelled: a formula fitted to measured ones"
                                     : fmt::format("modelled: {}", source.kind);
  };
  for (const auto& [dtype, products] : data.products) {
    table.add_row({"products", std::string(name_of(dtype)),
                   fmt::format("measured at {} pairs of n and k, between them interpolated, "
                               "elsewhere modelled",
                               products.curves.size())});
  }
  for (const auto& [generation, directions] : data.attention) {
    for (const auto& [dtype, forward] : directions.forward) {
      table.add_row({"attention " + generation, std::string(name_of(dtype)), how(forward.source)});
    }
    for (const auto& [dtype, backward] : directions.backward) {
      table.add_row({"attention " + generation + ", backward", std::string(name_of(dtype)),
                     how(backward.source)});
    }
  }
  for (const auto& [function, stacks] : data.operations) {
    for (const auto& [stack, operation] : stacks) {
      table.add_row({fmt::format("{}, {}", function, stack), "any", how(operation.source)});
    }
  }
  for (const auto& [kernels, ways] : data.row_exchange) {
    table.add_row({"rows to experts, " + kernels, "any", how(ways.dispatch.source)});
    table.add_row({"rows from experts, " + kernels, "any", how(ways.combine.source)});
  }
  const bool is_scaled = data.device != device.name;
  return fmt::format("\nKernels are looked up in \"{}\", measured on {}{}.\n\n{}", data.name,
                     data.device, is_scaled ? "; here scaled by peak and bandwidth" : "",
                     table.text("", width));
}

}  // namespace

std::vector<ProfileNumber> numbers_of(const Profile& profile) {
  std::vector<ProfileNumber> numbers;
  add_numbers("", profile_to_json(profile), numbers);
  return numbers;
}

std::string profile_heading(const Profile& profile) {
  return fmt::format("{}: {} ({})", profile.name, profile.title, profile.path);
}

std::string profile_numbers_text(const Profile& profile, std::size_t width) {
  TextTable table({{"quantity"}, {"value"}, {"kind"}, {"date"}, {"source"}});
  std::vector<std::string> sources;
  for (const ProfileNumber& number : numbers_of(profile)) {
    std::string source = number.source;
    if (!number.note.empty()) source += "\nNote: " + number.note;
    auto found = std::find(sources.begin(), sources.end(), source);
    if (found == sources.end()) found = sources.insert(sources.end(), source);
    table.add_row({number.quantity, number.value, number.kind, number.date,
                   fmt::format("[{}]", found - sources.begin() + 1)});
  }
  std::string text = table.text("", width) + "\n";
  constexpr std::size_t indent = 5;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    text +=
        fmt::format("{:>4} {}\n", fmt::format("[{}]", i + 1), wrapped(sources[i], indent, width));
  }
  if (profile.device.kernels) text += kernels_text(profile.device, width);
  return text;
}

std::string profile_to_text(const Profile& profile, std::size_t width) {
  return profile_heading(profile) + "\n\n" + profile_numbers_text(profile, width);
}

std::string profile_list_text(const std::vector<Profile>& profiles, std::size_t width) {
  TextTable table({{"machine"}, {"what"}});
  for (const Profile& profile : profiles) table.add_row({profile.name, profile.title});
  return table.text("", width);
}

Json profile_list_json(const std::vector<Profile>& profiles) {
  Json list = Json::array();
  for (const Profile& profile : profiles) {
    list.push_back({{"name", profile.name}, {"title", profile.title}});
  }
  return {{"schema", "shardsim/profiles/1"},
          {"shardsim", program_version},
          {"profiles", std::move(list)}};
}

}  // namespace shardsim
