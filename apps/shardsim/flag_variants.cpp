#include "flag_variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json.hpp"

namespace shardsim {
namespace {

const Flag* find_flag(std::span<const Flag> flags, const std::string& name) {
  const auto found =
      std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return name == flag.name; });
  return found == flags.end() ? nullptr : &*found;
}

// "batch 128"; "fsdp"; "fsdp, prefetch 2" of a strategy in JSON; a file without its folder.
std::string label_of(const Flag& flag, const std::string& value) {
  const std::set<std::string> say_themselves = {"model",       "tree",      "program",
                                                "mesh",        "strategy",  "machine",
                                                "collectives", "placement", "topology"};
  const Json json = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("name") && json["name"].is_string()) {
    std::string label = json["name"].get<std::string>();
    for (const auto& [key, part] : json.items()) {
      if (key != "name") label += fmt::format(", {} {}", key, part.dump());
    }
    return label;
  }
  if (!say_themselves.contains(flag.name)) return fmt::format("{} {}", flag.name, value);
  const std::filesystem::path path(value);
  return path.extension() == ".json" ? path.stem().string() : value;
}

// At commas outside of brackets and quotes: ring(bandwidth=50GB/s,latency=1us) is one value.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && std::string_view("([{").find(c) != std::string_view::npos) ++depth;
    if (!quoted && std::string_view(")]}").find(c) != std::string_view::npos) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

std::vector<std::string> values_of(const Flag& flag, const Words& given) {
  // Their values have commas of their own: they are repeated.
  const std::set<std::string> no_lists = {"mesh", "slices", "algorithms"};
  std::vector<std::string> values;
  for (const std::string& text : given) {
    std::error_code unreadable;
    const bool is_one = no_lists.contains(flag.name) || std::filesystem::exists(text, unreadable);
    const std::vector<std::string> parts =
        is_one ? std::vector<std::string>{text} : split_list(text);
    for (const std::string& part : parts) {
      if (part.empty() && parts.size() > 1) {
        throw UsageError(fmt::format("--{} {}: a value between commas is empty", flag.name, text));
      }
      if (std::find(values.begin(), values.end(), part) != values.end()) {
        throw UsageError(fmt::format("--{}: {} is given twice", flag.name, part));
      }
      values.push_back(part);
    }
  }
  return values;
}

}  // namespace

std::vector<FlagChoice> choices_of(const Given& given, std::span<const Flag> flags) {
  std::vector<FlagChoice> choices;
  std::size_t variants = 1;
  for (const auto& option : given.parsed.options) {
    const Flag* flag = find_flag(flags, option.string_key);
    const bool is_known =
        std::any_of(choices.begin(), choices.end(),
                    [&](const FlagChoice& choice) { return choice.flag == flag; });
    if (flag == nullptr || is_known) continue;
    FlagChoice choice{flag, values_of(*flag, given.all(flag->name)), {}};
    for (const std::string& value : choice.values) choice.labels.push_back(label_of(*flag, value));
    const std::set<std::string> distinct(choice.labels.begin(), choice.labels.end());
    if (distinct.size() < choice.labels.size()) choice.labels = choice.values;
    variants *= choice.values.size();
    constexpr std::size_t most_variants = 1000;
    if (variants > most_variants) {
      throw UsageError(
          fmt::format("the lists of --{} and the flags before it make more than {} "
                      "variants",
                      flag->name, most_variants));
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

std::vector<Variant> variants_of(const std::vector<FlagChoice>& choices) {
  std::vector<Variant> variants(1);
  for (const FlagChoice& choice : choices) {
    std::vector<Variant> longer;
    for (const Variant& variant : variants) {
      for (std::size_t i = 0; i < choice.values.size(); ++i) {
        longer.push_back(variant);
        longer.back().indices.push_back(i);
        if (choice.values.size() == 1) continue;
        std::string& label = longer.back().label;
        label += (label.empty() ? "" : ", ") + choice.labels[i];
      }
    }
    variants = std::move(longer);
  }
  return variants;
}

}  // namespace shardsim
