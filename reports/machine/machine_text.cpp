#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/index.hpp"
#include "base/text.hpp"
#include "reports/machine/machine_picture.hpp"

namespace shardsim {
namespace {

// Characters in rows, as long as what is put on them.
class TextCanvas {
 public:
  void put(std::size_t row, std::size_t column, std::string_view text) {
    if (rows_.size() <= row) rows_.resize(row + 1);
    std::string& line = rows_[row];
    if (line.size() < column + text.size()) line.resize(column + text.size(), ' ');
    line.replace(column, text.size(), text);
  }
  void put_around(std::size_t row, std::size_t middle, std::string_view text) {
    put(row, middle - std::min(middle, text.size() / 2), text);
  }
  [[nodiscard]] std::string text(std::string_view indent) const {
    std::string text;
    for (const std::string& line : rows_) {
      const std::size_t end = line.find_last_not_of(' ') + 1;
      text += end == 0 ? "\n" : fmt::format("{}{}\n", indent, line.substr(0, end));
    }
    return text;
  }

 private:
  std::vector<std::string> rows_;
};

// A row of `count` things of which at most `most_columns` are drawn: the first ones, dots, the
// last.
constexpr std::int64_t most_columns = 16;
constexpr std::int64_t before_dots = 6;

struct Column {
  std::int64_t first = 0;  // device, -1 for the dots
  std::int64_t last = 0;
  std::size_t middle = 0;
};

std::vector<Column> columns_of(std::int64_t devices, std::int64_t devices_each) {
  const std::int64_t count = devices / devices_each;
  std::vector<Column> columns;
  constexpr std::size_t pitch = 7;
  for (std::int64_t i = 0; i < count; ++i) {
    if (count > most_columns && i == before_dots) {
      columns.push_back({-1, -1, 0});
      i = count - 1;
    }
    columns.push_back({i * devices_each, (i + 1) * devices_each - 1, 0});
  }
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].middle = 4 + i * pitch;
  return columns;
}

std::string column_text(const Column& column) {
  if (column.first < 0) return "...";
  if (column.first == column.last) return fmt::format("[{}]", column.first);
  return fmt::format("[{}-{}]", column.first, column.last);
}

void put_bar(TextCanvas& canvas, std::size_t row, const std::vector<Column>& columns,
             const std::string& text) {
  const std::size_t end = columns.back().middle + 4;
  canvas.put(row, 0, "[" + std::string(end - 1, ' ') + "]");
  canvas.put_around(row, end / 2, text);
}

void put_strokes(TextCanvas& canvas, std::size_t row, const std::vector<Column>& columns) {
  for (const Column& column : columns) {
    if (column.first >= 0) canvas.put(row, column.middle, "|");
  }
}

// A bracket from the first column to the last under which a NIC hangs.
void put_shared(TextCanvas& canvas, std::size_t row, const Column& first, const Column& last) {
  canvas.put(row, first.middle, "+" + std::string(last.middle - first.middle - 1, '-') + "+");
  canvas.put_around(row, (first.middle + last.middle) / 2, "NIC");
}

void put_nics(TextCanvas& canvas, std::size_t row, const ClusterProfile& cluster,
              const std::vector<Column>& columns) {
  const std::int64_t devices = cluster.devices_per_node.value;
  const std::int64_t nics = cluster.scale_out->nics_per_node.value;
  const std::int64_t shared_by = devices / ways_out(cluster).per_node;
  std::vector<Column> ends;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.first < 0) continue;
    const std::int64_t width = column.last - column.first + 1;
    if (shared_by <= width) {
      const std::int64_t hang = width * nics / devices;
      canvas.put_around(row, column.middle, hang == 1 ? "NIC" : fmt::format("{} NICs", hang));
      ends.push_back(column);
    } else if (column.first % shared_by == 0) {
      const std::size_t last = std::min(columns.size() - 1, i + at(shared_by) - 1);
      put_shared(canvas, row, column, columns[last]);
      ends.push_back({column.first, column.last, (column.middle + columns[last].middle) / 2});
    }
  }
  put_strokes(canvas, row + 1, ends);
  put_bar(canvas, row + 2, columns, "network between nodes");
}

std::string cluster_text(const ClusterProfile& cluster) {
  const std::int64_t devices = cluster.devices_per_node.value;
  const std::int64_t each = devices <= most_columns ? 1 : devices_per_host(cluster);
  const std::vector<Column> columns = columns_of(devices, each);
  TextCanvas canvas;
  const Fabric fabric = cluster.scale_up.fabric.value;
  if (is_direct(fabric)) {
    canvas.put(0, columns.front().middle,
               std::string(columns.back().middle - columns.front().middle + 1, '-'));
    for (const Column& column : columns) canvas.put(0, column.middle, "+");
    canvas.put(0, columns.back().middle + 3,
               fabric == Fabric::cube_mesh ? "hybrid cube mesh" : "every two joined");
  } else {
    put_bar(canvas, 0, columns, fabric == Fabric::pcie ? "PCIe" : "NVSwitch");
  }
  put_strokes(canvas, 1, columns);
  for (const Column& column : columns) canvas.put_around(2, column.middle, column_text(column));
  if (cluster.scale_out) {
    put_strokes(canvas, 3, columns);
    put_nics(canvas, 4, cluster, columns);
  }
  return canvas.text("  ");
}

// One plane of a torus: x to the right, y down.
std::string grid_text(const std::vector<std::int64_t>& sizes, const std::vector<bool>& wraps) {
  const std::size_t width = at(sizes[0]);
  const std::size_t height = sizes.size() > 1 ? at(sizes[1]) : 1;
  // Two devices have one wire, whether they wrap or not.
  const bool wraps_down = height > 2 && wraps[1];
  const bool wraps_across = width > 2 && wraps[0];
  constexpr std::size_t pitch = 3;
  TextCanvas canvas;
  const std::size_t top = wraps_down ? 1 : 0;
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t row = top + 2 * y;
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t column = 2 + x * pitch;
      canvas.put(row, column, x + 1 < width ? "o--" : "o");
      if (y + 1 < height || wraps_down) canvas.put(row + 1, column, "|");
      if (y == 0 && wraps_down) canvas.put(0, column, "|");
    }
    if (!wraps_across) continue;
    canvas.put(row, 0, "--");
    canvas.put(row, 2 + width * pitch - 2, "--");
  }
  return canvas.text("  ");
}

// Beyond it a plane is described only.
constexpr std::int64_t longest_side = 32;

std::string torus_text(const TorusShape& torus) {
  const bool fits = torus.sizes.size() <= 3 && torus.sizes[0] <= longest_side &&
                    (torus.sizes.size() < 2 || torus.sizes[1] <= longest_side);
  if (!fits) return {};
  std::string text = grid_text(torus.sizes, torus.wraps);
  if (torus.sizes.size() > 2 && torus.sizes[2] > 1) {
    text += fmt::format("  {} such planes along z, neighbours joined{}\n", torus.sizes[2],
                        torus.sizes[2] > 2 && torus.wraps[2] ? ", the last to the first" : "");
  }
  return text;
}

// Devices of a network in a line with what joins them.
std::string row_text(const NetworkDescription& network, std::int64_t devices) {
  const std::vector<Column> columns = columns_of(devices, 1);
  TextCanvas canvas;
  for (const Column& column : columns) canvas.put_around(2, column.middle, column_text(column));
  if (network.kind == NetworkKind::switched) {
    put_bar(canvas, 0, columns, "switch");
    put_strokes(canvas, 1, columns);
    return canvas.text("  ");
  }
  const std::size_t first = columns.front().middle;
  const std::size_t last = columns.back().middle;
  canvas.put(0, first, "+" + std::string(last - first - 1, '-') + "+");
  if (network.kind == NetworkKind::full) {
    for (const Column& column : columns) canvas.put(0, column.middle, "+");
    put_strokes(canvas, 1, columns);
    canvas.put(0, last + 3, "every two joined");
    return canvas.text("  ");
  }
  put_strokes(canvas, 1, {columns.front(), columns.back()});
  for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
    const std::size_t from = columns[i].middle + column_text(columns[i]).size() / 2 + 1;
    const std::size_t to = columns[i + 1].middle - column_text(columns[i + 1]).size() / 2;
    canvas.put(2, from, std::string(to - from, '-'));
  }
  return canvas.text("  ");
}

std::string fat_tree_text(const NetworkDescription& network, std::int64_t devices) {
  const std::vector<std::int64_t>& sizes = network.shape;
  std::vector<std::string> tiers;  // from below
  std::int64_t copies = 1;
  std::int64_t above = devices;
  for (std::size_t tier = 0; tier < sizes.size(); ++tier) {
    const std::int64_t ratio = tier == 0 ? 1 : network.oversubscription[tier - 1];
    const std::int64_t up = tier == 0 ? 1 : sizes[tier - 1] / ratio;
    copies *= up;
    above /= sizes[tier];
    tiers.push_back(fmt::format("  {:>8} switch{}   {} wire{} up from each below\n", above * copies,
                                above * copies == 1 ? "  " : "es", up, up == 1 ? "" : "s"));
  }
  std::reverse(tiers.begin(), tiers.end());
  return fmt::format("{}  {:>8} devices\n", fmt::join(tiers, ""), devices);
}

std::string network_text(const NetworkDescription& network, std::int64_t devices) {
  switch (network.kind) {
    case NetworkKind::torus:
      return torus_text({network.shape, std::vector<bool>(network.shape.size(), network.wraps)});
    case NetworkKind::fat_tree:
      return fat_tree_text(network, devices);
    case NetworkKind::graph:
      return {};  // its legend says what is joined
    case NetworkKind::dragonfly:
      return fmt::format("  {} groups, every two joined; in each {}{}, with {} each\n",
                         network.shape[0] * network.shape[2] + 1,
                         network.shape[0] == 1 ? std::string("one switch")
                                               : fmt::format("{} switches", network.shape[0]),
                         network.shape[0] == 1 ? "" : ", every two joined",
                         counted(network.shape[1], "device"));
    default:
      return devices > 1 ? row_text(network, devices) : std::string();
  }
}

}  // namespace

std::string machine_text(const Machine& machine, const Place& place) {
  std::string text;
  if (const auto* cluster = std::get_if<ClusterProfile>(&machine.profile.network)) {
    text = cluster_text(*cluster);
  } else if (machine.torus) {
    text = torus_text(*machine.torus);
  } else {
    text = network_text(std::get<NetworkDescription>(machine.profile.network), machine.devices);
  }
  if (!text.empty()) text += "\n";
  for (const std::string& line : machine_legend(machine, place)) {
    text += fmt::format("  {}\n", line);
  }
  return text;
}

}  // namespace shardsim
