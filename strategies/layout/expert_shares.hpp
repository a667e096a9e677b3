// How the routing of a mixture deals rows out among its experts, layer by layer, as it was measured
// or is expected, and what devices that hold these experts get of it.
//
//   load of device d = devices x the sum of the shares of its experts
//
// Experts lie on devices in their order, as many on each. A step exchanges rows before and after
// the experts of every layer, where all devices wait for the one that has most: each layer takes as
// long as on its busiest device. Memory is that of the device that gets most of all layers.
//
// Example, 4 experts on 2 devices: shares 0.4, 0.3, 0.2, 0.1 make loads of 1.4 and 0.6; device 0 is
// the busiest, the other waits for 0.8 of 1.4. With places for 1.2 times an even share, and what
// does not get one dropped, experts have 1.2, 1.2, 0.8, 0.4 of an even share: loads 1.2 and 0.6.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"

namespace shardsim {

// Of every layer, by its number in the model, what each expert gets: shares or numbers of rows.
struct ExpertShares {
  std::map<std::int32_t, std::vector<double>> of_layer;
  friend bool operator==(const ExpertShares&, const ExpertShares&) = default;
};

// {"file": "shares.csv"}, beside the file that names it, or {"shares": {"3": [0.4, 0.3, 0.2, 0.1]}}
// in place. A file is CSV with the columns layer, expert, and share or rows, or JSON, an object as
// in place or a list of {"layer": 3, "expert": 0, "share": 0.4}. Throws InputError: a column that
// is missing, an expert that comes twice or not at all, a share below 0, layers that have not as
// many experts, nothing at all.
[[nodiscard]] ExpertShares read_expert_shares(const JsonReader& balance);
[[nodiscard]] ExpertShares read_expert_shares_csv(std::string_view text, const std::string& file);
[[nodiscard]] Json to_json(const ExpertShares& shares);  // {"3": [...]}

// Of one layer.
struct LayerLoad {
  std::int32_t layer = 0;
  std::vector<double> of_device;  // over an even share
  std::size_t busiest = 0;        // the first of these
  double dropped = 0;             // share of the rows for which an expert has no place

  [[nodiscard]] double most() const { return of_device[busiest]; }
  // Share of the busiest device's time with its experts that the others wait, on average.
  [[nodiscard]] double waiting() const;
};

// `capacity`: places of an expert over an even share; nothing: for all that come. Devices divide
// experts.
[[nodiscard]] std::vector<LayerLoad> loads_of(const ExpertShares& shares, std::int64_t devices,
                                              std::optional<double> capacity);

// The device that gets most rows of all layers together; the first of these.
[[nodiscard]] std::size_t heaviest_of(const std::vector<LayerLoad>& loads);

// For the reader: the busiest device of the worst layers, and who waits how long.
[[nodiscard]] std::vector<std::string> words_of(const std::vector<LayerLoad>& loads);
[[nodiscard]] double mean_dropped(const std::vector<LayerLoad>& loads);

}  // namespace shardsim
