#include "base/owned_json.hpp"

#include <utility>

#include "base/json.hpp"

namespace shardsim {

OwnedJson::OwnedJson() : value_(std::make_unique<Json>()) {}
OwnedJson::OwnedJson(Json value) : value_(std::make_unique<Json>(std::move(value))) {}
OwnedJson::OwnedJson(const OwnedJson& other) : value_(std::make_unique<Json>(*other)) {}
OwnedJson::OwnedJson(OwnedJson&& other) noexcept = default;
OwnedJson& OwnedJson::operator=(const OwnedJson& other) {
  *this = OwnedJson(other);
  return *this;
}
OwnedJson& OwnedJson::operator=(OwnedJson&& other) noexcept = default;
OwnedJson::~OwnedJson() = default;

bool OwnedJson::is_null() const { return value_->is_null(); }

}  // namespace shardsim
