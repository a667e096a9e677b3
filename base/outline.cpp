#include "base/outline.hpp"

#include <algorithm>

#include "base/json.hpp"

namespace shardsim {
namespace {

bool is_scalar(const Json& value) { return !value.is_array() && !value.is_object(); }

std::string word(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "x, w"; a list within a list in brackets.
std::string in_one_line(const Json& value) {
  if (is_scalar(value)) return word(value);
  std::string text;
  for (const auto& [key, one] : value.items()) {
    if (!text.empty()) text += ", ";
    if (value.is_object()) text += key + ": ";
    text += is_scalar(one) ? word(one) : "[" + in_one_line(one) + "]";
  }
  return text.empty() ? "none" : text;
}

bool is_flat(const Json& value) {
  return is_scalar(value) || std::all_of(value.begin(), value.end(), is_scalar) ||
         (value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& one) {
            return is_scalar(one) || one.is_array();
          }));
}

class Outline {
 public:
  explicit Outline(std::size_t width) : width_(width) {}

  std::string write(const Json& document) {
    members(document, 0);
    return std::move(text_);
  }

 private:
  static constexpr std::size_t step = 2;

  void member(const std::string& key, const Json& value, std::size_t indent) {
    const std::string line = in_one_line(value);
    const bool fits = indent + key.size() + step + line.size() <= width_;
    if (is_scalar(value) || value.empty() || (is_flat(value) && fits)) {
      text_ += std::string(indent, ' ') + key + ": " + line + "\n";
      return;
    }
    text_ += std::string(indent, ' ') + key + "\n";
    if (value.is_object()) {
      members(value, indent + step);
    } else {
      elements(value, indent + step);
    }
  }

  void members(const Json& object, std::size_t indent) {
    for (const auto& [key, value] : object.items()) member(key, value, indent);
  }

  void elements(const Json& list, std::size_t indent) {
    for (const Json& one : list) {
      const std::size_t begin = text_.size();
      if (one.is_object() && !one.empty()) {
        members(one, indent + step);
      } else {
        text_ += std::string(indent + step, ' ') + in_one_line(one) + "\n";
      }
      text_[begin + indent] = '-';
    }
  }

  std::size_t width_;
  std::string text_;
};

}  // namespace

std::string outline(const Json& document, std::size_t width) {
  return Outline(width).write(document);
}

}  // namespace shardsim
