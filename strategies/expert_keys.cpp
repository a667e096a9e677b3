#include "strategies/expert_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

// In the order of the enums.
const std::vector<std::string> dispatch_words = {"all-to-all", "all-gather", "deepep", "hybridep"};
const std::vector<std::string> count_words = {"none", "gathered", "exchanged"};
const std::vector<std::string> weight_words = {"stay", "travel"};
// As the enum has them.
const std::vector<std::string> loss_words = {"batch", "sequences", "global"};
constexpr double most_rows = 1024;

template <class Enum>
void read_word(const JsonReader& json, std::string_view key, const std::vector<std::string>& words,
               Enum& value) {
  const auto given = json.find(key);
  if (!given) return;
  const auto found = std::find(words.begin(), words.end(), given->choice(words));
  value = static_cast<Enum>(found - words.begin());
}

double read_rows(const JsonReader& json) {
  const double rows = json.number();
  if (rows > 0 && rows <= most_rows) return rows;
  json.fail(fmt::format("expected a number above 0, of at most {}", most_rows));
}

void read_balance(const JsonReader& balance, ExpertLayout& experts) {
  experts.skew = 1;
  experts.shares = {};
  if (!balance.is_object()) {
    (void)balance.choice({"even"});
    return;
  }
  balance.only_keys({"skew", "file", "shares"});
  const auto skew = balance.find("skew");
  if (!skew) {
    experts.shares = read_expert_shares(balance);
    return;
  }
  for (const char* other : {"file", "shares"}) {
    if (balance.find(other)) skew->fail(fmt::format("\"{}\" says more: leave one out", other));
  }
  if (experts.pads) {
    skew->fail("a capacity factor says how many rows each expert gets: leave one out");
  }
  experts.skew = read_rows(*skew);
  if (experts.skew < 1) {
    skew->fail("expected at least 1: the busiest device gets an even share or more");
  }
}

// true, false, a word, or several.
std::vector<AuxiliaryLoss> read_losses(const JsonReader& json) {
  if (json.is_bool()) {
    return json.boolean() ? std::vector{AuxiliaryLoss::batch} : std::vector<AuxiliaryLoss>{};
  }
  std::vector<AuxiliaryLoss> losses;
  for (const JsonReader& one : json.is_array() ? json.elements() : std::vector{json}) {
    const auto found = std::find(loss_words.begin(), loss_words.end(), one.choice(loss_words));
    losses.push_back(static_cast<AuxiliaryLoss>(found - loss_words.begin()));
  }
  return losses;
}

Json losses_to_json(const std::vector<AuxiliaryLoss>& losses) {
  if (losses.empty()) return false;
  if (losses == std::vector{AuxiliaryLoss::batch}) return true;
  Json words = Json::array();
  for (const AuxiliaryLoss loss : losses) {
    words.push_back(loss_words[static_cast<std::size_t>(loss)]);
  }
  return words;
}

void read_how(const JsonReader& json, ExpertLayout& experts) {
  json.only_keys({"parallel", "tensor_parallel", "dispatch", "counts", "weights", "auxiliary_loss",
                  "moves_biases", "holds_rows", "capacity_factor", "pad_to_capacity", "balance",
                  "shared_first", "shared_beside", "grouped", "router_dtype", "shard_dimension"});
  read_word(json, "dispatch", dispatch_words, experts.dispatch);
  read_word(json, "counts", count_words, experts.counts);
  read_word(json, "weights", weight_words, experts.exchange.weights_travel);
  if (const auto loss = json.find("auxiliary_loss")) {
    experts.auxiliary_losses = read_losses(*loss);
  }
  if (const auto moves = json.find("moves_biases")) experts.moves_biases = moves->boolean();
  if (const auto holds = json.find("holds_rows")) experts.holds_rows = holds->boolean();
  if (const auto grouped = json.find("grouped")) experts.grouped = grouped->boolean();
  if (const auto dimension = json.find("shard_dimension")) {
    experts.shards_first = dimension->choice({"fitting", "first"}) == "first";
  }
  if (const auto dtype = json.find("router_dtype"); dtype && !dtype->is_null()) {
    experts.exchange.router_dtype = parse_dtype(dtype->choice({"bf16", "fp32"}));
  }
  if (const auto first = json.find("shared_first")) {
    experts.exchange.shared_first = first->boolean();
  }
  if (const auto beside = json.find("shared_beside")) {
    experts.exchange.shared_beside = beside->boolean();
  }
  if (const auto factor = json.find("capacity_factor"); factor && !factor->is_null()) {
    experts.capacity = read_rows(*factor);
    experts.pads = true;
  }
  if (const auto pads = json.find("pad_to_capacity")) {
    experts.pads = pads->boolean();
    if (!experts.capacity) pads->fail("needs a \"capacity_factor\"");
  }
  if (const auto balance = json.find("balance")) read_balance(*balance, experts);
}

// Of the busiest device of each layer, over an even share.
void set_rows(ExpertLayout& experts) {
  ExpertExchange& exchange = experts.exchange;
  exchange.rows = std::min(experts.skew, experts.capacity.value_or(experts.skew));
  if (experts.pads) exchange.rows = *experts.capacity;
  exchange.rows_of_layer.clear();
  if (experts.pads) return;
  const auto loads = loads_of(experts.shares, Mesh::size_of(experts.parallel), experts.capacity);
  if (loads.empty()) return;
  const std::size_t heaviest = heaviest_of(loads);
  for (const LayerLoad& load : loads) {
    exchange.rows_of_layer[load.layer] = {load.most(), load.of_device[heaviest] / load.most()};
  }
}

// Every device has as many of the experts that shares are of.
void check_shares(const JsonReader& strategy, const ExpertLayout& experts) {
  if (experts.shares.of_layer.empty()) return;
  const auto count = static_cast<std::int64_t>(experts.shares.of_layer.begin()->second.size());
  const std::int64_t devices = Mesh::size_of(experts.parallel);
  if (count % devices == 0) return;
  strategy.at("experts").at("balance").fail(fmt::format(
      "the {} experts that it has shares of do not go evenly over {} devices", count, devices));
}

// Those of the mesh that have one of the names, in its order.
AxisList in_mesh_order(const std::vector<std::string>& names, const Mesh& mesh) {
  AxisList axes = splitting_axes(names, mesh);
  std::sort(axes.begin(), axes.end());
  return axes;
}

AxisList experts_own_axes(const Mesh& mesh, const AxisRoles& roles) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes()) {
    if (roles.of(axis.name) == AxisRole::experts) names.push_back(axis.name);
  }
  return splitting_axes(names, mesh);
}

std::int64_t read_devices(const std::optional<JsonReader>& json, std::string_view key,
                          const Mesh& mesh, std::int64_t otherwise) {
  const auto given = json ? json->find(key) : std::nullopt;
  return given ? given->integer(1, mesh.devices()) : otherwise;
}

std::string names_of(const AxisList& axes, const Mesh& mesh) {
  return fmt::format("{}", fmt::join(mesh.names_of(axes), ", "));
}

AxisList model_axes(const Strategy& options, const Mesh& mesh) {
  return options.model_axis.empty() ? AxisList{} : splitting_axes({options.model_axis}, mesh);
}

// What splits the batch and the sequence, and of that the sequence alone.
void find_tokens(const Strategy& options, const Mesh& mesh, ExpertLayout& experts) {
  std::vector<std::string> within = options.sequence_axes;
  if (options.sequence_parallel) within.push_back(options.model_axis);
  std::vector<std::string> names = options.batch_axes;
  names.insert(names.end(), within.begin(), within.end());
  experts.tokens = in_mesh_order(names, mesh);
  experts.balanced = in_mesh_order(within, mesh);
}

// Answers the devices that are left to deal experts out over: of an axis that each is split over in
// part the others.
AxisList split_each(const std::optional<JsonReader>& json, const AxisList& model, const Mesh& mesh,
                    ExpertLayout& experts) {
  const std::int64_t devices =
      read_devices(json, "tensor_parallel", mesh, Mesh::size_of(experts.tensor));
  const auto cut = cut_minor(model, devices);
  if (!cut) {
    json->at("tensor_parallel")
        .fail(fmt::format("{} devices are no part of the {} of the model axis", devices,
                          Mesh::size_of(model)));
  }
  experts.tensor = cut->minor;
  AxisList others;
  for (const AxisRef& axis : experts.tokens) {
    if (!overlaps_any(axis, experts.tensor)) {
      others.push_back(axis);
    } else {
      others.insert(others.end(), cut->rest.begin(), cut->rest.end());
    }
  }
  return others;
}

// Over the mesh's own axis for experts.
void deal_out_over(const AxisList& own, const std::optional<JsonReader>& json, const Mesh& mesh,
                   AxisList others, ExpertLayout& experts) {
  const std::int64_t devices = read_devices(json, "parallel", mesh, Mesh::size_of(own));
  if (devices != Mesh::size_of(own)) {
    json->at("parallel")
        .fail(fmt::format("{} devices are not the {} of the mesh's axis {}", devices,
                          Mesh::size_of(own), names_of(own, mesh)));
  }
  experts.parallel = own;
  std::erase_if(others, [&](const AxisRef& axis) { return contains(own, axis); });
  experts.data = std::move(others);
}

// Over neighbours.
void deal_out(const std::optional<JsonReader>& json, const Mesh& mesh, const AxisList& others,
              bool model_holds_same_tokens, ExpertLayout& experts) {
  const std::string_view remedy =
      model_holds_same_tokens ? "; those of the model axis hold others with \"sequence_parallel\""
                              : "";
  const std::int64_t devices = read_devices(json, "parallel", mesh, 1);
  const auto cut = cut_minor(others, devices);
  if (!cut && others.empty()) {
    json->at("parallel")
        .fail(fmt::format("experts cannot be dealt out over {} devices: all of the mesh hold the "
                          "same tokens{}",
                          devices, remedy));
  }
  if (!cut) {
    json->at("parallel")
        .fail(fmt::format(
            "experts cannot be dealt out over {} of the {} devices of {} that hold different "
            "tokens{}",
            devices, Mesh::size_of(others), names_of(others, mesh), remedy));
  }
  experts.is_told = devices > 1;
  experts.parallel = cut->minor;
  experts.data = cut->rest;
}

}  // namespace

void read_expert_keys(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                      Strategy& options) {
  const auto json = strategy.is_object() ? strategy.find("experts") : std::nullopt;
  const AxisList own = experts_own_axes(mesh, roles);
  const bool is_null = json && json->is_null();
  if (is_null || (!json && own.empty() && !options.experts)) {
    options.experts.reset();
    return;
  }
  if (!options.experts) options.experts.emplace();
  ExpertLayout& experts = *options.experts;
  if (json) read_how(*json, experts);
  find_tokens(options, mesh, experts);
  const AxisList model = model_axes(options, mesh);
  const AxisList others = split_each(json, model, mesh, experts);
  if (own.empty()) {
    deal_out(json, mesh, others, !model.empty() && !options.sequence_parallel, experts);
  } else {
    deal_out_over(own, json, mesh, others, experts);
  }
  check_shares(strategy, experts);
  set_rows(experts);
  const bool gathers = experts.dispatch == Dispatch::all_gather;
  if (gathers && !is_within(experts.tensor, experts.tokens)) {
    json->at("dispatch")
        .fail(
            "by all-gather, of experts that are split over devices with the same tokens, is not "
            "supported; \"sequence_parallel\" gives each its own");
  }
  if (!json && experts.parallel.empty() && experts.tensor.empty()) options.experts.reset();
}

void deal_out_by_system(const std::vector<std::string>& axes, const Mesh& mesh, Strategy& options) {
  std::vector<std::string> own;
  for (const std::string& name : axes) {
    const auto& batch = options.batch_axes;
    if (std::find(batch.begin(), batch.end(), name) != batch.end()) own.push_back(name);
  }
  const AxisList parallel = splitting_axes(own, mesh);
  if (parallel.empty()) return;
  ExpertLayout experts;
  experts.counts = ExpertCounts::gathered;
  find_tokens(options, mesh, experts);
  deal_out_over(parallel, std::nullopt, mesh, experts.tokens, experts);
  options.experts = std::move(experts);
}

Json expert_keys_to_json(const std::optional<ExpertLayout>& experts) {
  if (!experts) return nullptr;
  const auto word = [](const std::vector<std::string>& words, auto value) {
    return words[static_cast<std::size_t>(value)];
  };
  Json json = {{"parallel", Mesh::size_of(experts->parallel)},
               {"tensor_parallel", Mesh::size_of(experts->tensor)},
               {"dispatch", word(dispatch_words, experts->dispatch)},
               {"counts", word(count_words, experts->counts)},
               {"weights", word(weight_words, experts->exchange.weights_travel)},
               {"auxiliary_loss", losses_to_json(experts->auxiliary_losses)},
               {"moves_biases", experts->moves_biases},
               {"holds_rows", experts->holds_rows},
               {"shared_first", experts->exchange.shared_first},
               {"shared_beside", experts->exchange.shared_beside},
               {"grouped", experts->grouped},
               {"shard_dimension", experts->shards_first ? "first" : "fitting"}};
  if (experts->exchange.router_dtype) {
    json["router_dtype"] = name_of(*experts->exchange.router_dtype);
  }
  if (experts->capacity) {
    json["capacity_factor"] = *experts->capacity;
    json["pad_to_capacity"] = experts->pads;
  }
  if (experts->skew != 1) json["balance"] = {{"skew", experts->skew}};
  if (!experts->shares.of_layer.empty()) json["balance"] = {{"shares", to_json(experts->shares)}};
  return json;
}

}  // namespace shardsim
