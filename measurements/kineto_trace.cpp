#include "measurements/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json.hpp"
#include "base/json_list.hpp"
#include "measurements/collective_measurement.hpp"

namespace shardsim {
namespace {

constexpr std::string_view events_key = "traceEvents";

// In elements and microseconds: beyond them a figure is no measurement.
constexpr std::int64_t most_traced_elements = std::int64_t{1} << 48;
constexpr double longest_time = 1e15;

// Of the time of a kernel that others may have without its being shared: clocks are read before and
// after kernels, so that neighbours seem to touch.
constexpr double negligible_part = 0.01;

// Of NCCL and RCCL: "ncclDevKernel_..." since 2.19, "ncclKernel_..." before, on symmetric memory
// "ncclSymkDevKernel_..." since 2.27, "mscclKernel_..." of RCCL's MSCCL.
bool is_of_nccl(const std::string& name) {
  return name.starts_with("nccl") || name.starts_with("mscclKernel");
}

// A number as it is or as text: External id has been both.
std::string identifier(const JsonReader& json) {
  return json.is_string() ? json.string() : json.json().dump();
}

double microseconds_of(const JsonReader& json) {
  const double time = json.number();
  if (!(time >= 0 && time <= longest_time)) {
    json.fail(fmt::format("{} is no time in microseconds", time));
  }
  return time;
}

// "[0, 1, 2]", "[0, 1, ...]", or a list.
RankList list_of(const JsonReader& json, std::int64_t most) {
  RankList list;
  if (json.is_array()) {
    for (const JsonReader& member : json.elements()) list.ranks.push_back(member.integer(0, most));
    return list;
  }
  const std::string text = json.string();
  if (text.empty()) return list;
  const auto refuse = [&] { json.fail(fmt::format("\"{}\" is no list of numbers", text)); };
  if (text.front() != '[' || text.back() != ']') refuse();
  for (std::size_t at = 1; at + 1 < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size() - 1);
    std::string_view word(text.data() + at, end - at);
    while (word.starts_with(' ')) word.remove_prefix(1);
    at = end + 1;
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word == "...") {
      list.is_cut = true;
    } else if (error != std::errc() || stop != word.data() + word.size() || number < 0 ||
               number > most || list.is_cut) {
      refuse();
    } else {
      list.ranks.push_back(number);
    }
  }
  return list;
}

bool are_equal(const std::vector<std::int64_t>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::not_equal_to<>()) == numbers.end();
}

// Of the operation or of the kernel. Nothing where it is not all there.
std::optional<CollectiveRecord> read_record(const JsonReader& args) {
  CollectiveRecord record;
  const auto name = args.find("Collective name");
  const auto dtype = args.find("dtype");
  const auto in = args.find("In msg nelems");
  const auto out = args.find("Out msg nelems");
  const auto size = args.find("Group size");
  if (!name || !dtype || !in || !out || !size) return std::nullopt;
  record.name = name->string();
  record.dtype = dtype->string();
  record.in_elements = in->integer(0, most_traced_elements);
  record.out_elements = out->integer(0, most_traced_elements);
  record.group_size = size->integer(1, most_ranks);
  if (const auto group = args.find("Process Group Name")) record.group = identifier(*group);
  if (const auto ranks = args.find("Process Group Ranks")) {
    record.ranks = list_of(*ranks, most_ranks);
  }
  for (const char* key : {"In split size", "Out split size"}) {
    const auto splits = args.find(key);
    if (splits && !are_equal(list_of(*splits, most_traced_elements).ranks)) {
      record.has_even_splits = false;
    }
  }
  if (const auto sequence = args.find("Seq")) {
    record.sequence = sequence->integer(0, std::numeric_limits<std::int64_t>::max());
  }
  return record;
}

// A kernel of NCCL's as it is in the file.
struct Launched {
  TracedCollective collective;
  bool is_explained = false;
  std::string operation;  // External id; empty: not said
};

struct Span {
  double begin = 0;
  double end = 0;
};

// Disjoint, in order.
std::vector<Span> united(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (!result.empty() && span.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, span.end);
    } else {
      result.push_back(span);
    }
  }
  return result;
}

bool is_shared(const TracedCollective& kernel, const std::vector<Span>& others) {
  const double end = kernel.begin + kernel.duration;
  auto at = std::partition_point(others.begin(), others.end(),
                                 [&](const Span& span) { return span.end <= kernel.begin; });
  double shared = 0;
  for (; at != others.end() && at->begin < end; ++at) {
    shared += std::min(end, at->end) - std::max(kernel.begin, at->begin);
  }
  return shared > negligible_part * kernel.duration;
}

// In order of their begin: the earlier one that ends last shares the most.
void mark_those_beside(std::vector<Launched>& kernels) {
  const auto mark = [](TracedCollective& a, TracedCollective& b) {
    const double shared =
        std::min(a.begin + a.duration, b.begin + b.duration) - std::max(a.begin, b.begin);
    if (shared > negligible_part * a.duration) a.is_beside_collectives = true;
    if (shared > negligible_part * b.duration) b.is_beside_collectives = true;
  };
  std::map<std::int64_t, TracedCollective*> last_to_end;  // by device
  for (Launched& kernel : kernels) {
    TracedCollective& now = kernel.collective;
    TracedCollective*& before = last_to_end[now.device];
    if (before != nullptr) mark(*before, now);
    if (before == nullptr || now.begin + now.duration > before->begin + before->duration) {
      before = &now;
    }
  }
}

class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& file) {
    trace_.file = file;
    const Json rest =
        parse_json_list(text, file, events_key, [&](const Json& event, std::size_t number) {
          read_event({event, {file, fmt::format("/{}/{}", events_key, number)}});
        });
    const JsonReader json(rest, {file, ""});
    static_cast<void>(json.at(events_key).elements());
    if (const auto info = json.find("distributedInfo")) read_info(*info);
  }

  [[nodiscard]] RankTrace take() {
    std::stable_sort(kernels_.begin(), kernels_.end(), [](const Launched& a, const Launched& b) {
      return a.collective.begin < b.collective.begin;
    });
    mark_those_beside(kernels_);
    std::map<std::string, std::size_t> launches;
    for (const Launched& kernel : kernels_) ++launches[kernel.operation];
    for (auto& [device, spans] : others_) spans = united(std::move(spans));
    for (Launched& kernel : kernels_) {
      explain(kernel);
      if (!kernel.is_explained) {
        ++trace_.unexplained;
        continue;
      }
      TracedCollective& collective = kernel.collective;
      collective.is_one_of_several = !kernel.operation.empty() && launches.at(kernel.operation) > 1;
      const auto others = others_.find(collective.device);
      collective.is_beside_other_kernels =
          others != others_.end() && is_shared(collective, others->second);
      trace_.collectives.push_back(std::move(collective));
    }
    return std::move(trace_);
  }

 private:
  void read_event(const JsonReader& event) {
    const auto category = event.find("cat");
    if (!category || !category->is_string()) return;
    const std::string kind = category->string();
    if (kind == "kernel") {
      read_kernel(event);
    } else if (kind == "cpu_op" && event.at("name").string() == "record_param_comms") {
      read_operation(event);
    }
  }

  void read_kernel(const JsonReader& event) {
    const std::string name = event.at("name").string();
    const double begin = microseconds_of(event.at("ts"));
    const double duration = microseconds_of(event.at("dur"));
    const auto device = event.find("pid");
    const std::int64_t number =
        device && device->is_number() ? device->integer(0, most_ranks) : std::int64_t{0};
    if (!is_of_nccl(name)) {
      others_[number].push_back({begin, begin + duration});
      return;
    }
    Launched kernel;
    kernel.collective.kernel = name;
    kernel.collective.begin = begin;
    kernel.collective.duration = duration;
    kernel.collective.device = number;
    if (const auto args = event.find("args")) {
      if (auto record = read_record(*args)) {
        kernel.collective.record = std::move(*record);
        kernel.is_explained = true;
      }
      if (const auto id = args->find("External id")) kernel.operation = identifier(*id);
    }
    kernels_.push_back(std::move(kernel));
  }

  void read_operation(const JsonReader& event) {
    const auto args = event.find("args");
    if (!args) return;
    const auto id = args->find("External id");
    if (!id) return;
    if (auto record = read_record(*args)) operations_.emplace(identifier(*id), std::move(*record));
  }

  // By the operation that launched it; the kernel itself need not say the place in the sequence.
  void explain(Launched& kernel) const {
    const auto found = operations_.find(kernel.operation);
    if (kernel.operation.empty() || found == operations_.end()) return;
    CollectiveRecord& record = kernel.collective.record;
    if (!kernel.is_explained) record = found->second;
    if (!record.sequence) record.sequence = found->second.sequence;
    kernel.is_explained = true;
  }

  void read_info(const JsonReader& info) {
    if (const auto rank = info.find("rank")) trace_.rank = rank->integer(0, most_ranks);
    if (const auto size = info.find("world_size")) {
      trace_.world_size = size->integer(1, most_ranks);
    }
    if (const auto version = info.find("nccl_version")) trace_.nccl_version = identifier(*version);
    const auto groups = info.find("pg_config");
    if (!groups) return;
    for (const JsonReader& group : groups->elements()) {
      const auto name = group.find("pg_name");
      const auto ranks = group.find("ranks");
      if (!name || !ranks) continue;
      RankList list = list_of(*ranks, most_ranks);
      if (!list.is_cut) trace_.groups.emplace(identifier(*name), std::move(list.ranks));
    }
  }

  RankTrace trace_;
  std::vector<Launched> kernels_;
  std::map<std::string, CollectiveRecord> operations_;  // record_param_comms by External id
  std::map<std::int64_t, std::vector<Span>> others_;    // kernels of other libraries, by device
};

}  // namespace

bool is_trace(std::string_view text) {
  return text.find(fmt::format("\"{}\"", events_key)) != std::string_view::npos;
}

RankTrace read_trace(std::string_view text, const std::string& file) {
  return TraceReader(text, file).take();
}

}  // namespace shardsim
