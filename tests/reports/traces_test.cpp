// Traces and Chakra files read back, by the reader of the library that writes them and by a JSON
// parser, and held to what the simulation and the plan say. Two kinds of steps: pipelines made here
// for a machine of one byte and one flop per picosecond (tests/sim/plan_builder.hpp), whose times
// are worked out beside the tests, and shipped examples, whose sums must be those of the result.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <protozero/pbf_message.hpp>
#include <random>
#include <set>
#include <tuple>

#include "base/index.hpp"
#include "base/json.hpp"
#include "fixture.hpp"
#include "reports/traces/chakra.hpp"
#include "reports/traces/chakra_fields.hpp"
#include "reports/traces/chrome.hpp"
#include "reports/traces/perfetto.hpp"
#include "reports/traces/perfetto_fields.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/plan_builder.hpp"

namespace shardsim {
namespace {

namespace pf = perfetto;
using fixture::ms;
using testing::PlanBuilder;

SimulationOptions all_kept() {
  SimulationOptions options;
  options.keep_timeline = true;
  options.link_bins = 10;
  return options;
}

Prediction example(const std::string& file, const std::string& name) {
  const std::string path = SHARDSIM_SOURCE_DIR "/examples/" + file;
  return predict(read_experiments(load_json(path), path, {name}).at(0), all_kept());
}

const Prediction& fsdp_on_tpus() {
  static const Prediction prediction = example("qwen3-1.7b-fsdp4.json", "qwen3-1.7b-fsdp4");
  return prediction;
}

// Collectives over two axes.
const Prediction& fsdp_and_tp() {
  static const Prediction prediction = example("llama-3.1-8b-8xh100.json", "fsdp+tp");
  return prediction;
}

// Two stages of two devices: the first computes, gathers and sends, the second computes meanwhile,
// receives, computes and sends back what the first needs for its last kernel. In picoseconds:
//
//   first   compute  kernel 0-100                                kernel 170-180
//           link              gather 100-120  send 120-150  receive 160-170
//   second  compute  kernel 0-30                      kernel 150-160
//           link                              receive 120-150  send 160-170
Plan two_stages() {
  PlanBuilder b({{"stage", 2}, {"x", 2}});
  b.plan.programs[0].name = "first";
  b.plan.programs[0].devices = {0, 1};
  b.add_program("second", {2, 3});
  const TaskId computed = b.kernel(100);
  const TaskId gathered = b.gather(20, {computed}, 1, /*axis=*/1);
  const TaskId sent = b.transfer(/*sends=*/true, 1, 30, {gathered});
  const TaskId back = b.transfer(/*sends=*/false, 1, 10, {sent});
  b.kernel(10, {back});
  b.buffer("weights", 7, before_the_step, {});
  b.buffer("gathered", 20, gathered, {sent}, BufferCategory::gathered_parameters);
  b.current = 1;
  b.kernel(30);
  const TaskId received = b.transfer(/*sends=*/false, 0, 30);
  const TaskId answered = b.kernel(10, {received});
  b.transfer(/*sends=*/true, 0, 10, {answered});
  verify(b.plan);
  return b.plan;
}

Prediction simulated(Plan plan) {
  Prediction prediction;
  prediction.machine = testing::round_node(plan.mesh.devices());
  prediction.result = simulate(plan, prediction.machine, all_kept());
  prediction.step.plan = std::move(plan);
  return prediction;
}

// What a Perfetto file says, with its references followed.
struct ReadTrace {
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
    bool counts = false;
  };
  struct Slice {
    std::uint64_t track = 0;
    std::int64_t start = 0;  // nanoseconds
    std::int64_t end = 0;
    std::string name;
    std::string category;
    std::vector<std::uint64_t> flows_from;
    std::vector<std::uint64_t> flows_to;
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> texts;
  };
  std::map<std::uint64_t, Track> tracks;
  std::vector<Slice> slices;
  std::map<std::uint64_t, std::vector<double>> counters;

  // "all (2 devices)/memory/total"
  std::string path(std::uint64_t track) const {
    const Track& one = tracks.at(track);
    return one.parent == 0 ? one.name : path(one.parent) + "/" + one.name;
  }
};

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

  // Slices of a track come in order and never overlap.
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

ReadTrace read_back(const Prediction& prediction) {
  return TraceReader(perfetto_trace(trace_of(prediction))).trace;
}

double sum(const ReadTrace& trace, const std::string& number,
           const std::function<bool(const ReadTrace::Slice&)>& counts) {
  double total = 0;
  for (const ReadTrace::Slice& slice : trace.slices) {
    const auto found = slice.numbers.find(number);
    if (found != slice.numbers.end() && counts(slice)) total += found->second;
  }
  return total;
}

bool always(const ReadTrace::Slice&) { return true; }

std::string axes_of(const CommunicationRow& row) {
  std::string axes;
  for (const std::string& axis : row.axes) axes += (axes.empty() ? "" : ",") + axis;
  return axes;
}

std::vector<const Prediction*> predictions() { return {&fsdp_on_tpus(), &fsdp_and_tp()}; }

TEST_CASE("A trace has every task that takes time, and as much of it") {
  for (const Prediction* prediction : predictions()) {
    const Program& program = prediction->step.plan.programs[0];
    const ProgramResult& result = prediction->result.programs[0];
    const ReadTrace trace = read_back(*prediction);
    std::map<std::string, std::pair<std::int64_t, SimTime>> expected;  // tasks and time, by stream
    for (std::size_t i = 0; i < result.tasks.size(); ++i) {
      auto& [tasks, time] = expected[program.streams[program.tasks[i].stream]];
      tasks += result.tasks[i].end > result.tasks[i].start ? 1 : 0;
      time += result.tasks[i].end - result.tasks[i].start;
    }
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> actual;
    for (const ReadTrace::Slice& slice : trace.slices) {
      auto& [tasks, nanoseconds] = actual[trace.tracks.at(slice.track).name];
      ++tasks;
      nanoseconds += slice.end - slice.start;
    }
    for (const auto& [stream, counted] : expected) {
      INFO(stream);
      const auto [tasks, nanoseconds] = actual[stream];
      CHECK(tasks == counted.first);
      // Rounded down at both ends: less than one nanosecond off for each.
      CHECK(std::abs(nanoseconds - counted.second.count() / 1000) <= tasks);
    }
    // One kernel at a time: what the result calls compute time, to the picosecond.
    SimTime compute{0};
    const StepTrace exact = trace_of(*prediction);
    for (const TraceSlice& slice : exact.classes[0].slices) {
      if (slice.stream == 0) compute += slice.end - slice.start;
    }
    CHECK(compute == result.compute_time + result.contention_time);
  }
}

TEST_CASE("Exposed times of a trace add up to those of the result") {
  for (const Prediction* prediction : predictions()) {
    const ProgramResult& result = prediction->result.programs[0];
    const std::vector<SimTime> exposed =
        exposed_times(prediction->step.plan.programs[0], result.tasks);
    CHECK(std::accumulate(exposed.begin(), exposed.end(), SimTime(0)) == result.exposed_time);
    const ReadTrace trace = read_back(*prediction);
    CHECK(sum(trace, "exposed_us", always) ==
          Approx(to_seconds(result.exposed_time).count() * 1e6).epsilon(1e-9));
    for (const CommunicationRow& row : prediction->result.communication) {
      const auto is_of_row = [&](const ReadTrace::Slice& slice) {
        return slice.category == row.kind && slice.texts.at("axes") == axes_of(row);
      };
      INFO(row.kind << " over " << axes_of(row));
      CHECK(sum(trace, "exposed_us", is_of_row) ==
            Approx(to_seconds(row.exposed).count() * 1e6).epsilon(1e-6).margin(1e-3));
    }
  }
}

// From the times in fixture.hpp: no kernel runs from 0.4 to 0.8 s, and after 1.2 s.
TEST_CASE("What is exposed is what no kernel hides") {
  const Prediction prediction = fixture::fsdp();
  const std::vector<SimTime> exposed =
      exposed_times(prediction.step.plan.programs[0], prediction.result.programs[0].tasks);
  CHECK(exposed == std::vector<SimTime>{ms(0), ms(0), ms(400), ms(0), ms(50)});
}

TEST_CASE("Collectives in flight together share what is exposed evenly") {
  Prediction prediction = fixture::fsdp();
  // The gather of 0.4 to 0.8 s and one from 0.6 to 0.9 s, of which a kernel hides the last 0.1:
  // 0.2 alone and half of 0.2, the other half.
  prediction.result.programs[0].tasks[4] = {ms(600), ms(900)};
  const std::vector<SimTime> exposed =
      exposed_times(prediction.step.plan.programs[0], prediction.result.programs[0].tasks);
  CHECK(exposed == std::vector<SimTime>{ms(0), ms(0), ms(300), ms(0), ms(100)});
}

TEST_CASE("Collectives of a trace carry the bytes and the algorithm of the result") {
  for (const Prediction* prediction : predictions()) {
    const ReadTrace trace = read_back(*prediction);
    for (const CommunicationRow& row : prediction->result.communication) {
      INFO(row.kind << " over " << axes_of(row));
      std::int64_t count = 0;
      std::set<std::string> algorithms;
      const auto is_of_row = [&](const ReadTrace::Slice& slice) {
        return slice.category == row.kind && slice.texts.at("axes") == axes_of(row);
      };
      for (const ReadTrace::Slice& slice : trace.slices) {
        if (!is_of_row(slice)) continue;
        ++count;
        const auto protocol = slice.texts.find("protocol");
        algorithms.insert(slice.texts.at("algorithm") +
                          (protocol == slice.texts.end() ? "" : " " + protocol->second));
        CHECK_FALSE(slice.texts.at("reason").empty());
      }
      CHECK(count == row.count);
      CHECK(sum(trace, "payload_bytes", is_of_row) == static_cast<double>(row.payload.count()));
      CHECK(sum(trace, "wire_bytes_per_device", is_of_row) ==
            static_cast<double>(row.wire_bytes_per_device.count()));
      CHECK(algorithms == std::set<std::string>(row.algorithms.begin(), row.algorithms.end()));
    }
  }
}

TEST_CASE("The memory of a trace has the peak, by category, and links stay below all of theirs") {
  for (const Prediction* prediction : predictions()) {
    const ProgramResult& result = prediction->result.programs[0];
    const ReadTrace trace = read_back(*prediction);
    std::size_t links = 0;
    bool has_total = false;
    for (const auto& [track, values] : trace.counters) {
      const std::string path = trace.path(track);
      const double most = *std::max_element(values.begin(), values.end());
      INFO(path);
      if (path.ends_with("/memory/total")) {
        has_total = true;
        CHECK(most == static_cast<double>(result.peak.count()));
      } else if (path.ends_with("/memory/parameters")) {
        // Shards live before and after the step.
        CHECK(values ==
              std::vector<double>{static_cast<double>(result.peak_by_category[0].count())});
      } else if (path.find("/links/") != std::string::npos) {
        ++links;
        CHECK(most > 0);
        CHECK(most <= 100.0001);
        CHECK(values.back() == 0);
      }
    }
    CHECK(has_total);
    CHECK(links >= 1);
  }
}

// A flow begins at one slice and ends at one that begins no earlier, and comes later in the file.
void check_flows(const ReadTrace& trace, std::size_t expected) {
  std::map<std::uint64_t, std::size_t> begun;  // by flow: the slice
  std::size_t ended = 0;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    for (const std::uint64_t flow : trace.slices[i].flows_to) {
      const auto found = begun.find(flow);
      REQUIRE(found != begun.end());
      CHECK(trace.slices[found->second].start <= trace.slices[i].start);
      ++ended;
    }
    for (const std::uint64_t flow : trace.slices[i].flows_from) {
      CHECK(begun.emplace(flow, i).second);
    }
  }
  CHECK(ended == begun.size());
  CHECK(ended == expected);
}

TEST_CASE("Flows lead from producers to consumers on other streams") {
  for (const Prediction* prediction : predictions()) {
    const Program& program = prediction->step.plan.programs[0];
    const std::vector<TaskTimes>& times = prediction->result.programs[0].tasks;
    std::size_t expected = 0;
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      for (const TaskId before : program.after(program.tasks[i])) {
        const bool crosses = program.tasks[at(before)].stream != program.tasks[i].stream;
        const bool seen =
            times[i].end > times[i].start && times[at(before)].end > times[at(before)].start;
        expected += crosses && seen ? 1 : 0;
      }
    }
    REQUIRE(expected > 0);
    check_flows(read_back(*prediction), expected);
  }
}

TEST_CASE("Stages have tracks of their own, and messages lead from one to the other") {
  const Prediction prediction = simulated(two_stages());
  REQUIRE(prediction.result.step_time == SimTime(180));
  const StepTrace trace = trace_of(prediction);
  REQUIRE(trace.classes.size() == 2);
  CHECK(trace.classes[0].name == "first (2 devices)");
  CHECK(trace.classes[1].name == "second (2 devices)");
  const auto text = [&](std::int32_t one, std::int32_t index) {
    const TraceSlice& slice = trace.classes[at(one)].slices[at(index)];
    return trace.names[at(slice.name)] + " at " + std::to_string(slice.start.count());
  };
  std::set<std::string> flows;
  for (const TraceFlow& flow : trace.flows) {
    flows.insert(text(flow.from_class, flow.from_slice) + " to " +
                 text(flow.to_class, flow.to_slice));
  }
  // Names as PlanBuilder gives them: by the number of the task in its program.
  CHECK(flows == std::set<std::string>{"task 0 at 0 to all-gather task 1 at 100",
                                       "send task 2 at 120 to receive task 1 at 120",
                                       "receive task 1 at 120 to task 2 at 150",
                                       "task 2 at 150 to send task 3 at 160",
                                       "send task 3 at 160 to receive task 3 at 160",
                                       "receive task 3 at 160 to task 4 at 170"});
  // All within a nanosecond: the order in the file is all that tells them apart.
  check_flows(TraceReader(perfetto_trace(trace)).trace, flows.size());
}

TEST_CASE("Chrome's format has the same slices, to the picosecond") {
  for (const Prediction* prediction : predictions()) {
    const ProgramResult& result = prediction->result.programs[0];
    const Json document = Json::parse(chrome_trace(trace_of(*prediction)));
    std::int64_t compute = 0;
    std::int64_t peak = 0;
    std::map<std::int64_t, std::string> flows;
    for (const Json& event : document.at("traceEvents")) {
      const std::string phase = event.at("ph");
      if (phase == "X" && event.at("tid") == 0) {
        compute += std::llround(event.at("dur").get<double>() * 1e6);
      }
      if (phase == "C" && event.at("name") == "memory") {
        std::int64_t bytes = 0;
        for (const Json& value : event.at("args")) bytes += value.get<std::int64_t>();
        peak = std::max(peak, bytes);
      }
      if (phase == "s" || phase == "f") flows[event.at("id")] += phase;
    }
    CHECK(compute == (result.compute_time + result.contention_time).count());
    CHECK(peak == result.peak.count());
    REQUIRE_FALSE(flows.empty());
    for (const auto& [id, phases] : flows) CHECK(phases == "sf");
  }
}

// A rank's file, its messages parted by their lengths and its attributes by name.
struct ReadNode {
  std::uint64_t id = 0;
  std::string name;
  chakra::NodeType type{};
  std::vector<std::uint64_t> control;
  std::vector<std::uint64_t> data;
  std::uint64_t start = 0;
  std::uint64_t duration = 0;
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, std::string> texts;
};

ReadNode read_node(protozero::pbf_message<chakra::Node> message) {
  ReadNode node;
  while (message.next()) {
    switch (message.tag()) {
      case chakra::Node::id:
        node.id = message.get_uint64();
        break;
      case chakra::Node::name:
        node.name = message.get_string();
        break;
      case chakra::Node::type:
        node.type = static_cast<chakra::NodeType>(message.get_enum());
        break;
      case chakra::Node::control_dependencies:
        for (const std::uint64_t id : message.get_packed_uint64()) node.control.push_back(id);
        break;
      case chakra::Node::data_dependencies:
        for (const std::uint64_t id : message.get_packed_uint64()) node.data.push_back(id);
        break;
      case chakra::Node::start_time_micros:
        node.start = message.get_uint64();
        break;
      case chakra::Node::duration_micros:
        node.duration = message.get_uint64();
        break;
      case chakra::Node::attributes: {
        protozero::pbf_message<chakra::Attribute> attribute(message.get_message());
        std::string name;
        while (attribute.next()) {
          switch (attribute.tag()) {
            case chakra::Attribute::name:
              name = attribute.get_string();
              break;
            case chakra::Attribute::string_value:
              node.texts[name] = attribute.get_string();
              break;
            default:  // all whole numbers here
              node.numbers[name] = attribute.get_int64();
          }
        }
        break;
      }
    }
  }
  return node;
}

std::vector<ReadNode> read_rank(const ChakraTraces& traces, std::int64_t rank) {
  const std::string bytes = traces.rank(rank);
  std::vector<ReadNode> nodes;
  const char* here = bytes.data();
  const char* const end = here + bytes.size();
  bool is_metadata = true;
  while (here < end) {
    const std::uint64_t size = protozero::decode_varint(&here, end);
    REQUIRE(size <= static_cast<std::uint64_t>(end - here));
    const protozero::data_view view(here, size);
    here += size;
    if (is_metadata) {
      protozero::pbf_message<chakra::Metadata> metadata(view);
      REQUIRE(metadata.next(chakra::Metadata::version));
      CHECK(metadata.get_string() == "0.0.4");
    } else {
      nodes.push_back(read_node(protozero::pbf_message<chakra::Node>(view)));
    }
    is_metadata = false;
  }
  return nodes;
}

// What a reader needs so that every node is run: nodes wait for earlier ones that are there.
void check_order(const std::vector<ReadNode>& nodes) {
  std::set<std::uint64_t> ids;
  for (const ReadNode& node : nodes) {
    for (const std::uint64_t id : node.control) CHECK(ids.count(id) == 1);
    for (const std::uint64_t id : node.data) CHECK(ids.count(id) == 1);
    CHECK(ids.insert(node.id).second);
    CHECK(node.numbers.at("is_cpu_op") == 0);
  }
}

std::map<CollectiveKind, chakra::CollectiveType> collective_types() {
  return {{CollectiveKind::all_reduce, chakra::CollectiveType::all_reduce},
          {CollectiveKind::all_gather, chakra::CollectiveType::all_gather},
          {CollectiveKind::reduce_scatter, chakra::CollectiveType::reduce_scatter},
          {CollectiveKind::all_to_all, chakra::CollectiveType::all_to_all}};
}

TEST_CASE("A rank's Chakra file has the work of the plan") {
  for (const Prediction* prediction : predictions()) {
    const Plan& plan = prediction->step.plan;
    const ChakraTraces traces(plan, &prediction->result);
    const std::vector<ReadNode> nodes = read_rank(traces, 0);
    check_order(nodes);
    std::map<std::int64_t, std::int64_t> expected_bytes;  // by comm_type
    double expected_flops = 0;
    std::int64_t kernels = 0;
    for (const Task& task : plan.programs[0].tasks) {
      if (task.kind == TaskKind::kernel) {
        ++kernels;
        expected_flops += std::max(1.0, plan.kernels[at(task.work)].flops.count());
        continue;
      }
      const Collective& collective = plan.collectives[at(task.work)];
      const std::int64_t size = group_size(plan, collective);
      const bool gathers = collective.kind == CollectiveKind::all_gather;
      REQUIRE(collective.payload.count() % (gathers ? size : 1) == 0);
      expected_bytes[static_cast<std::int64_t>(collective_types().at(collective.kind))] +=
          collective.payload.count() / (gathers ? size : 1);
    }
    std::map<std::int64_t, std::int64_t> bytes;
    double flops = 0;
    std::uint64_t last_end = 0;
    for (const ReadNode& node : nodes) {
      last_end = std::max(last_end, node.start + node.duration);
      if (node.type == chakra::NodeType::compute) {
        --kernels;
        flops += static_cast<double>(node.numbers.at("num_ops"));
        CHECK(node.numbers.at("tensor_size") >= 1);
      } else {
        REQUIRE(node.type == chakra::NodeType::collective);
        bytes[node.numbers.at("comm_type")] += node.numbers.at("comm_size");
        CHECK_FALSE(node.texts.at("pg_name").empty());
      }
    }
    CHECK(kernels == 0);
    CHECK(flops == Approx(expected_flops).epsilon(1e-9));
    CHECK(bytes == expected_bytes);
    CHECK(last_end == static_cast<std::uint64_t>(
                          std::llround(to_seconds(prediction->result.step_time).count() * 1e6)));
    for (const ReadNode& node : read_rank(ChakraTraces(plan, nullptr), 0)) {
      CHECK(node.start + node.duration == 0);
    }
  }
}

// The law that keeps a reader from waiting for ever: whoever is in a group runs the same calls in
// it, in one order.
TEST_CASE("All ranks of a communicator agree on its collectives") {
  const Plan& plan = fsdp_and_tp().step.plan;
  const ChakraTraces traces(plan, nullptr);
  const Json groups = Json::parse(traces.communicators());
  using Call = std::pair<std::int64_t, std::int64_t>;
  std::map<std::string, std::map<std::int64_t, std::vector<Call>>> calls;  // by group, then rank
  for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
    for (const ReadNode& node : read_rank(traces, rank)) {
      if (node.type != chakra::NodeType::collective) continue;
      calls[node.texts.at("pg_name")][rank].emplace_back(node.numbers.at("comm_type"),
                                                         node.numbers.at("comm_size"));
    }
  }
  CHECK(calls.size() == groups.size());
  for (const auto& [group, by_rank] : calls) {
    INFO("group " << group);
    std::vector<std::int64_t> ranks;
    for (const auto& [rank, list] : by_rank) {
      ranks.push_back(rank);
      CHECK(list == by_rank.begin()->second);
    }
    CHECK(groups.at(group).get<std::vector<std::int64_t>>() == ranks);
  }
  // fsdp=4,model=2: two groups of four, four of two; and the sums over all eight.
  std::multiset<std::size_t> sizes;
  for (const Json& ranks : groups) sizes.insert(ranks.size());
  CHECK(sizes.count(4) == 2);
  CHECK(sizes.count(2) == 4);
}

using Message = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

// Sent and received, of all ranks: source, target, tag, bytes.
std::pair<std::multiset<Message>, std::multiset<Message>> messages(const ChakraTraces& traces) {
  std::pair<std::multiset<Message>, std::multiset<Message>> result;
  for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
    for (const ReadNode& node : read_rank(traces, rank)) {
      const bool sends = node.type == chakra::NodeType::send;
      if (!sends && node.type != chakra::NodeType::receive) continue;
      CHECK(node.numbers.at(sends ? "comm_src" : "comm_dst") == rank);
      (sends ? result.first : result.second)
          .insert({node.numbers.at("comm_src"), node.numbers.at("comm_dst"),
                   node.numbers.at("comm_tag"), node.numbers.at("comm_size")});
    }
  }
  return result;
}

TEST_CASE("Messages between stages go from rank to rank") {
  const Plan plan = two_stages();
  const ChakraTraces traces(plan, nullptr);
  const auto [sent, received] = messages(traces);
  CHECK(sent == std::multiset<Message>{{0, 2, 0, 30}, {1, 3, 0, 30}, {2, 0, 0, 10}, {3, 1, 0, 10}});
  CHECK(received == sent);
  CHECK(traces.first_of_each_class() == std::vector<std::int64_t>{0, 2});
  // Only the first stage gathers: 40 bytes over two ranks, of which each has 20.
  CHECK(Json::parse(traces.communicators()) == Json({{"1", {0, 1}}}));
  const std::vector<ReadNode> nodes = read_rank(traces, 1);
  check_order(nodes);
  REQUIRE(nodes.size() == 5);
  CHECK(nodes[1].numbers.at("comm_size") == 20);
  CHECK(nodes[1].texts.at("pg_name") == "1");
  CHECK(nodes[1].data == std::vector<std::uint64_t>{nodes[0].id});
  // The send waits for the gather, which is before it on the stream, too.
  CHECK(nodes[2].control == std::vector<std::uint64_t>{nodes[1].id});
}

// Pairs 0 -> 1, 1 -> 0 and 3 -> 3; rank 2 has no part in it, rank 3 keeps what it has.
Plan a_permute_between_kernels() {
  PlanBuilder b({{"x", 4}});
  const TaskId before = b.kernel(5);
  Collective permute;
  permute.kind = CollectiveKind::collective_permute;
  permute.source_targets = {{0, 1}, {1, 0}, {3, 3}};
  permute.payload = Bytes(8);
  b.plan.collectives.push_back(permute);
  Task task;
  task.kind = TaskKind::collective;
  task.stream = 1;
  (void)b.plan.programs[0].add_task(task, {before});
  b.kernel(5, {1});
  verify(b.plan);
  return b.plan;
}

TEST_CASE("A permute is messages, and who has no part in it does not wait") {
  const Plan plan = a_permute_between_kernels();
  const ChakraTraces traces(plan, nullptr);
  const auto [sent, received] = messages(traces);
  CHECK(sent == std::multiset<Message>{{0, 1, 1, 8}, {1, 0, 1, 8}});
  CHECK(received == sent);
  const std::vector<ReadNode> first = read_rank(traces, 0);
  check_order(first);
  REQUIRE(first.size() == 4);
  // Sent before received: readers that run one at a time would wait for each other else.
  CHECK(first[1].type == chakra::NodeType::send);
  CHECK(first[2].type == chakra::NodeType::receive);
  CHECK(first[3].data == std::vector<std::uint64_t>{first[1].id, first[2].id});
  for (const std::int64_t rank : {2, 3}) {
    const std::vector<ReadNode> other = read_rank(traces, rank);
    check_order(other);
    REQUIRE(other.size() == 2);
    CHECK(other[1].data == std::vector<std::uint64_t>{other[0].id});
  }
}

// Two programs of two devices: kernels, gathers on two streams, messages whose ends are issued at
// once, so that no deadlock is possible; some take no time.
Plan random_plan(unsigned seed) {
  std::mt19937 numbers(seed);
  const auto below = [&](unsigned limit) { return static_cast<int>(numbers() % limit); };
  PlanBuilder b({{"stage", 2}, {"x", 2}});
  b.plan.programs[0].devices = {0, 1};
  b.add_program("second", {2, 3});
  const auto some_earlier = [&] {
    std::vector<TaskId> after;
    const auto count = static_cast<unsigned>(b.plan.programs[b.current].tasks.size());
    for (int i = below(3); i > 0 && count > 0; --i) after.push_back(below(count));
    return after;
  };
  for (int tasks = 1 + below(40); tasks > 0; --tasks) {
    const int from = below(2);
    b.current = at(from);
    const std::int64_t duration = below(8) * 100;
    switch (below(3)) {
      case 0:
        b.kernel(duration, some_earlier());
        break;
      case 1:
        b.gather(duration, some_earlier(), 1 + below(2), /*axis=*/1);
        break;
      default:
        b.transfer(/*sends=*/true, 1 - from, duration, some_earlier());
        b.current = at(1 - from);
        b.transfer(/*sends=*/false, from, duration, some_earlier());
    }
  }
  return b.plan;
}

TEST_CASE("Whatever the plan, its traces hold together") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    const Prediction prediction = simulated(random_plan(seed));
    const Plan& plan = prediction.step.plan;
    for (std::size_t p = 0; p < plan.programs.size(); ++p) {
      const ProgramResult& result = prediction.result.programs[p];
      const std::vector<SimTime> exposed = exposed_times(plan.programs[p], result.tasks);
      CHECK(std::accumulate(exposed.begin(), exposed.end(), SimTime(0)) == result.exposed_time);
    }
    const StepTrace trace = trace_of(prediction);
    check_flows(TraceReader(perfetto_trace(trace)).trace, trace.flows.size());
    const ChakraTraces traces(plan, &prediction.result);
    for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
      check_order(read_rank(traces, rank));
    }
    const auto [sent, received] = messages(traces);
    CHECK(sent == received);
  }
}

TEST_CASE("Messages between stages of different size have no counterparts") {
  Plan plan = two_stages();
  plan.programs[1].devices = {2};
  CHECK_THROWS_WITH(ChakraTraces(plan, nullptr),
                    "program first: messages between 2 devices and 1 of second have no "
                    "counterparts that a trace could name");
}

TEST_CASE("Host copies are loads and stores") {
  PlanBuilder b;
  const TaskId stored = b.host_copy(TaskKind::to_host, 64);
  b.host_copy(TaskKind::from_host, 32, {stored});
  const ChakraTraces traces(b.plan, nullptr);
  const std::vector<ReadNode> nodes = read_rank(traces, 0);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].type == chakra::NodeType::memory_store);
  CHECK(nodes[0].numbers.at("tensor_size") == 64);
  CHECK(nodes[1].type == chakra::NodeType::memory_load);
  CHECK(nodes[1].numbers.at("tensor_size") == 32);
}

}  // namespace
}  // namespace shardsim
