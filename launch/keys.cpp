#include "launch/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/json.hpp"

namespace shardsim {
namespace {

Json parsed(std::string_view json) { return Json::parse(json); }

bool covers(std::string_view name, std::string_view key) {
  if (name.ends_with("_*") || name.ends_with("-*"))
    return key.starts_with(name.substr(0, name.size() - 1));
  if (!name.ends_with(".*")) return name == key;
  const std::string_view section = name.substr(0, name.size() - 2);
  return key == section || (key.starts_with(section) && key[section.size()] == '.');
}

std::vector<std::string> known_names(const KeyTable& table) {
  std::vector<std::string> names;
  for (const Key& key : *table.used) names.emplace_back(key.name);
  for (const HarmlessKeys& group : *table.harmless) {
    names.insert(names.end(), group.names.begin(), group.names.end());
  }
  for (const RefusedKey& key : *table.refused) names.emplace_back(key.name);
  return names;
}

const Key* find_used(const KeyTable& table, std::string_view key) {
  for (const Key& one : *table.used) {
    if (one.name == key) return &one;
  }
  return nullptr;
}

std::string_view find_harmless(const KeyTable& table, std::string_view key) {
  for (const HarmlessKeys& group : *table.harmless) {
    for (const std::string_view name : group.names) {
      if (covers(name, key)) return group.why;
    }
  }
  return {};
}

const RefusedKey* find_refused(const KeyTable& table, std::string_view key) {
  for (const RefusedKey& one : *table.refused) {
    if (covers(one.name, key)) return &one;
  }
  return nullptr;
}

[[noreturn]] void fail(const Entry& entry, std::string_view message) {
  if (*entry.value == "auto") {  // transformers' word
    throw InputError(entry.place,
                     fmt::format("\"auto\" is filled in by the program that reads the file: add "
                                 "{}=VALUE behind it",
                                 entry.key));
  }
  if (entry.value->is_string() && entry.value->get<std::string>().starts_with('$')) {
    std::string name = entry.value->get<std::string>();
    std::erase_if(name, [](char c) { return c == '$' || c == '{' || c == '}'; });
    throw InputError(
        entry.place,
        fmt::format("is a variable of the environment: add {}=VALUE behind the file", name));
  }
  throw InputError(entry.place, message);
}

// Command lines have text alone; "1e9" is an integer to some.
Json number_in(const Entry& entry, bool integer) {
  Json value = *entry.value;
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) value = number;
  }
  const auto wanted = integer ? "an integer" : "a number";
  if (!value.is_number()) fail(entry, fmt::format("expected {}, not {}", wanted, value.dump()));
  if (!integer || value.is_number_integer()) return value;
  const double number = value.get<double>();
  if (std::trunc(number) != number || std::abs(number) > 9e15) {
    fail(entry, fmt::format("expected an integer, not {}", value.dump()));
  }
  return static_cast<std::int64_t>(number);
}

Json flag_in(const Entry& entry) {
  if (entry.value->is_boolean()) return *entry.value;
  if (entry.value->is_string()) {
    std::string text = entry.value->get<std::string>();
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (text == "true" || text == "1" || text == "yes") return true;
    if (text == "false" || text == "0" || text == "no") return false;
  }
  fail(entry, fmt::format("expected true or false, not {}", entry.value->dump()));
}

std::string word_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Json read_value(const Entry& entry, const Key& key) {
  if (!key.words.empty()) {
    const std::string word =
        key.kind == KeyKind::flag ? flag_in(entry).dump() : word_of(*entry.value);
    std::vector<std::string_view> known;
    for (const auto& [theirs, ours] : key.words) {
      if (theirs == word) return parsed(ours);
      known.push_back(theirs);
    }
    fail(entry, fmt::format("{} is not among what shardsim knows of it: {}", entry.value->dump(),
                            fmt::join(known, ", ")));
  }
  switch (key.kind) {
    case KeyKind::integer:
      return number_in(entry, /*integer=*/true);
    case KeyKind::number:
      return number_in(entry, /*integer=*/false);
    case KeyKind::flag:
      return flag_in(entry);
    case KeyKind::text:
      if (entry.value->is_structured() || entry.value->is_boolean()) {
        fail(entry, fmt::format("expected a word, not {}", entry.value->dump()));
      }
      return word_of(*entry.value);
    case KeyKind::any:
      break;
  }
  return *entry.value;
}

// Sets the key's fact. A value that cannot be read is a refused key, where these are listed.
KeyUse use_key(const Entry& entry, const Key& key, bool lists_refused, Facts& facts) {
  try {
    if (!entry.value->is_null()) {
      facts.set(key.fact, read_value(entry, key), entry.place, /*given=*/true);
    }
  } catch (const InputError&) {
    if (!lists_refused) throw;
    return {entry, KeyEffect::refused,
            *entry.value == "auto"
                ? std::string("is filled in by the program that reads the file")
                : fmt::format("{} is no value that is known of it", entry.value->dump())};
  }
  return {entry, KeyEffect::used, std::string(key.fact)};
}

bool asks_for_nothing(const Entry& entry, const RefusedKey& key) {
  const Json harmless = parsed(key.harmless.empty() ? "[]" : key.harmless);
  return std::any_of(harmless.begin(), harmless.end(), [&](const Json& value) {
    return value == *entry.value || word_of(value) == word_of(*entry.value);
  });
}

}  // namespace

std::string_view name_of(KeyEffect effect) {
  switch (effect) {
    case KeyEffect::used:
      return "used";
    case KeyEffect::harmless:
      return "no influence";
    case KeyEffect::refused:
      return "refused";
    case KeyEffect::left_out:
      return "left out";
  }
  return "";
}

SortedKeys sort_keys(const std::vector<Entry>& entries, const KeyTable& table,
                     const std::vector<std::string>& leave_out, const Place& whole,
                     bool lists_refused, bool has_model) {
  SortedKeys sorted{.facts = Facts(whole), .uses = {}};
  std::set<std::string> left;
  for (const Entry& entry : entries) {
    if (std::find(leave_out.begin(), leave_out.end(), entry.key) != leave_out.end()) {
      sorted.uses.push_back({entry, KeyEffect::left_out, "--leave-out"});
      left.insert(entry.key);
    } else if (const Key* key = find_used(table, entry.key)) {
      sorted.uses.push_back(use_key(entry, *key, lists_refused, sorted.facts));
    } else if (const RefusedKey* refused = find_refused(table, entry.key)) {
      if (asks_for_nothing(entry, *refused)) {
        sorted.uses.push_back({entry, KeyEffect::harmless, "asks for nothing with this value"});
        continue;
      }
      if (has_model && refused->of_model) {
        sorted.uses.push_back({entry, KeyEffect::harmless, "of the model, which is given"});
        continue;
      }
      if (!lists_refused) {
        fail(entry, fmt::format("{}; --leave-out {} imports the rest", refused->why, entry.key));
      }
      sorted.uses.push_back({entry, KeyEffect::refused, std::string(refused->why)});
    } else if (const std::string_view why = find_harmless(table, entry.key); !why.empty()) {
      sorted.uses.push_back({entry, KeyEffect::harmless, std::string(why)});
    } else {
      if (!lists_refused) {
        throw InputError(entry.place,
                         fmt::format("unknown key; --leave-out {} imports the rest", entry.key),
                         closest(entry.key, known_names(table)));
      }
      sorted.uses.push_back({entry, KeyEffect::refused, "unknown key"});
    }
  }
  for (const std::string& name : leave_out) {
    if (left.contains(name)) continue;
    throw InputError({"command line", "--leave-out"},
                     fmt::format("the file has no key \"{}\"", name));
  }
  for (const Key& key : *table.used) {
    if (key.otherwise.empty() || sorted.facts.given(key.fact)) continue;
    sorted.facts.set(key.fact, parsed(key.otherwise));
  }
  return sorted;
}

void set_defaults(std::string_view object, const KeyTable& table, bool over_given, Facts& facts) {
  const Json keys = parsed(object);
  for (const auto& [name, value] : keys.items()) {
    const Key* key = find_used(table, name);
    if (key == nullptr) throw InputError(facts.whole(), "no such key: " + name);
    if (!over_given && facts.given(key->fact)) continue;
    const Entry entry{name, name, OwnedJson(value), facts.whole()};
    facts.set(key->fact, read_value(entry, *key), facts.whole(), /*given=*/false);
  }
}

std::vector<WrittenKey> keys_of_facts(const Facts& facts, const KeyTable& table) {
  std::vector<WrittenKey> written;
  std::set<std::string_view> said;
  for (const Key& key : *table.used) {
    if (key.other_spelling || !facts.has(key.fact)) continue;
    const Json& value = facts.at(key.fact);
    if (!key.otherwise.empty() && parsed(key.otherwise) == value) {
      said.insert(key.fact);
      continue;
    }
    if (key.words.empty()) {
      said.insert(key.fact);
      written.push_back({std::string(key.name), OwnedJson(value)});
      continue;
    }
    for (const auto& [theirs, ours] : key.words) {
      if (parsed(ours) != value) continue;
      said.insert(key.fact);
      written.push_back({std::string(key.name),
                         OwnedJson(key.kind == KeyKind::flag ? parsed(theirs) : Json(theirs))});
      break;
    }
  }
  for (const auto& [name, fact] : facts.all()) {
    if (fact.value->is_null() || said.contains(name)) continue;
    facts.fail(name, fmt::format("no key of the file says {} {}", name, fact.value->dump()));
  }
  return written;
}

}  // namespace shardsim
