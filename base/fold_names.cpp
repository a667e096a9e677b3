#include "base/fold_names.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

namespace shardsim {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "layers/12/w" -> "layers/\0/w" and {"12"}.
struct NameShape {
  std::string text;
  std::vector<std::string> numbers;
};

// Where the number of a part of a name begins: 0 in "12", 7 in "layers_12"; its end without one.
std::size_t number_in(std::string_view part) {
  std::size_t begin = part.size();
  while (begin > 0 && is_digit(part[begin - 1])) --begin;
  if (begin == 0) return begin;
  const std::string_view word = part.substr(0, begin);
  for (const std::string_view list : {"layers_", "layer_", "blocks_", "block_"}) {
    if (word.ends_with(list)) return begin;
  }
  return part.size();
}

NameShape shape_of(std::string_view name) {
  NameShape shape;
  while (true) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    const std::string_view part = name.substr(0, end);
    const std::size_t number = number_in(part);
    shape.text += part.substr(0, number);
    if (number < part.size()) {
      shape.text += '\0';
      shape.numbers.emplace_back(part.substr(number));
    }
    if (end == name.size()) return shape;
    shape.text += name[end];
    name.remove_prefix(end + 1);
  }
}

struct Fold {
  NameShape first;
  std::vector<bool> differs;  // by number
  std::vector<std::size_t> members;
};

std::string name_of(const Fold& fold) {
  std::string name;
  std::size_t place = 0;
  for (const char c : fold.first.text) {
    if (c != '\0') {
      name += c;
    } else {
      name += fold.differs[place] ? "{}" : fold.first.numbers[place];
      ++place;
    }
  }
  return name;
}

}  // namespace

std::vector<FoldedName> fold_names(const std::vector<std::string>& names,
                                   const std::vector<std::string>& likeness) {
  assert(names.size() == likeness.size());
  std::vector<Fold> folds;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    NameShape shape = shape_of(names[i]);
    const auto [found, added] = known.try_emplace({shape.text, likeness[i]}, folds.size());
    if (added) {
      folds.push_back({std::move(shape), {}, {i}});
      folds.back().differs.resize(folds.back().first.numbers.size());
      continue;
    }
    Fold& fold = folds[found->second];
    fold.members.push_back(i);
    for (std::size_t n = 0; n < shape.numbers.size(); ++n) {
      if (fold.first.numbers[n] != shape.numbers[n]) fold.differs[n] = true;
    }
  }
  std::vector<FoldedName> result;
  result.reserve(folds.size());
  for (Fold& fold : folds) result.push_back({name_of(fold), std::move(fold.members)});
  return result;
}

}  // namespace shardsim
