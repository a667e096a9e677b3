#include "workloads/models/hub_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "workloads/models/hub_tables.hpp"

namespace shardsim::models {
namespace {

const HubFamily* find_family(const std::string& family) {
  for (const HubFamily& known : hub_families()) {
    if (std::find(known.families.begin(), known.families.end(), family) != known.families.end()) {
      return &known;
    }
  }
  return nullptr;
}

// Where a pattern begins in a name, how long what it matches is, and the numbers in it.
struct Match {
  std::size_t at = std::string::npos;
  std::size_t length = 0;
  std::vector<std::string> numbers{};
};

Match match_at(std::string_view name, std::size_t at, std::string_view pattern) {
  Match match{at};
  std::size_t i = at;
  for (const char wanted : pattern) {
    if (wanted != '#') {
      if (i >= name.size() || name[i] != wanted) return {};
      ++i;
      continue;
    }
    const std::size_t end = std::min(name.find_first_not_of("0123456789", i), name.size());
    if (end == i) return {};
    match.numbers.emplace_back(name.substr(i, end - i));
    i = end;
  }
  match.length = i - at;
  return match;
}

Match find_match(std::string_view name, std::string_view pattern) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    Match match = match_at(name, at, pattern);
    if (match.at != std::string::npos) return match;
  }
  return {};
}

std::string with_numbers(std::string_view file, const std::vector<std::string>& numbers) {
  std::string text;
  std::size_t next = 0;
  for (const char c : file) {
    if (c == '#') {
      text += numbers[next++];
    } else {
      text += c;
    }
  }
  return text;
}

// The first of the renamings that match at the beginning, and all others wherever they match.
std::string renamed(const HubFamily& family, std::string name) {
  bool begun = false;
  for (const Renaming& renaming : family.renamings) {
    const bool begins = renaming.module.front() == '^';
    if (begins && begun) continue;
    const Match match =
        begins ? match_at(name, 0, renaming.module.substr(1)) : find_match(name, renaming.module);
    if (match.at == std::string::npos) continue;
    name.replace(match.at, match.length, with_numbers(renaming.file, match.numbers));
    begun = begun || begins;
  }
  return name;
}

// [E, 2f, h] is E matrices of gate and of up, [E, out, in] one of each expert: a row for all.
void add_experts(std::vector<HubTensor>& tensors, const ExpertFiles& names,
                 const HubTensor& stacked) {
  const std::size_t dot = stacked.name.rfind('.');
  const std::string experts = stacked.name.substr(0, dot);
  const std::string what = stacked.name.substr(dot + 1);
  const auto add = [&](std::string_view name, std::int64_t out) {
    tensors.push_back({fmt::format("{}.*.{}.weight", experts, name),
                       {out, stacked.shape[2]},
                       stacked.dtype,
                       stacked.shape[0],
                       stacked.first});
  };
  if (what == "gate_up_proj") {
    add(names.gate, stacked.shape[1] / 2);
    add(names.up, stacked.shape[1] / 2);
  } else {
    add(what == "up_proj" ? names.up : names.down, stacked.shape[1]);
  }
}

// In place of the first of its modules that comes all of a fusion; the others' rows add to it.
bool add_fused(std::vector<HubTensor>& tensors, const Fusion& fusion, HubTensor tensor) {
  for (std::size_t i = 0; i < fusion.modules.size(); ++i) {
    const std::size_t at = tensor.name.find(fusion.modules[i]);
    if (at == std::string::npos) continue;
    tensor.name.replace(at, fusion.modules[i].size(), fusion.file);
    constexpr std::ptrdiff_t near = 16;  // modules of a fusion follow each other
    const auto end = tensors.rbegin() + std::min(near, std::ssize(tensors));
    const auto whole = std::find_if(tensors.rbegin(), end,
                                    [&](const auto& one) { return one.name == tensor.name; });
    if (whole == end) {
      tensors.push_back(std::move(tensor));
    } else {
      whole->shape[0] += tensor.shape[0];
    }
    return true;
  }
  return false;
}

bool add_cut(std::vector<HubTensor>& tensors, const Cut& cut, HubTensor tensor) {
  const std::size_t at = tensor.name.find(cut.module);
  if (at == std::string::npos) return false;
  const std::string name = tensor.name;
  tensor.shape[cut.dimension] /= static_cast<std::int64_t>(cut.files.size());
  for (const std::string_view file : cut.files) {
    tensor.name = std::string(name).replace(at, cut.module.size(), file);
    tensors.push_back(tensor);
  }
  return true;
}

// One by one where they are experts, together or in parts where files have them so.
void add_tensor(std::vector<HubTensor>& tensors, const HubFamily& names, HubTensor tensor,
                bool of_experts) {
  if (of_experts && !names.experts.down.empty() && tensor.shape.size() == 3) {
    add_experts(tensors, names.experts, tensor);
    return;
  }
  for (const Fusion& fusion : names.fusions) {
    if (add_fused(tensors, fusion, tensor)) return;
  }
  for (const Cut& cut : names.cuts) {
    if (add_cut(tensors, cut, tensor)) return;
  }
  tensors.push_back(std::move(tensor));
}

}  // namespace

bool has_hub_names(const std::string& family) { return find_family(family) != nullptr; }

std::string hub_module(const std::string& family, std::string name) {
  const HubFamily* found = find_family(family);
  return found == nullptr ? name : renamed(*found, std::move(name));
}

ExpertFiles expert_files(const std::string& family) {
  const HubFamily* found = find_family(family);
  return found == nullptr ? ExpertFiles{} : found->experts;
}

std::vector<HubTensor> hub_rows(const std::string& family, const ModelCounts& counts) {
  static const HubFamily as_they_are{};
  const HubFamily* found = find_family(family);
  const HubFamily& names = found == nullptr ? as_they_are : *found;
  std::vector<HubTensor> tensors;
  const auto is_in = [](const std::string& name, std::string_view part) {
    return !part.empty() && name.find(part) != std::string::npos;
  };
  for (const Parameter& parameter : counts.parameters) {
    HubTensor tensor{renamed(names, parameter.name), parameter.shape, parameter.dtype};
    if (parameter.experts > 0 && is_in(parameter.name, names.behind)) {
      tensor.first = parameter.shape[0];
    }
    for (const std::string_view part : names.turned) {
      if (is_in(parameter.name, part)) std::swap(tensor.shape[0], tensor.shape[1]);
    }
    add_tensor(tensors, names, std::move(tensor), parameter.experts > 0);
  }
  for (const Buffer& buffer : counts.buffers) {
    tensors.push_back({renamed(names, buffer.name), buffer.shape, buffer.dtype});
  }
  return tensors;
}

std::vector<HubTensor> hub_tensors(const std::string& family, const ModelCounts& counts) {
  std::vector<HubTensor> tensors;
  for (HubTensor& row : hub_rows(family, counts)) {
    if (row.experts == 0) {
      tensors.push_back(std::move(row));
      continue;
    }
    const std::size_t star = row.name.find('*');
    for (std::int64_t i = 0; i < row.experts; ++i) {
      tensors.push_back({fmt::format("{}{}{}", row.name.substr(0, star), row.first + i,
                                     row.name.substr(star + 1)),
                         row.shape, row.dtype});
    }
  }
  return tensors;
}

}  // namespace shardsim::models
