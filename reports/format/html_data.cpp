#include "reports/format/html_data.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "reports/format/figures.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace shardsim {
namespace {

constexpr std::int64_t picoseconds_per_nanosecond = 1000;

std::int64_t nanoseconds(SimTime time) { return time.count() / picoseconds_per_nanosecond; }

Json category_bytes(const CategoryBytes& sizes) {
  Json list = Json::array();
  for (BufferCategory category : categories_in_reports) {
    list.push_back(sizes[static_cast<std::size_t>(category)].count());
  }
  return list;
}

// Only the names that segments use, numbered in order of first use.
class NameIndex {
 public:
  explicit NameIndex(const Timeline& timeline) : timeline_(&timeline) {}

  std::int64_t operator()(std::int32_t name) {
    if (name < 0) return -1;
    const auto [place, added] = places_.emplace(name, static_cast<std::int64_t>(used_.size()));
    if (added) used_.push_back(timeline_->names[static_cast<std::size_t>(name)]);
    return place->second;
  }
  [[nodiscard]] const Json& used() const { return used_; }

 private:
  const Timeline* timeline_;
  std::map<std::int32_t, std::int64_t> places_;
  Json used_ = Json::array();
};

Json link_data(const std::vector<LinkUsage>& links) {
  constexpr double permille = 1000;
  Json list = Json::array();
  for (const LinkUsage& usage : links) {
    Json bins = Json::array();
    for (const double taken : usage.taken) bins.push_back(std::lround(taken * permille));
    list.push_back({{"name", label_of(usage)}, {"permille", std::move(bins)}});
  }
  return list;
}

Json class_data(const TimelineClass& one, NameIndex& index) {
  Json segments = Json::array();
  for (const Segment& segment : one.segments) {
    segments.push_back({nanoseconds(segment.start), nanoseconds(segment.end - segment.start),
                        segment.stream, static_cast<int>(segment.kind), segment.layer,
                        index(segment.name), segment.tasks, nanoseconds(segment.busy)});
  }
  Json memory = Json::array();
  for (const MemorySample& sample : one.memory) {
    Json row = category_bytes(sample.by_category);
    row.insert(row.begin(), nanoseconds(sample.time));
    memory.push_back(std::move(row));
  }
  Json passes = Json::array();
  for (const MicrobatchPass& pass : one.passes) {
    passes.push_back({nanoseconds(pass.start), nanoseconds(pass.end - pass.start), pass.microbatch,
                      name_of(pass.phase), pass.first_layer, pass.last_layer});
  }
  return {{"name", one.name},
          {"streams", one.streams},
          {"passes", std::move(passes)},
          {"peak_ns", nanoseconds(one.peak_time)},
          {"peak_bytes", one.peak.count()},
          {"segments", std::move(segments)},
          {"memory", std::move(memory)},
          {"links", link_data(one.links)}};
}

Json timeline_data(const Timeline& timeline) {
  if (timeline.empty()) return nullptr;
  NameIndex index(timeline);
  Json classes = Json::array();
  for (const TimelineClass& one : timeline.classes) classes.push_back(class_data(one, index));
  return {{"names", index.used()}, {"merged", timeline.merged}, {"classes", std::move(classes)}};
}

Json communication_data(const Figures& figures) {
  Json list = Json::array();
  for (const CommunicationRow& row : figures.communication_rows) {
    const std::string axes = row.axes.empty() ? "" : fmt::format(" {}", fmt::join(row.axes, ","));
    list.push_back({{"label", row.kind + axes},
                    {"time_s", seconds(row.time)},
                    {"exposed_s", seconds(row.exposed)},
                    {"wire_bytes", row.wire_bytes_per_device.count()}});
  }
  return list;
}

// By cause, in the order of their rows.
Json parts_data(const TimeByPart& parts) {
  Json list = Json::array();
  for (const TimePartRow& row : time_part_rows()) {
    list.push_back(seconds(parts.at(static_cast<std::size_t>(row.part))));
  }
  return list;
}

Json class_data(const Figures& figures) {
  Json list = Json::array();
  for (const ClassFigures& one : figures.classes) {
    list.push_back({{"name", one.name}, {"parts_s", parts_data(one.parts)}});
  }
  return list;
}

Json configuration_data(const Figures& figures, const Timeline& timeline) {
  return {{"name", figures.name},
          {"fits", figures.fits},
          {"capacity_bytes", figures.capacity.count()},
          {"peak_bytes", figures.peak.count()},
          {"category_bytes", category_bytes(figures.by_category)},
          {"step_s", seconds(figures.step)},
          {"parts_s", parts_data(figures.parts)},
          {"classes", class_data(figures)},
          {"communication", communication_data(figures)},
          {"timeline", timeline_data(timeline)}};
}

}  // namespace

Json page_data(const std::vector<Figures>& all, const std::vector<Timeline>& timelines) {
  Json categories = Json::array();
  for (BufferCategory category : categories_in_reports) {
    categories.push_back({{"key", category_key(category)}, {"label", category_label(category)}});
  }
  Json kinds = Json::array();
  for (int kind = 0; kind < segment_kinds; ++kind) {
    kinds.push_back(name_of(static_cast<SegmentKind>(kind)));
  }
  Json configurations = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    configurations.push_back(configuration_data(all[i], timelines[i]));
  }
  Json parts = Json::array();
  for (const TimePartRow& row : time_part_rows()) {
    parts.push_back({{"key", key_of(row)}, {"label", label_of(row)}});
  }
  return {{"categories", std::move(categories)},
          {"parts", std::move(parts)},
          {"kinds", std::move(kinds)},
          {"configurations", std::move(configurations)}};
}

}  // namespace shardsim
