#include "launch/facts.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace shardsim {

Json& field_at(Json& document, std::string_view path) {
  Json* field = &document;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    field = &(*field)[std::string(path.substr(at, end - at))];
    at = end + 1;
  }
  return *field;
}

void Facts::set(std::string_view name, Json value) {
  set(name, std::move(value), whole_, /*given=*/false);
}

void Facts::set(std::string_view name, Json value, Place place, bool given) {
  facts_[std::string(name)] = {OwnedJson(std::move(value)), std::move(place), given};
}

void Facts::erase(std::string_view name) {
  const auto found = facts_.find(name);
  if (found != facts_.end()) facts_.erase(found);
}

bool Facts::has(std::string_view name) const {
  const auto found = facts_.find(name);
  return found != facts_.end() && !found->second.value->is_null();
}

bool Facts::given(std::string_view name) const {
  const auto found = facts_.find(name);
  return found != facts_.end() && found->second.given;
}

const Json& Facts::at(std::string_view name) const {
  const auto found = facts_.find(name);
  if (found == facts_.end()) fail(name, fmt::format("says nothing of {}", name));
  return *found->second.value;
}

Json Facts::get(std::string_view name) const { return has(name) ? at(name) : Json(); }

std::int64_t Facts::integer(std::string_view name, std::int64_t least) const {
  return JsonReader(at(name), place(name)).integer(least, largest_number);
}

std::int64_t Facts::integer_or(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? integer(name, 0) : otherwise;
}

double Facts::number(std::string_view name) const {
  return JsonReader(at(name), place(name)).number();
}

bool Facts::flag(std::string_view name) const {
  return has(name) && JsonReader(at(name), place(name)).boolean();
}

std::string Facts::text(std::string_view name) const {
  return JsonReader(at(name), place(name)).string();
}

bool Facts::is(std::string_view name, std::string_view word) const {
  return has(name) && at(name).is_string() && at(name).get<std::string>() == word;
}

Place Facts::place(std::string_view name) const {
  const auto found = facts_.find(name);
  return found == facts_.end() ? whole_ : found->second.place;
}

void Facts::fail(std::string_view name, std::string_view message,
                 std::string_view suggestion) const {
  throw InputError(place(name), message, suggestion);
}

void Facts::copy_paths(std::string_view prefix, Json& document) const {
  for (const auto& [name, fact] : facts_) {
    if (name.starts_with(prefix) && !fact.value->is_null()) field_at(document, name) = *fact.value;
  }
}

}  // namespace shardsim
