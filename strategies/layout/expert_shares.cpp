#include "strategies/layout/expert_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/file.hpp"
#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_layers = 1 << 16;
constexpr std::int64_t most_experts = 1 << 20;

// One line of a file.
struct Row {
  std::int64_t layer = 0;
  std::int64_t expert = 0;
  double share = 0;
  Place place;
};

// By layer and expert; every expert once.
ExpertShares collect(const std::vector<Row>& rows) {
  ExpertShares shares;
  std::set<std::pair<std::int64_t, std::int64_t>> known;
  for (const Row& row : rows) {
    if (!known.emplace(row.layer, row.expert).second) {
      throw InputError(row.place,
                       fmt::format("expert {} of layer {} comes twice", row.expert, row.layer));
    }
    auto& layer = shares.of_layer[static_cast<std::int32_t>(row.layer)];
    layer.resize(std::max(layer.size(), static_cast<std::size_t>(row.expert) + 1), -1);
    layer[static_cast<std::size_t>(row.expert)] = row.share;
  }
  return shares;
}

// All layers have as many experts, and each a share.
void check(const ExpertShares& shares, const Place& place) {
  if (shares.of_layer.empty()) throw InputError(place, "has no shares of experts");
  const std::size_t experts = shares.of_layer.begin()->second.size();
  for (const auto& [layer, list] : shares.of_layer) {
    const auto missing = std::find(list.begin(), list.end(), -1);
    if (missing != list.end()) {
      throw InputError(
          place, fmt::format("layer {} has no share of expert {}", layer, missing - list.begin()));
    }
    if (list.size() != experts) {
      throw InputError(place,
                       fmt::format("layer {} has shares of {} experts, layer {} of {}", layer,
                                   list.size(), shares.of_layer.begin()->first, experts));
    }
    const double sum = std::accumulate(list.begin(), list.end(), 0.0);
    if (!(sum > 0)) throw InputError(place, fmt::format("layer {}: no expert gets rows", layer));
  }
}

double share_of(const JsonReader& json) {
  const double share = json.number();
  if (!(share >= 0)) json.fail("expected a share of at least 0");
  return share;
}

std::vector<std::string_view> cells_of_line(std::string_view line) {
  std::vector<std::string_view> cells;
  for (bool more = true; more;) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t' || cell.back() == '\r')) {
      cell.remove_suffix(1);
    }
    cells.push_back(cell);
    more = comma != std::string_view::npos;
    if (more) line.remove_prefix(comma + 1);
  }
  return cells;
}

template <class Number>
Number number_of(std::string_view cell, Number most, const Place& place) {
  Number number{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  const bool is_whole = error == std::errc() && end == cell.data() + cell.size();
  if (is_whole && number >= 0 && number <= most) return number;
  throw InputError(place, fmt::format("expected a number from 0 to {}, found \"{}\"", most, cell));
}

std::size_t column_of(const std::vector<std::string_view>& header,
                      const std::vector<std::string_view>& names, const Place& place) {
  for (const std::string_view name : names) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  }
  throw InputError(place, fmt::format("has no column \"{}\": the first line names layer, expert "
                                      "and share or rows",
                                      names.front()));
}

ExpertShares read_by_layer(const JsonReader& layers) {
  ExpertShares shares;
  for (const auto& [name, list] : layers.members()) {
    const auto layer = number_of<std::int64_t>(name, most_layers, list.place());
    for (const JsonReader& share : list.elements()) {
      shares.of_layer[static_cast<std::int32_t>(layer)].push_back(share_of(share));
    }
  }
  return shares;
}

ExpertShares read_json(const JsonReader& json) {
  if (json.is_object()) return read_by_layer(json);
  std::vector<Row> rows;
  for (const JsonReader& row : json.elements()) {
    row.only_keys({"layer", "expert", "share"});
    rows.push_back({row.at("layer").integer(0, most_layers),
                    row.at("expert").integer(0, most_experts), share_of(row.at("share")),
                    row.place()});
  }
  return collect(rows);
}

}  // namespace

ExpertShares read_expert_shares_csv(std::string_view text, const std::string& file) {
  std::vector<Row> rows;
  std::vector<std::string_view> header;
  std::size_t layer = 0, expert = 0, share = 0;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Place place{fmt::format("{}:{}", file, line), ""};
    const auto cells = cells_of_line(row);
    if (header.empty()) {
      header = cells;
      layer = column_of(header, {"layer"}, place);
      expert = column_of(header, {"expert"}, place);
      share = column_of(header, {"share", "rows"}, place);
      continue;
    }
    if (cells.size() != header.size()) {
      throw InputError(place,
                       fmt::format("has {} cells under {} names", cells.size(), header.size()));
    }
    rows.push_back({number_of<std::int64_t>(cells[layer], most_layers, place),
                    number_of<std::int64_t>(cells[expert], most_experts, place),
                    number_of<double>(cells[share], 1e18, place), place});
  }
  ExpertShares shares = collect(rows);
  check(shares, {file, ""});
  return shares;
}

ExpertShares read_expert_shares(const JsonReader& balance) {
  const auto written = balance.find("shares");
  const auto named = balance.find("file");
  if (written && named) named->fail("\"shares\" are written beside it: leave one out");
  if (written) {
    ExpertShares shares = read_by_layer(*written);
    check(shares, written->place());
    return shares;
  }
  const JsonReader name = balance.at("file");
  const std::filesystem::path file = name.string();
  const std::filesystem::path folder = std::filesystem::path(name.place().file).parent_path();
  const std::string path = file.is_absolute() ? file.string() : (folder / file).string();
  if (file.extension() != ".json") return read_expert_shares_csv(read_file(path), path);
  const Json document = load_json(path);
  ExpertShares shares = read_json(JsonReader(document, {path, ""}));
  check(shares, {path, ""});
  return shares;
}

Json to_json(const ExpertShares& shares) {
  Json json = Json::object();
  for (const auto& [layer, list] : shares.of_layer) json[std::to_string(layer)] = list;
  return json;
}

// Loads are 1 on average where nothing is dropped, and what others have less than the busiest is
// the time that they wait.
double LayerLoad::waiting() const {
  const double sum = std::accumulate(of_device.begin(), of_device.end(), 0.0);
  const auto others = static_cast<double>(of_device.size() - 1);
  return others == 0 ? 0 : 1 - (sum - most()) / (others * most());
}

std::vector<LayerLoad> loads_of(const ExpertShares& shares, std::int64_t devices,
                                std::optional<double> capacity) {
  std::vector<LayerLoad> loads;
  for (const auto& [number, list] : shares.of_layer) {
    LayerLoad& load = loads.emplace_back();
    load.layer = number;
    load.of_device.resize(static_cast<std::size_t>(devices));
    const std::size_t own = list.size() / load.of_device.size();
    const double sum = std::accumulate(list.begin(), list.end(), 0.0);
    for (std::size_t e = 0; e < list.size(); ++e) {
      const double rows = list[e] / sum * static_cast<double>(list.size());
      const double placed = std::min(rows, capacity.value_or(rows));
      load.of_device[e / own] += placed / static_cast<double>(own);
      load.dropped += (rows - placed) / static_cast<double>(list.size());
    }
    const auto most = std::max_element(load.of_device.begin(), load.of_device.end());
    load.busiest = static_cast<std::size_t>(most - load.of_device.begin());
  }
  return loads;
}

std::size_t heaviest_of(const std::vector<LayerLoad>& loads) {
  std::vector<double> rows(loads.front().of_device.size());
  for (const LayerLoad& load : loads) {
    for (std::size_t d = 0; d < rows.size(); ++d) rows[d] += load.of_device[d];
  }
  return static_cast<std::size_t>(std::max_element(rows.begin(), rows.end()) - rows.begin());
}

std::vector<std::string> words_of(const std::vector<LayerLoad>& loads) {
  constexpr std::size_t told = 3;
  const std::size_t heaviest = heaviest_of(loads);
  const auto layers = static_cast<double>(loads.size());
  std::vector<const LayerLoad*> worst;
  double mean = 0, held = 0;
  for (const LayerLoad& load : loads) {
    worst.push_back(&load);
    mean += load.most() / layers;
    held += load.of_device[heaviest] / layers;
  }
  std::stable_sort(worst.begin(), worst.end(),
                   [](const LayerLoad* a, const LayerLoad* b) { return a->most() > b->most(); });
  std::vector<std::string> words = {fmt::format(
      "each layer's experts take as long as on the device that gets most rows of it, on average of "
      "{} layers {:.2f} times an even share: the others wait for it. Memory is that of device {}, "
      "which gets {:.2f} times an even share of all layers together, the most",
      loads.size(), mean, heaviest, held)};
  for (std::size_t i = 0; i < std::min(told, worst.size()); ++i) {
    const LayerLoad& load = *worst[i];
    words.push_back(fmt::format(
        "layer {}: device {} of the {} that experts are dealt out over gets {:.2f} times an even "
        "share of rows; the others wait for {:.0f} % of its time with them, on average",
        load.layer, load.busiest, load.of_device.size(), load.most(), 100 * load.waiting()));
  }
  return words;
}

double mean_dropped(const std::vector<LayerLoad>& loads) {
  double dropped = 0;
  for (const LayerLoad& load : loads) dropped += load.dropped / static_cast<double>(loads.size());
  return dropped;
}

}  // namespace shardsim
