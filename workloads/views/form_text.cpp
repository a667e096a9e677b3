#include "workloads/views/form_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// Takes labels of one parameter, each once.
class LabelTaker {
 public:
  LabelTaker(const Workload& workload, TensorId parameter) : workload_(workload) {
    for (const Dim& dim : workload.tensors[at(parameter)].dims) {
      left_.insert(left_.end(), dim.begin(), dim.end());
    }
  }

  [[nodiscard]] const Label& label(LabelId id) const { return workload_.labels[at(id)]; }
  Dim rest() { return std::exchange(left_, {}); }

  // All that `word` is about, in the parameter's order.
  Dim take(const std::string& word) {
    Dim taken;
    for (const std::string& name : split(word, '+')) {
      std::erase_if(left_, [&](LabelId id) {
        if (!is_of(label(id), name)) return false;
        taken.push_back(id);
        return true;
      });
    }
    return taken;
  }

 private:
  static bool is_of(const Label& label, const std::string& name) {
    if (name == "heads") {
      return label.role == LabelRole::heads || label.role == LabelRole::head_group;
    }
    return base_name(label) == name;
  }

  const Workload& workload_;
  Dim left_;
};

struct FormPart {
  Dim dim;
  std::vector<std::string> names;
};

// Takes "{gate_up:wi_0,wi_1}" out of the name, where it leaves "{0}".
std::optional<std::vector<FormPart>> take_parts(LabelTaker& labels, std::string& name) {
  std::vector<FormPart> parts;
  for (std::size_t begin = name.find('{'); begin != std::string::npos;
       begin = name.find('{', begin + 1)) {
    const std::size_t end = name.find('}', begin);
    const std::string inside = name.substr(begin + 1, end - begin - 1);
    if (inside == "mark") continue;
    const std::size_t colon = inside.find(':');
    FormPart part{labels.take(inside.substr(0, colon)), {}};
    if (part.dim.size() != 1) return std::nullopt;
    const std::int64_t size = labels.label(part.dim.front()).size;
    if (colon != std::string::npos) {
      part.names = split(inside.substr(colon + 1), ',');
      if (static_cast<std::int64_t>(part.names.size()) != size) return std::nullopt;
    } else {
      for (std::int64_t i = 0; i < size; ++i) part.names.push_back(std::to_string(i));
    }
    name.replace(begin, end - begin + 1, fmt::format("{{{}}}", parts.size()));
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string with_words(std::string_view text, const std::vector<Word>& words) {
  std::string result(text);
  for (const Word& word : words) {
    const std::string hole = fmt::format("{{{}}}", word.name);
    for (std::size_t found = result.find(hole); found != std::string::npos;
         found = result.find(hole)) {
      result.replace(found, hole.size(), word.text);
    }
  }
  return result;
}

}  // namespace

std::string base_name(const Label& label) {
  const std::size_t bar = label.name.rfind('_');
  if (bar == std::string::npos || bar + 1 == label.name.size()) return label.name;
  const bool is_number =
      std::all_of(label.name.begin() + static_cast<std::ptrdiff_t>(bar) + 1, label.name.end(),
                  [](unsigned char c) { return std::isdigit(c); });
  return is_number ? label.name.substr(0, bar) : label.name;
}

std::optional<ViewedParameter> in_form(const Workload& workload, TensorId parameter,
                                       std::string_view to, std::string_view dims) {
  LabelTaker labels(workload, parameter);
  ViewedParameter viewed;
  viewed.form.name = to;
  const auto parts = take_parts(labels, viewed.form.name);
  if (!parts) return std::nullopt;
  std::optional<std::size_t> rest;
  for (const std::string& word : split(std::string(dims), ' ')) {
    if (word.starts_with('+')) {
      viewed.form.joint = {viewed.dims.size(), std::stoll(word.substr(1))};
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string axis = word.substr(0, equals);
    std::string what = word.substr(equals + 1);
    if (what.starts_with('~')) {
      viewed.form.joint = {viewed.dims.size(), 0};
      what.erase(0, 1);
    }
    viewed.form.axes.push_back(axis == "-" ? std::nullopt : std::optional(axis));
    viewed.dims.emplace_back();
    if (what == "*") {
      rest = viewed.dims.size() - 1;
    } else {
      viewed.dims.back() = labels.take(what);
    }
  }
  if (rest) viewed.dims[*rest] = labels.rest();
  for (const Dim& dim : viewed.dims) {
    if (dim.empty()) return std::nullopt;
  }
  for (const LabelId label : labels.rest()) {
    if (labels.label(label).size > 1) return std::nullopt;
    viewed.dims.back().push_back(label);
  }
  for (const FormPart& part : *parts) {
    viewed.dims.push_back(part.dim);
    viewed.form.parts.push_back(part.names);
  }
  return viewed;
}

std::optional<ViewedParameter> by_row(const Workload& workload, TensorId parameter,
                                      std::span<const ViewRow> rows,
                                      const std::vector<Word>& words) {
  const std::string name = name_in_layer(workload, parameter);
  for (const ViewRow& row : rows) {
    if (row.from != name) continue;
    return in_form(workload, parameter, with_words(row.to, words), with_words(row.dims, words));
  }
  return std::nullopt;
}

}  // namespace shardsim
