#include "workloads/eager/eager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace shardsim::models {

void Eager::open(std::string_view module) {
  ends_.push_back(path_.size());
  if (!path_.empty()) path_ += '.';
  path_ += numbered(module);
}

void Eager::close() {
  path_.resize(ends_.back());
  ends_.pop_back();
}

void Eager::open_layer(std::string_view prefix, std::string_view kind, int number) {
  open(prefix);
  layer_ = static_cast<int>(layers_.size());
  number_ = number;
  layers_.push_back({number < 0 ? path_ : fmt::format("{}.{}", path_, number), std::string(kind)});
}

void Eager::reopen_layer(std::string_view prefix) {
  open(prefix);
  const auto known = std::find_if(layers_.begin(), layers_.end(),
                                  [&](const Layer& layer) { return layer.prefix == path_; });
  assert(known != layers_.end());
  layer_ = static_cast<int>(known - layers_.begin());
}

void Eager::close_layer() {
  layer_ = -1;
  close();
}

std::string Eager::numbered(std::string_view name) const {
  const std::size_t at = number_ < 0 ? std::string_view::npos : name.find("{}");
  if (at == std::string_view::npos) return std::string(name);
  return fmt::format("{}{}{}", name.substr(0, at), number_, name.substr(at + 2));
}

std::string Eager::full_name(std::string_view name) const {
  if (path_.empty()) return numbered(name);
  return fmt::format("{}.{}", path_, numbered(name));
}

std::int64_t Eager::times(std::int64_t a, std::int64_t b) const {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw InputError(options_.place, "the model's sizes multiply to more than can be counted");
  }
  return product;
}

std::int64_t Eager::elements(const Shape& shape) const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product = times(product, size);
  return product;
}

void Eager::add_up(std::int64_t& sum, std::int64_t more) const {
  if (__builtin_add_overflow(sum, more, &sum)) {
    throw InputError(options_.place, "the model's figures add up to more than can be counted");
  }
}

Value Eager::add_parameter(std::string_view name, const Shape& shape, DType dtype) {
  std::string full = full_name(name);
  if (const auto known = numbers_.find(full); known != numbers_.end()) {
    assert(parameters_[known->second].shape == shape);
    return {parameter_storages_[known->second], shape, dtype, true};
  }
  Value value = make(shape, dtype, /*grad=*/true);
  storages_.back().counts = false;
  numbers_.emplace(full, parameters_.size());
  parameters_.push_back({.name = std::move(full), .shape = shape, .dtype = dtype, .layer = layer_});
  parameter_storages_.push_back(value.storage);
  return value;
}

Value Eager::parameter(std::string_view name, const Shape& shape) {
  return add_parameter(name, shape, options_.dtype);
}

Value Eager::parameter(std::string_view name, const Shape& shape, DType dtype) {
  return add_parameter(name, shape, dtype);
}

Value Eager::embedding_table(std::string_view name, const Shape& shape) {
  Value value = add_parameter(name, shape, options_.dtype);
  parameters_[numbers_.at(full_name(name))].embeddings = 1;
  return value;
}

void Eager::look_up_again(const std::string& full) {
  parameters_[numbers_.at(full)].embeddings += 1;
}

Value Eager::expert_parameter(std::string_view name, const Shape& shape, std::int64_t visited,
                              std::int64_t experts) {
  Value value = add_parameter(name, shape, options_.dtype);
  Parameter& parameter = parameters_[numbers_.at(full_name(name))];
  parameter.visited = visited;
  parameter.experts = experts;
  return value;
}

void Eager::buffer(std::string_view name, const Shape& shape, DType dtype) {
  buffers_.push_back({full_name(name), shape, dtype});
}

void Eager::tie(const std::string& first, const std::string& second) {
  const std::size_t number = numbers_.at(first);
  numbers_.emplace(second, number);
  const auto group = std::find_if(ties_.begin(), ties_.end(), [&](const auto& names) {
    return std::find(names.begin(), names.end(), first) != names.end();
  });
  if (group != ties_.end()) {
    group->push_back(second);
  } else {
    ties_.push_back({first, second});
  }
}

void Eager::tie_renamed(const std::string& first, const std::string& second) {
  tie(first, second);
  parameters_[numbers_.at(first)].name = second;
}

void Eager::tie_module(const std::string& first, const std::string& second) {
  std::vector<std::string> rests;
  for (const Parameter& parameter : parameters_) {
    if (parameter.name.starts_with(first + "."))
      rests.push_back(parameter.name.substr(first.size()));
  }
  for (const std::string& rest : rests) tie(first + rest, second + rest);
}

Value Eager::named(const std::string& full) const {
  const std::size_t number = numbers_.at(full);
  const Parameter& parameter = parameters_[number];
  return {parameter_storages_[number], parameter.shape, parameter.dtype, true};
}

Value Eager::input(DType dtype, const Shape& shape) {
  Value value = make(shape, dtype, /*grad=*/false);
  storages_.back().counts = false;
  return value;
}

Value Eager::constant(DType dtype, const Shape& shape) {
  return make(shape, dtype, /*grad=*/false);
}

Value Eager::make(const Shape& shape, DType dtype, bool grad) {
  const std::int64_t bytes = times(elements(shape), size_of(dtype).count());
  storages_.push_back({bytes, dtype});
  return {static_cast<int>(storages_.size()) - 1, shape, dtype, grad};
}

void Eager::save(const Value& x) {
  Storage& storage = storages_[static_cast<std::size_t>(x.storage)];
  if (muted_ || !storage.counts || storage.saved) return;
  storage.saved = true;
  saved_.push_back(
      {.module = path_, .dtype = storage.dtype, .bytes = storage.bytes, .layer = layer_});
}

void Eager::count(std::string_view op, std::int64_t forward, std::string_view backward_op,
                  std::int64_t backward) {
  if (muted_) return;
  if (forward_alone_) backward = 0;
  const auto add_to = [&](OperatorFlops& flops, std::string_view name, std::int64_t more) {
    if (more == 0) return;
    const auto known = flops.find(name);
    std::int64_t& sum = known != flops.end() ? known->second : flops[std::string(name)];
    add_up(sum, more);
  };
  add_to(forward_, op, forward);
  add_to(backward_, backward_op, backward);
  if (layer_ < 0) return;
  Layer& layer = layers_[static_cast<std::size_t>(layer_)];
  layer.forward_flops += forward;
  layer.backward_flops += backward;
}

void Eager::cache(std::int64_t bytes_per_token, std::int64_t state_bytes) {
  if (muted_ || layer_ < 0) return;
  Layer& layer = layers_[static_cast<std::size_t>(layer_)];
  layer.cache_bytes_per_token += bytes_per_token;
  layer.state_bytes += state_bytes;
}

}  // namespace shardsim::models
