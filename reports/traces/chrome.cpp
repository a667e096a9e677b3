#include "reports/traces/chrome.hpp"

#include <optional>

#include "base/index.hpp"
#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr double picoseconds_in_microsecond = 1e6;

double in_microseconds(SimTime time) {
  return static_cast<double>(time.count()) / picoseconds_in_microsecond;
}

// Names are somebody's own, and may be no UTF-8.
std::string in_json(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

void set_argument(Json& arguments, const TraceArgument& argument) {
  std::visit([&](const auto& value) { arguments[argument.name] = value; }, argument.value);
}

class ChromeWriter {
 public:
  explicit ChromeWriter(const StepTrace& trace) : trace_(trace) {}

  std::string write() {
    text_ = "{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"title\": " + in_json(trace_.title) +
            "},\n\"traceEvents\": [";
    for (std::size_t i = 0; i < trace_.classes.size(); ++i) {
      name_tracks(i);
      for (const TraceSlice& slice : trace_.classes[i].slices) add_slice(i, slice);
      for (const TraceCounters& group : trace_.classes[i].counters) add_counters(i, group);
    }
    for (std::size_t k = 0; k < trace_.flows.size(); ++k) add_flow(k);
    return std::move(text_) + "\n]}\n";
  }

 private:
  static std::int64_t pid(std::size_t i) { return static_cast<std::int64_t>(i) + 1; }

  void add(const Json& event) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    text_ += in_json(event);
  }

  void name_tracks(std::size_t i) {
    const TraceClass& one = trace_.classes[i];
    const auto describe = [&](const char* what, std::int64_t tid, const Json& arguments) {
      add({{"ph", "M"}, {"name", what}, {"pid", pid(i)}, {"tid", tid}, {"args", arguments}});
    };
    describe("process_name", 0, {{"name", one.name}});
    describe("process_sort_index", 0, {{"sort_index", i}});
    for (std::size_t k = 0; k < one.streams.size(); ++k) {
      const auto tid = static_cast<std::int64_t>(k);
      describe("thread_name", tid, {{"name", one.streams[k]}});
      describe("thread_sort_index", tid, {{"sort_index", tid}});
    }
  }

  void add_slice(std::size_t i, const TraceSlice& slice) {
    Json arguments = Json::object();
    for (const TraceArgument& argument : own_arguments(slice)) set_argument(arguments, argument);
    for (const TraceArgument& argument : trace_.works[at(slice.work)]) {
      set_argument(arguments, argument);
    }
    add({{"ph", "X"},
         {"name", trace_.names[at(slice.name)]},
         {"cat", name_of(slice.kind)},
         {"pid", pid(i)},
         {"tid", slice.stream},
         {"ts", in_microseconds(slice.start)},
         {"dur", in_microseconds(slice.end - slice.start)},
         {"args", std::move(arguments)}});
  }

  void add_sample(std::size_t i, const std::string& name, SimTime time, Json values) {
    add({{"ph", "C"},
         {"name", name},
         {"pid", pid(i)},
         {"ts", in_microseconds(time)},
         {"args", std::move(values)}});
  }

  // Series that stack are one picture, others have one each.
  void add_counters(std::size_t i, const TraceCounters& group) {
    if (group.stacks) {
      for (std::size_t k = 0; k < group.times.size(); ++k) {
        Json values = Json::object();
        for (std::size_t s = 0; s < group.series.size(); ++s) {
          values[group.series[s]] = static_cast<std::int64_t>(group.values[s][k]);
        }
        add_sample(i, group.name, group.times[k], std::move(values));
      }
      return;
    }
    for (std::size_t s = 0; s < group.series.size(); ++s) {
      std::optional<double> last;
      for (std::size_t k = 0; k < group.times.size(); ++k) {
        const double value = group.values[s][k];
        if (last == value) continue;
        add_sample(i, group.name + ": " + group.series[s], group.times[k],
                   {{group.bytes ? "bytes" : "percent", value}});
        last = value;
      }
    }
  }

  void add_flow(std::size_t k) {
    const TraceFlow& flow = trace_.flows[k];
    const TraceSlice& from = trace_.classes[at(flow.from_class)].slices[at(flow.from_slice)];
    const TraceSlice& to = trace_.classes[at(flow.to_class)].slices[at(flow.to_slice)];
    const auto point = [&](const char* phase, std::int32_t i, const TraceSlice& slice) {
      return Json{{"ph", phase},
                  {"name", "dependency"},
                  {"cat", "flow"},
                  {"id", k + 1},
                  {"pid", pid(at(i))},
                  {"tid", slice.stream},
                  {"ts", in_microseconds(slice.start)}};
    };
    add(point("s", flow.from_class, from));
    Json end = point("f", flow.to_class, to);
    end["bp"] = "e";  // of the slice that is there, not of the next
    add(end);
  }

  const StepTrace& trace_;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace

std::string chrome_trace(const StepTrace& trace) { return ChromeWriter(trace).write(); }

}  // namespace shardsim
