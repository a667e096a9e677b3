#include "perfetto_reader.hpp"

#include <catch2/catch.hpp>
#include <protozero/pbf_message.hpp>

#include "reports/traces/perfetto_fields.hpp"

namespace shardsim {
namespace {

namespace pf = perfetto;

class TraceReader {
 public:
  explicit TraceReader(const std::string& bytes) {
    protozero::pbf_message<pf::Trace> file(bytes);
    while (file.next(pf::Trace::packet)) read_packet(file.get_message());
    for (const auto& [track, open] : open_) {
      INFO(trace.path(track));
      CHECK(open.empty());
    }
  }
  ReadTrace trace;

 private:
  using View = protozero::data_view;
  using Texts = std::map<std::uint64_t, std::string>;

  void read_packet(protozero::pbf_message<pf::Packet> packet) {
    std::int64_t time = -1;
    while (packet.next()) {
      switch (packet.tag()) {
        case pf::Packet::timestamp:
          time = static_cast<std::int64_t>(packet.get_uint64());
          break;
        case pf::Packet::track_descriptor:
          read_track(packet.get_message());
          break;
        case pf::Packet::interned_data:
          read_texts(packet.get_message());
          break;
        case pf::Packet::track_event:
          REQUIRE(time >= 0);
          read_event(time, packet.get_message());
          break;
        default:
          packet.skip();
      }
    }
  }

  void read_track(protozero::pbf_message<pf::Track> message) {
    ReadTrace::Track track;
    std::uint64_t uuid = 0;
    while (message.next()) {
      if (message.tag() == pf::Track::uuid) {
        uuid = message.get_uint64();
      } else if (message.tag() == pf::Track::name) {
        track.name = message.get_string();
      } else if (message.tag() == pf::Track::parent_uuid) {
        track.parent = message.get_uint64();
      } else {
        track.counts |= message.tag() == pf::Track::counter;
        message.skip();
      }
    }
    CHECK(trace.tracks.emplace(uuid, track).second);
  }

  void read_texts(protozero::pbf_message<pf::Interned> message) {
    while (message.next()) {
      const pf::Interned kind = message.tag();
      protozero::pbf_message<pf::InternedText> entry(message.get_message());
      std::uint64_t number = 0;
      std::string text;
      while (entry.next()) {
        if (entry.tag() == pf::InternedText::iid)
          number = entry.get_uint64();
        else
          text = entry.get_string();
      }
      CHECK(texts_[kind].emplace(number, text).second);
    }
  }

  void read_annotation(protozero::pbf_message<pf::Annotation> message, ReadTrace::Slice& slice) {
    std::string name;
    while (message.next()) {
      switch (message.tag()) {
        case pf::Annotation::name_iid:
          name = texts_[pf::Interned::debug_annotation_names].at(message.get_uint64());
          break;
        case pf::Annotation::int_value:
          slice.numbers[name] = static_cast<double>(message.get_int64());
          break;
        case pf::Annotation::double_value:
          slice.numbers[name] = message.get_double();
          break;
        case pf::Annotation::string_value_iid:
          slice.texts[name] =
              texts_[pf::Interned::debug_annotation_string_values].at(message.get_uint64());
          break;
      }
    }
  }

  void read_event(std::int64_t time, protozero::pbf_message<pf::Event> message) {
    ReadTrace::Slice slice;
    slice.start = time;
    std::int32_t type = 0;
    double value = 0;
    while (message.next()) {
      switch (message.tag()) {
        case pf::Event::type:
          type = message.get_enum();
          break;
        case pf::Event::track_uuid:
          slice.track = message.get_uint64();
          break;
        case pf::Event::name_iid:
          slice.name = texts_[pf::Interned::event_names].at(message.get_uint64());
          break;
        case pf::Event::category_iids:
          slice.category = texts_[pf::Interned::event_categories].at(message.get_uint64());
          break;
        case pf::Event::flow_ids:
          slice.flows_from.push_back(message.get_fixed64());
          break;
        case pf::Event::terminating_flow_ids:
          slice.flows_to.push_back(message.get_fixed64());
          break;
        case pf::Event::counter_value:
          value = static_cast<double>(message.get_int64());
          break;
        case pf::Event::double_counter_value:
          value = message.get_double();
          break;
        case pf::Event::debug_annotations:
          read_annotation(message.get_message(), slice);
          break;
      }
    }
    place(type, value, std::move(slice));
  }

  void place(std::int32_t type, double value, ReadTrace::Slice slice) {
    REQUIRE(trace.tracks.count(slice.track) == 1);
    std::vector<std::size_t>& open = open_[slice.track];
    if (type == pf::counter_event) {
      CHECK(trace.tracks.at(slice.track).counts);
      trace.counters[slice.track].push_back(value);
    } else if (type == pf::slice_begin) {
      CHECK(open.empty());
      CHECK(slice.start >= last_end_[slice.track]);
      open.push_back(trace.slices.size());
      trace.slices.push_back(std::move(slice));
    } else {
      REQUIRE(type == pf::slice_end);
      REQUIRE(open.size() == 1);
      trace.slices[open[0]].end = slice.start;
      last_end_[slice.track] = slice.start;
      CHECK(slice.start >= trace.slices[open[0]].start);
      open.clear();
    }
  }

  std::map<pf::Interned, Texts> texts_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;  // by track
  std::map<std::uint64_t, std::int64_t> last_end_;
};

}  // namespace

ReadTrace read_perfetto(const std::string& bytes) { return TraceReader(bytes).trace; }

}  // namespace shardsim
