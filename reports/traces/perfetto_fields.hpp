// Numbers of the fields that we write of Perfetto's trace format. Facts of its public schema
// (google/perfetto, protos/perfetto/trace/ and track_event/), read 2026-11-23 from the descriptors
// that PyPI's package perfetto 0.59.1 ships; tests/tools/traces_test.py holds them to these.
#pragma once

#include <cstdint>

namespace shardsim::perfetto {

enum class Trace : std::uint32_t { packet = 1 };

enum class Packet : std::uint32_t {  // TracePacket
  timestamp = 8,                     // nanoseconds
  sequence_id = 10,                  // trusted_packet_sequence_id
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  track_descriptor = 60
};

inline constexpr std::uint32_t state_cleared = 1;  // SEQ_INCREMENTAL_STATE_CLEARED
inline constexpr std::uint32_t needs_state = 2;    // SEQ_NEEDS_INCREMENTAL_STATE

enum class Track : std::uint32_t {  // TrackDescriptor
  uuid = 1,
  name = 2,
  process = 3,
  parent_uuid = 5,
  counter = 8,
  child_ordering = 11,
  sibling_order_rank = 12,
  description = 14
};
inline constexpr std::int32_t ordered_explicitly = 3;  // ChildTracksOrdering.EXPLICIT

enum class Process : std::uint32_t { pid = 1, name = 6 };  // ProcessDescriptor

enum class Counter : std::uint32_t {  // CounterDescriptor
  unit = 3,
  unit_name = 6,
  y_axis_share_key = 7
};
inline constexpr std::int32_t unit_of_bytes = 3;  // UNIT_SIZE_BYTES

enum class Event : std::uint32_t {  // TrackEvent
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  counter_value = 30,
  double_counter_value = 44,
  flow_ids = 47,
  terminating_flow_ids = 48
};
inline constexpr std::int32_t slice_begin = 1;  // TrackEvent.Type
inline constexpr std::int32_t slice_end = 2;
inline constexpr std::int32_t counter_event = 4;

enum class Annotation : std::uint32_t {  // DebugAnnotation
  name_iid = 1,
  int_value = 4,
  double_value = 5,
  string_value_iid = 17
};

enum class Interned : std::uint32_t {  // InternedData
  event_categories = 1,
  event_names = 2,
  debug_annotation_names = 3,
  debug_annotation_string_values = 29
};
// EventCategory, EventName, DebugAnnotationName, InternedString alike.
enum class InternedText : std::uint32_t { iid = 1, text = 2 };

}  // namespace shardsim::perfetto
