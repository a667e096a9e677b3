#include "base/fold_names.hpp"

#include <cassert>
#include <cctype>
#include <map>
#include <utility>

namespace shardsim {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "layers/12/w" -> "layers/\0/w" and {"12"}.
struct NameShape {
  std::string text;
  std::vector<std::string> numbers;
};

NameShape shape_of(const std::string& name) {
  NameShape shape;
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      shape.text += name[i++];
      continue;
    }
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    shape.numbers.push_back(name.substr(i, end - i));
    shape.text += '\0';
    i = end;
  }
  return shape;
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
