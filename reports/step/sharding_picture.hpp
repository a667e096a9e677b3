// A picture of how a tensor lies on the mesh: which devices hold which part, for any rank.
//
//   params/head/kernel [768, 1000] P(data, model) on data=2, model=2: 4 shards of [384, 500]
//
//              0:500  500:1000
//     0:384    0      1
//     384:768  2      3
//
// Two of the dimensions that are split span the grid: the last two; one alone runs down, or across
// when it is the tensor's last. Every other split dimension makes panels, one for each combination
// of its parts. Whole dimensions are not drawn. Devices that hold the same part stand together in
// its cell; what does not fit is left out and counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sharding/sharding.hpp"

namespace shardsim {

struct PictureLimits {
  std::int64_t rows = 16;
  std::int64_t columns = 8;
  std::int64_t panels = 4;
  std::int64_t devices = 8;  // named in a cell
};

struct Picture {
  struct Panel {
    std::string title;  // "dimension 0 in 0:2"; empty when there is one panel only
    // By row and column as shown; a cell lists its devices: "0", "0 to 3", "0, 8, 16, ... (32)".
    std::vector<std::vector<std::string>> cells;
    std::vector<std::vector<std::int64_t>> parts;  // of each cell its number, for colours
  };
  std::string title;
  std::vector<std::string> row_ranges;  // of the dimension that runs down; {""} when none does
  std::vector<std::string> column_ranges;
  std::optional<std::size_t> row_dimension, column_dimension;
  std::vector<Panel> panels;
  std::string left_out;  // "rows 16 of 64"; empty when all is drawn
};

// `sharding` has no partial sums. `spec` is what the title says of it; empty: one entry for each
// dimension.
[[nodiscard]] Picture picture_of(const std::string& name, const std::vector<std::int64_t>& shape,
                                 const Sharding& sharding, const Mesh& mesh,
                                 const PictureLimits& limits = {}, const std::string& spec = "");
[[nodiscard]] std::string to_text(const Picture& picture);
// A <figure> with one table per panel; a cell's colour is that of its part.
[[nodiscard]] std::string to_html(const Picture& picture);

}  // namespace shardsim
