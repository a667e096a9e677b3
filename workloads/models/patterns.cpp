#include "workloads/models/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"

namespace shardsim::models {
namespace {

using Numbers = std::vector<std::int64_t>;

struct SplitName {
  std::string pattern;
  Numbers numbers;
};

SplitName split(const std::string& name) {
  constexpr std::size_t most_digits = 9;
  SplitName result;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, end - at);
    if (at > 0) result.pattern += '.';
    const bool is_number = !part.empty() && part.size() <= most_digits &&
                           part.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) result.numbers.push_back(std::stoll(part));
    result.pattern += is_number ? "{}" : part;
    at = end + 1;
  }
  return result;
}

// A product of sets, and what it stands for.
struct Product {
  std::vector<Numbers> sets;
  std::vector<std::size_t> members;
};

using Member = std::pair<Numbers, std::size_t>;

// By first numbers whose rests are the same products.
std::vector<Product> products(const std::vector<Member>& members, std::size_t depth) {
  if (members.empty()) return {};
  if (depth == members[0].first.size()) {
    Product all;
    for (const Member& member : members) all.members.push_back(member.second);
    return {all};
  }
  std::map<std::int64_t, std::vector<Member>> by_first;
  for (const Member& member : members) by_first[member.first[depth]].push_back(member);
  std::map<std::vector<Numbers>, std::size_t> places;
  std::vector<Product> result;
  for (const auto& [first, rest] : by_first) {
    for (Product& product : products(rest, depth + 1)) {
      const auto [place, is_new] = places.emplace(product.sets, result.size());
      if (is_new) {
        result.emplace_back();
        result.back().sets = product.sets;
        result.back().sets.insert(result.back().sets.begin(), Numbers{});
      }
      Product& joined = result[place->second];
      joined.sets[0].push_back(first);
      joined.members.insert(joined.members.end(), product.members.begin(), product.members.end());
    }
  }
  return result;
}

}  // namespace

std::string NamePattern::text() const {
  std::string result;
  std::size_t from = 0;
  for (const std::string& set : sets) {
    const std::size_t place = name.find("{}", from);
    result += name.substr(from, place - from) + '{' + set + '}';
    from = place + 2;
  }
  return result + name.substr(from);
}

std::vector<NamePattern> fold_patterns(const std::vector<std::string>& names,
                                       const std::vector<std::string>& likeness) {
  std::map<std::pair<std::string, std::string>, std::vector<Member>> groups;
  for (std::size_t i = 0; i < names.size(); ++i) {
    SplitName parts = split(names[i]);
    groups[{std::move(parts.pattern), likeness[i]}].emplace_back(std::move(parts.numbers), i);
  }
  std::vector<NamePattern> patterns;
  for (const auto& [key, members] : groups) {
    for (Product& product : products(members, 0)) {
      NamePattern pattern{key.first, {}, std::move(product.members)};
      for (const Numbers& set : product.sets) pattern.sets.push_back(number_ranges(set));
      std::sort(pattern.members.begin(), pattern.members.end());
      patterns.push_back(std::move(pattern));
    }
  }
  std::sort(patterns.begin(), patterns.end(), [](const NamePattern& a, const NamePattern& b) {
    return a.members.front() < b.members.front();
  });
  return patterns;
}

}  // namespace shardsim::models
