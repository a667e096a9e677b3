#include "reports/step/sharding_picture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "reports/format/html.hpp"
#include "sharding/partition_spec.hpp"
#include "strategies/specs/spec_summary.hpp"

namespace shardsim {
namespace {

constexpr int colours = 12;  // classes part-0 to part-11 of the style sheet

// A dimension that is split: the device number at which each of its parts begins.
struct SplitDimension {
  std::size_t dimension = 0;
  std::vector<std::int64_t> offsets;
  std::vector<std::string> ranges;
};

// Device numbers from one position along an axis to the next.
std::int64_t stride_of(const Mesh& mesh, const AxisRef& part) {
  std::int64_t stride =
      mesh.axes()[static_cast<std::size_t>(part.axis)].size / (part.pre_size * part.size);
  for (std::size_t i = static_cast<std::size_t>(part.axis) + 1; i < mesh.axes().size(); ++i) {
    stride *= mesh.axes()[i].size;
  }
  return stride;
}

// The group of device 0 over some axes, the first of them most major; of a large one the beginning.
struct Group {
  std::vector<std::int64_t> first;
  std::int64_t size = 1;
  std::int64_t last = 0;

  // Are its devices numbered 0, 1, 2, ...?
  [[nodiscard]] bool is_consecutive() const { return last == size - 1; }
};

Group group_of(const Mesh& mesh, const AxisList& axes, std::int64_t limit) {
  Group group{{0}, Mesh::size_of(axes), 0};
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const std::int64_t stride = stride_of(mesh, *axis);
    group.last += (axis->size - 1) * stride;
    const std::vector<std::int64_t> minor = group.first;
    for (std::int64_t i = 1; i < axis->size; ++i) {
      if (static_cast<std::int64_t>(group.first.size()) >= limit) break;
      for (const std::int64_t device : minor) group.first.push_back(i * stride + device);
    }
  }
  if (static_cast<std::int64_t>(group.first.size()) > limit)
    group.first.resize(static_cast<std::size_t>(limit));
  return group;
}

std::string range_text(std::int64_t size, const DimSharding& dim, std::int64_t part) {
  const std::int64_t block = size / dim.blocks;
  const std::int64_t chunk = shard_size(size, dim) / dim.blocks;
  const std::int64_t begin = std::min(part * chunk, block);
  const std::int64_t end = std::min(begin + chunk, block);
  if (begin == end) return "padding";
  const std::string text = fmt::format("{}:{}", begin, end);
  return dim.blocks > 1 ? fmt::format("{} of each {}", text, block) : text;
}

SplitDimension split_dimension(std::size_t d, std::int64_t size, const DimSharding& dim,
                               const Mesh& mesh, std::int64_t limit) {
  SplitDimension split{d, group_of(mesh, dim.axes, limit).first, {}};
  for (std::size_t part = 0; part < split.offsets.size(); ++part) {
    split.ranges.push_back(range_text(size, dim, static_cast<std::int64_t>(part)));
  }
  return split;
}

// "0", "0 to 3", "0, 8, 16, 24", "0, 8, 16, ... (32)".
std::string devices_text(std::int64_t base, const Group& copies, std::int64_t limit) {
  if (copies.size > 2 && copies.is_consecutive())
    return fmt::format("{} to {}", base, base + copies.last);
  std::vector<std::int64_t> shown = copies.first;
  for (std::int64_t& device : shown) device += base;
  if (copies.size <= limit) return fmt::format("{}", fmt::join(shown, ", "));
  shown.resize(std::min<std::size_t>(shown.size(), 3));
  return fmt::format("{}, ... ({})", fmt::join(shown, ", "), copies.size);
}

class Painter {
 public:
  Painter(const std::vector<std::int64_t>& shape, const Sharding& sharding, const Mesh& mesh,
          const PictureLimits& limits)
      : sharding_(without_unit_axes(sharding)), limits_(limits) {
    copies_ = group_of(mesh, axes_without(split_axes(sharding_), mesh), limits.devices);
    std::vector<std::size_t> split;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!sharding_.dims[d].axes.empty()) split.push_back(d);
    }
    const auto take = [&](std::int64_t limit) {
      const std::size_t d = split.back();
      split.pop_back();
      note_left_out(d, limit);
      return split_dimension(d, shape[d], sharding_.dims[d], mesh, limit);
    };
    const bool across = !split.empty() && (split.size() > 1 || split.back() + 1 == shape.size());
    if (across) column_ = take(limits.columns);
    if (!split.empty()) row_ = take(limits.rows);
    std::reverse(split.begin(), split.end());
    std::int64_t left = limits.panels;
    while (!split.empty()) {
      outer_.push_back(take(left));
      left =
          std::max<std::int64_t>(1, left / static_cast<std::int64_t>(outer_.back().offsets.size()));
    }
  }

  Picture paint() {
    Picture picture;
    picture.left_out = fmt::format("{}", fmt::join(left_out_, ", "));
    picture.row_ranges = row_ ? row_->ranges : std::vector<std::string>{""};
    picture.column_ranges = column_ ? column_->ranges : std::vector<std::string>{""};
    if (row_) picture.row_dimension = row_->dimension;
    if (column_) picture.column_dimension = column_->dimension;
    add_panels(picture, 0, 0, {});
    return picture;
  }

 private:
  void note_left_out(std::size_t d, std::int64_t limit) {
    const std::int64_t parts = Mesh::size_of(sharding_.dims[d].axes);
    if (parts > limit) {
      left_out_.push_back(fmt::format("{} of the {} parts of dimension {}", limit, parts, d));
    }
  }

  void add_panels(Picture& picture, std::size_t level, std::int64_t offset,
                  const std::vector<std::string>& titles) {
    if (level < outer_.size()) {
      const SplitDimension& split = outer_[level];
      for (std::size_t i = 0; i < split.offsets.size(); ++i) {
        std::vector<std::string> inner = titles;
        inner.push_back(fmt::format("dimension {} in {}", split.dimension, split.ranges[i]));
        add_panels(picture, level + 1, offset + split.offsets[i], inner);
      }
      return;
    }
    const std::vector<std::int64_t> whole = {0};
    const std::vector<std::int64_t>& rows = row_ ? row_->offsets : whole;
    const std::vector<std::int64_t>& columns = column_ ? column_->offsets : whole;
    Picture::Panel panel;
    panel.title = fmt::format("{}", fmt::join(titles, ", "));
    for (const std::int64_t row : rows) {
      panel.cells.emplace_back();
      panel.parts.emplace_back();
      for (const std::int64_t column : columns) {
        panel.cells.back().push_back(devices_text(offset + row + column, copies_, limits_.devices));
        panel.parts.back().push_back(next_part_++);
      }
    }
    picture.panels.push_back(std::move(panel));
  }

  Sharding sharding_;
  PictureLimits limits_;
  Group copies_;  // devices that hold what device 0 holds
  std::optional<SplitDimension> row_, column_;
  std::vector<SplitDimension> outer_;
  std::vector<std::string> left_out_;
  std::int64_t next_part_ = 0;
};

}  // namespace

Picture picture_of(const std::string& name, const std::vector<std::int64_t>& shape,
                   const Sharding& sharding, const Mesh& mesh, const PictureLimits& limits,
                   const std::string& spec) {
  Picture picture = Painter(shape, sharding, mesh, limits).paint();
  std::vector<std::int64_t> shard;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    shard.push_back(shard_size(shape[d], sharding.dims[d]));
  }
  const std::int64_t shards = Mesh::size_of(split_axes(sharding));
  const std::int64_t copies = mesh.devices() / shards;
  picture.title =
      fmt::format("{} [{}] {}: {}", name, fmt::join(shape, ", "),
                  spec.empty() ? to_string(spec_of(sharding, mesh)) : spec,
                  shards == 1 ? fmt::format("whole on each of {} devices", mesh.devices())
                              : fmt::format("{} shards of [{}], {} of each", format_count(shards),
                                            fmt::join(shard, ", "),
                                            copies == 1 ? "one" : format_count(copies)));
  return picture;
}

std::string to_text(const Picture& picture) {
  std::string out = picture.title + "\n";
  for (const Picture::Panel& panel : picture.panels) {
    if (!panel.title.empty()) out += fmt::format("  {}\n", panel.title);
    std::vector<TextTable::Column> columns = {{""}};
    for (const std::string& range : picture.column_ranges) columns.push_back({range});
    TextTable table(columns);
    for (std::size_t r = 0; r < panel.cells.size(); ++r) {
      std::vector<std::string> row = {picture.row_ranges[r]};
      row.insert(row.end(), panel.cells[r].begin(), panel.cells[r].end());
      table.add_row(std::move(row));
    }
    out += table.text("  ", unlimited_text_width);
  }
  if (!picture.left_out.empty()) out += fmt::format("  drawn: {}\n", picture.left_out);
  return out;
}

std::string to_html(const Picture& picture) {
  std::string out = fmt::format("<figure class=\"picture\">\n<figcaption>{}</figcaption>\n",
                                html_escape(picture.title));
  for (const Picture::Panel& panel : picture.panels) {
    out += "<div class=\"scroll\"><table>\n";
    if (!panel.title.empty())
      out += fmt::format("<caption>{}</caption>\n", html_escape(panel.title));
    if (picture.column_dimension) {
      out += "<thead><tr><td></td>";
      for (const std::string& range : picture.column_ranges)
        out += fmt::format("<th scope=\"col\">{}</th>", html_escape(range));
      out += "</tr></thead>\n";
    }
    out += "<tbody>\n";
    for (std::size_t r = 0; r < panel.cells.size(); ++r) {
      out += fmt::format("<tr><th scope=\"row\">{}</th>", html_escape(picture.row_ranges[r]));
      for (std::size_t c = 0; c < panel.cells[r].size(); ++c) {
        out += fmt::format("<td class=\"part-{}\">{}</td>", panel.parts[r][c] % colours,
                           html_escape(panel.cells[r][c]));
      }
      out += "</tr>\n";
    }
    out += "</tbody>\n</table></div>\n";
  }
  if (!picture.left_out.empty())
    out += fmt::format("<p class=\"quiet\">Drawn: {}.</p>\n", html_escape(picture.left_out));
  return out + "</figure>\n";
}

}  // namespace shardsim
