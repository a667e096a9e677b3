// A JSON document as a member of a type whose header need not know what documents are made of
// (base/json.hpp). A value: copies are deep, the default is null.
//
//   struct Experiment { OwnedJson resolved; };      experiment.resolved->at("name")
#pragma once

#include <memory>

#include "base/json_reader.hpp"

namespace shardsim {

class OwnedJson {
 public:
  OwnedJson();
  explicit OwnedJson(Json value);
  OwnedJson(const OwnedJson& other);
  OwnedJson(OwnedJson&& other) noexcept;
  OwnedJson& operator=(const OwnedJson& other);
  OwnedJson& operator=(OwnedJson&& other) noexcept;
  ~OwnedJson();

  [[nodiscard]] bool is_null() const;

  [[nodiscard]] const Json& operator*() const { return *value_; }
  [[nodiscard]] Json& operator*() { return *value_; }
  [[nodiscard]] const Json* operator->() const { return value_.get(); }
  [[nodiscard]] Json* operator->() { return value_.get(); }

 private:
  std::unique_ptr<Json> value_;  // of one that was moved from: nothing
};

}  // namespace shardsim
