#include "reports/traces/perfetto.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <protozero/pbf_builder.hpp>

#include "base/index.hpp"
#include "reports/traces/perfetto_fields.hpp"

namespace shardsim {
namespace {

namespace pf = perfetto;

template <class Fields>
using Message = protozero::pbf_builder<Fields>;

constexpr std::uint32_t the_sequence = 1;  // one writer wrote it all
constexpr std::int64_t picoseconds_in_nanosecond = 1000;

std::uint64_t whole_nanoseconds(SimTime time) {
  return static_cast<std::uint64_t>(time.count() / picoseconds_in_nanosecond);
}

// Texts that a trace stores once; numbers begin at 1.
class Texts {
 public:
  std::uint64_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, numbers_.size() + 1);
    if (is_new) texts_.push_back(&found->first);
    return found->second;
  }
  void write(Message<pf::Interned>& data, pf::Interned field) const {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      Message<pf::InternedText> entry(data, field);
      entry.add_uint64(pf::InternedText::iid, i + 1);
      entry.add_string(pf::InternedText::text, *texts_[i]);
    }
  }

 private:
  std::map<std::string, std::uint64_t> numbers_;
  std::vector<const std::string*> texts_;  // in order of their numbers
};

// The arrows from a slice and to it.
struct SliceFlows {
  std::vector<std::uint64_t> begins;
  std::vector<std::uint64_t> ends;
  bool meets_its_source = false;  // both ends of a message start together
};

class PerfettoWriter {
 public:
  explicit PerfettoWriter(const StepTrace& trace) : trace_(trace), file_(bytes_) {}

  std::string write() {
    number_flows();
    for (std::size_t i = 0; i < trace_.classes.size(); ++i) add_tracks(i);
    add_texts();
    add_slices();
    for (std::size_t i = 0; i < trace_.classes.size(); ++i) add_counters(i);
    return std::move(bytes_);
  }

 private:
  using Uuid = std::uint64_t;
  static constexpr Uuid no_parent = 0;

  struct Tracks {
    std::vector<Uuid> streams;
    std::vector<std::vector<Uuid>> counters;  // by group, then series
    std::vector<Uuid> totals;                 // by group; of those that stack
  };

  void number_flows() {
    for (const TraceClass& one : trace_.classes) flows_.emplace_back(one.slices.size());
    std::uint64_t next = 1;
    for (const TraceFlow& flow : trace_.flows) {
      flows_[at(flow.from_class)][at(flow.from_slice)].begins.push_back(next);
      SliceFlows& target = flows_[at(flow.to_class)][at(flow.to_slice)];
      target.ends.push_back(next++);
      target.meets_its_source |=
          trace_.classes[at(flow.from_class)].slices[at(flow.from_slice)].start ==
          trace_.classes[at(flow.to_class)].slices[at(flow.to_slice)].start;
    }
  }

  // `fill` adds to the description of a track that has a number, a name and a parent.
  template <class Fill>
  Uuid add_track(const std::string& name, Uuid parent, std::int32_t rank, const Fill& fill) {
    const Uuid uuid = ++last_uuid_;
    Message<pf::Packet> packet(file_, pf::Trace::packet);
    packet.add_uint32(pf::Packet::sequence_id, the_sequence);
    Message<pf::Track> track(packet, pf::Packet::track_descriptor);
    track.add_uint64(pf::Track::uuid, uuid);
    track.add_string(pf::Track::name, name);
    if (parent != no_parent) track.add_uint64(pf::Track::parent_uuid, parent);
    track.add_int32(pf::Track::sibling_order_rank, rank);
    fill(track);
    return uuid;
  }

  static void order_children(Message<pf::Track>& track) {
    track.add_enum(pf::Track::child_ordering, pf::ordered_explicitly);
  }

  Uuid add_counter(const TraceCounters& group, const std::string& name, Uuid parent,
                   std::int32_t rank) {
    return add_track(name, parent, rank, [&](Message<pf::Track>& track) {
      Message<pf::Counter> counter(track, pf::Track::counter);
      if (group.bytes) counter.add_enum(pf::Counter::unit, pf::unit_of_bytes);
      if (!group.bytes) counter.add_string(pf::Counter::unit_name, "%");
      counter.add_string(pf::Counter::y_axis_share_key, group.name);
    });
  }

  void add_tracks(std::size_t i) {
    const TraceClass& one = trace_.classes[i];
    const auto pid = static_cast<std::int32_t>(i) + 1;
    const Uuid top = add_track(one.name, no_parent, pid, [&](Message<pf::Track>& track) {
      track.add_string(pf::Track::description, trace_.title);
      order_children(track);
      Message<pf::Process> process(track, pf::Track::process);
      process.add_int32(pf::Process::pid, pid);
      process.add_string(pf::Process::name, one.name);
    });
    Tracks& tracks = tracks_.emplace_back();
    std::int32_t rank = 0;
    for (const std::string& stream : one.streams) {
      tracks.streams.push_back(add_track(stream, top, rank++, [](Message<pf::Track>&) {}));
    }
    for (const TraceCounters& group : one.counters) {
      const Uuid parent = add_track(group.name, top, rank++, order_children);
      std::int32_t place = 0;
      Uuid total = no_parent;
      if (group.stacks) total = add_counter(group, "total", parent, place++);
      tracks.totals.push_back(total);
      std::vector<Uuid>& series = tracks.counters.emplace_back();
      for (const std::string& name : group.series) {
        series.push_back(add_counter(group, name, parent, place++));
      }
    }
  }

  // One packet with every text; those after it refer to its numbers.
  void add_texts() {
    for (const std::string& name : trace_.names) (void)names_.number(name);
    for (int kind = 0; kind < segment_kinds; ++kind) {
      (void)categories_.number(std::string(name_of(static_cast<SegmentKind>(kind))));
    }
    for (const char* name : {"exposed_us", "layer", "microbatch"}) (void)arguments_.number(name);
    for (const std::vector<TraceArgument>& work : trace_.works) {
      for (const TraceArgument& argument : work) {
        (void)arguments_.number(argument.name);
        const auto* text = std::get_if<std::string>(&argument.value);
        if (text != nullptr) (void)values_.number(*text);
      }
    }
    Message<pf::Packet> packet(file_, pf::Trace::packet);
    packet.add_uint32(pf::Packet::sequence_id, the_sequence);
    packet.add_uint32(pf::Packet::sequence_flags, pf::state_cleared | pf::needs_state);
    Message<pf::Interned> data(packet, pf::Packet::interned_data);
    categories_.write(data, pf::Interned::event_categories);
    names_.write(data, pf::Interned::event_names);
    arguments_.write(data, pf::Interned::debug_annotation_names);
    values_.write(data, pf::Interned::debug_annotation_string_values);
  }

  template <class Fill>
  void add_event(SimTime time, Uuid track, std::int32_t type, const Fill& fill) {
    Message<pf::Packet> packet(file_, pf::Trace::packet);
    packet.add_uint64(pf::Packet::timestamp, whole_nanoseconds(time));
    packet.add_uint32(pf::Packet::sequence_id, the_sequence);
    packet.add_uint32(pf::Packet::sequence_flags, pf::needs_state);
    Message<pf::Event> event(packet, pf::Packet::track_event);
    event.add_enum(pf::Event::type, type);
    event.add_uint64(pf::Event::track_uuid, track);
    fill(event);
  }

  void annotate(Message<pf::Event>& event, const TraceArgument& argument) {
    Message<pf::Annotation> annotation(event, pf::Event::debug_annotations);
    annotation.add_uint64(pf::Annotation::name_iid, arguments_.number(argument.name));
    if (const auto* count = std::get_if<std::int64_t>(&argument.value)) {
      annotation.add_int64(pf::Annotation::int_value, *count);
    } else if (const auto* number = std::get_if<double>(&argument.value)) {
      annotation.add_double(pf::Annotation::double_value, *number);
    } else {
      annotation.add_uint64(pf::Annotation::string_value_iid,
                            values_.number(std::get<std::string>(argument.value)));
    }
  }

  void begin(std::size_t i, std::size_t index) {
    const TraceSlice& slice = trace_.classes[i].slices[index];
    const Uuid track = tracks_[i].streams[at(slice.stream)];
    add_event(slice.start, track, pf::slice_begin, [&](Message<pf::Event>& event) {
      event.add_uint64(pf::Event::category_iids, static_cast<std::uint64_t>(slice.kind) + 1);
      event.add_uint64(pf::Event::name_iid, static_cast<std::uint64_t>(slice.name) + 1);
      for (const std::uint64_t id : flows_[i][index].begins) {
        event.add_fixed64(pf::Event::flow_ids, id);
      }
      for (const std::uint64_t id : flows_[i][index].ends) {
        event.add_fixed64(pf::Event::terminating_flow_ids, id);
      }
      for (const TraceArgument& argument : own_arguments(slice)) annotate(event, argument);
      for (const TraceArgument& argument : trace_.works[at(slice.work)]) annotate(event, argument);
    });
  }

  // Readers order events by time and, at one moment, as they stand in the file: a slice begins
  // after what it follows on its stream has ended, and after what it has an arrow from.
  void add_slices() {
    struct Place {
      std::size_t class_index = 0;
      std::size_t slice = 0;
    };
    std::vector<Place> order;
    for (std::size_t i = 0; i < trace_.classes.size(); ++i) {
      for (std::size_t k = 0; k < trace_.classes[i].slices.size(); ++k) order.push_back({i, k});
    }
    std::stable_sort(order.begin(), order.end(), [&](const Place& a, const Place& b) {
      const auto start = [&](const Place& place) {
        return trace_.classes[place.class_index].slices[place.slice].start;
      };
      if (start(a) != start(b)) return start(a) < start(b);
      return !meets_its_source(a.class_index, a.slice) && meets_its_source(b.class_index, b.slice);
    });
    std::map<Uuid, SimTime> running;  // by track: when the slice there ends
    for (const Place& place : order) {
      const TraceSlice& slice = trace_.classes[place.class_index].slices[place.slice];
      const Uuid track = tracks_[place.class_index].streams[at(slice.stream)];
      const auto before = running.find(track);
      if (before != running.end()) end_slice(before->second, track);
      begin(place.class_index, place.slice);
      running[track] = slice.end;
    }
    for (const auto& [track, end] : running) end_slice(end, track);
  }

  [[nodiscard]] bool meets_its_source(std::size_t i, std::size_t slice) const {
    return flows_[i][slice].meets_its_source;
  }

  void end_slice(SimTime time, Uuid track) {
    add_event(time, track, pf::slice_end, [](Message<pf::Event>&) {});
  }

  void add_value(const TraceCounters& group, SimTime time, Uuid track, double value) {
    add_event(time, track, pf::counter_event, [&](Message<pf::Event>& event) {
      if (group.bytes) {
        event.add_int64(pf::Event::counter_value, static_cast<std::int64_t>(value));
      } else {
        event.add_double(pf::Event::double_counter_value, value);
      }
    });
  }

  // A counter keeps its value until it is told another.
  void add_changes(const TraceCounters& group, Uuid track, const std::vector<double>& values) {
    std::optional<double> last;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (last == values[k]) continue;
      add_value(group, group.times[k], track, values[k]);
      last = values[k];
    }
  }

  void add_counters(std::size_t i) {
    for (std::size_t g = 0; g < trace_.classes[i].counters.size(); ++g) {
      const TraceCounters& group = trace_.classes[i].counters[g];
      std::vector<double> total(group.times.size(), 0);
      for (std::size_t s = 0; s < group.series.size(); ++s) {
        add_changes(group, tracks_[i].counters[g][s], group.values[s]);
        for (std::size_t k = 0; k < total.size(); ++k) total[k] += group.values[s][k];
      }
      if (group.stacks) add_changes(group, tracks_[i].totals[g], total);
    }
  }

  const StepTrace& trace_;
  std::string bytes_;
  Message<pf::Trace> file_;
  Uuid last_uuid_ = 0;
  std::vector<Tracks> tracks_;                  // by class
  std::vector<std::vector<SliceFlows>> flows_;  // by class and slice
  Texts names_;
  Texts categories_;
  Texts arguments_;
  Texts values_;
};

}  // namespace

std::string perfetto_trace(const StepTrace& trace) { return PerfettoWriter(trace).write(); }

}  // namespace shardsim
