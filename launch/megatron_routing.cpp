// What keeps Megatron's routing even: auxiliary losses and moves of routers' biases (Megatron-Core
// 0.16.1, transformer/moe/router.py, get_aux_loss_coeff and _apply_aux_loss; of
// transformer_config.py moe_router_load_balancing_type, "aux_loss", and moe_aux_loss_coeff, 0.0).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "launch/framework_files.hpp"
#include "launch/megatron_facts.hpp"

namespace shardsim {
namespace {

// Theirs and a strategy's; of the others, of Sinkhorn's and none, no rows are added up.
constexpr std::pair<std::string_view, std::string_view> losses[] = {
    {"aux_loss", "batch"}, {"seq_aux_loss", "sequences"}, {"global_aux_loss", "global"}};
constexpr std::string_view without_loss[] = {"none", "sinkhorn"};

std::vector<std::string> words_of(const Json& value) {
  std::vector<std::string> words;
  for (const Json& one : value.is_array() ? value : Json::array({value})) {
    words.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return words;
}

bool is_above_zero(const Facts& facts, const std::string& text) {
  std::size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end != text.size() || end == 0) {
    facts.fail("arg.loss_weights", fmt::format("expected a number, not \"{}\"", text));
  }
  return number > 0;
}

}  // namespace

void read_megatron_routing(const Facts& facts, Json& experiment) {
  if (!facts.has("model.experts")) return;
  const std::vector<std::string> types = words_of(facts.at("arg.balancing"));
  std::vector<std::string> weights = words_of(facts.at("arg.loss_weights"));
  if (weights.size() == 1) weights.resize(types.size(), weights.front());
  if (weights.size() != types.size()) {
    facts.fail("arg.loss_weights", fmt::format("{} for {} of --moe-router-load-balancing-type",
                                               weights.size(), types.size()));
  }
  Json words = Json::array();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto known = std::find_if(std::begin(losses), std::end(losses),
                                    [&](const auto& one) { return one.first == types[i]; });
    const bool is_none = std::count(std::begin(without_loss), std::end(without_loss), types[i]) > 0;
    if (known == std::end(losses) && !is_none) {
      facts.fail("arg.balancing", fmt::format("\"{}\" is not known", types[i]),
                 "aux_loss, seq_aux_loss, global_aux_loss, sinkhorn, none");
    }
    if (is_above_zero(facts, weights[i]) && !is_none) words.push_back(known->second);
  }
  Json& strategy = experiment["strategy"];
  if (words != Json::array({"batch"})) {
    strategy["experts"]["auxiliary_loss"] = words.empty() ? Json(false) : std::move(words);
  }
  if (facts.is("model.scores", "sigmoid") && !facts.flag("arg.expert_bias")) {
    strategy["experts"]["moves_biases"] = false;
  }
}

void add_megatron_routing_facts(const Json& experts, Facts& facts) {
  const bool is_said = experts.is_object();
  const Json given = is_said ? json_at(experts, "auxiliary_loss") : Json(true);
  Json words = given.is_array()    ? given
               : given == true     ? Json::array({"batch"})
               : given.is_string() ? Json::array({given})
                                   : Json::array();
  constexpr double weight = 0.01;  // of which a step's time does not depend
  Json types = Json::array();
  Json weights = Json::array();
  for (const auto& [theirs, ours] : losses) {
    if (std::find(words.begin(), words.end(), Json(ours)) == words.end()) continue;
    types.push_back(theirs);
    weights.push_back(weight);
  }
  if (!types.empty()) {
    facts.set("arg.balancing", types.size() == 1 ? types.front() : types);
    facts.set("arg.loss_weights", weights.size() == 1 ? weights.front() : weights);
  }
  const bool moves =
      facts.is("model.scores", "sigmoid") && (!is_said || json_at(experts, "moves_biases") == true);
  if (moves) facts.set("arg.expert_bias", true);
}

}  // namespace shardsim
