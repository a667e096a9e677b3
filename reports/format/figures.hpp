// The figures of a prediction: every number that any format reports is derived here, once, so that
// all formats agree.
//
//   Figures f = figures_of(prediction);
//   f.process - f.capacity    what is missing where it does not fit
//   f.compute + f.contention + f.exposed + f.idle == f.step
//
// A plan with several device classes (pipeline stages) is summed up by two of them: memory is that
// of the class with the largest peak, times are those of the class that computes longest. The other
// classes are in `classes`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/owned_json.hpp"
#include "base/units.hpp"
#include "experiments/experiment.hpp"
#include "plan/plan.hpp"
#include "reports/evidence/evidence.hpp"
#include "reports/format/not_counted.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {

using CategoryBytes = std::array<Bytes, buffer_categories>;

// The order in which reports list categories: what lives between steps first.
inline constexpr std::array<BufferCategory, buffer_categories> categories_in_reports{
    BufferCategory::parameters,          BufferCategory::gradients,   BufferCategory::optimizer,
    BufferCategory::activations,         BufferCategory::temporaries, BufferCategory::communication,
    BufferCategory::gathered_parameters, BufferCategory::inputs,      BufferCategory::cache};

struct ClassFigures {
  std::string name;
  std::int64_t devices = 1;
  Bytes peak{0};
  Bytes allocated{
      0};  // as an allocator counts it, what it reserves, and all that the process holds
  Bytes reserved{0};
  Bytes process{0};
  CategoryBytes by_category{};
  SimTime compute{0};
  SimTime contention{0};  // of kernels, with what runs beside them
  SimTime communication{0};
  SimTime exposed{0};
  SimTime idle{0};
  TimeByPart parts{};                 // the four by cause: they add up to the step
  std::vector<LinkUsage> links = {};  // where they were kept
};

[[nodiscard]] inline double seconds(SimTime time) { return to_seconds(time).count(); }

// A suggestion, and whether what is not counted may not fit beside it.
struct SuggestedChange {
  Suggestion change;
  bool narrowly = false;
};

struct Figures {
  std::string name;
  std::string model;
  std::string step_kind;  // "train", "forward", "program"
  std::string strategy;
  std::string mesh;     // "data=2,fsdp=4"
  std::string machine;  // "dgx-h100"
  std::string device;   // "H100 SXM5 80 GB"
  std::string extent;   // "8 devices, 1 node", "64 devices, 4x4x4"
  std::int64_t devices = 1;
  std::int64_t parameters = 0;
  // What the step works on, as people ask for it: {"batch", "64"}, {"sequence", "8,192"},
  // {"microbatches", "1"}, {"rematerialization", "none"}; empty for programs.
  std::vector<std::pair<std::string, std::string>> workload;
  std::int64_t tokens_per_step = 0;  // 0 where tokens have no meaning
  std::int64_t images_per_step = 0;  // 0 where a step has tokens, and of programs

  SimTime step{0};
  SimTime compute{0};
  SimTime contention{0};  // of kernels, with what runs beside them
  SimTime communication{0};
  SimTime exposed{0};
  SimTime idle{0};
  TimeByPart parts{};  // the four by cause: they add up to the step
  // Of a pipeline: the time in which a device neither computes nor communicates, on average over
  // all devices. It waits for other stages.
  std::optional<SimTime> bubble = {};
  std::optional<double> tokens_per_second_per_device;
  Flops model_flops{0};       // what `mfu` counts; 0 where it is not known
  std::optional<double> mfu;  // causal attention counts with the half that is needed
  std::optional<double> mfu_full_attention;

  Bytes capacity{0};
  Bytes peak{0};
  Bytes allocated{
      0};  // as an allocator counts it, what it reserves, and all that the process holds
  Bytes reserved{0};
  Bytes process{0};
  bool fits = false;
  NotCounted not_counted;  // that must fit beside the peak
  Bytes on_host{0};        // of a device, in the memory of its host
  Bytes on_a_host{0};      // of all devices of one
  std::optional<Bytes> host_capacity = {};
  CategoryBytes by_category{};  // at the peak
  SimTime peak_time{0};
  std::string peak_task;
  std::vector<PeakBuffer> peak_buffers;  // largest first

  double memory_balance = 1;
  double compute_balance = 1;
  double link_balance = 1;
  Bytes wire_bytes_per_device{0};  // sum over `communication_rows`
  std::vector<CommunicationRow> communication_rows;
  std::vector<ClassFigures> classes;
  std::vector<Padding> padding;
  Bytes padding_per_device{0};  // sum over `padding`
  std::vector<std::string> warnings;
  std::vector<std::string> notes;
  OwnedJson experiment;                      // as resolved
  std::optional<Situation> situation;        // where the strategy says what its stack launches
  std::optional<StepEvidence> known_error;   // of the step time; none: such were not measured
  std::vector<SuggestedChange> suggestions;  // where it does not fit

  [[nodiscard]] Bytes of(BufferCategory category) const {
    return by_category[static_cast<std::size_t>(category)];
  }
  // It fits, but may not with what is not counted.
  [[nodiscard]] bool fits_narrowly() const { return fits && process + not_counted.high > capacity; }
  // Part of the step, 0 for an empty one.
  [[nodiscard]] double share(SimTime time) const;
};

// Of the step times of all: a sentence, or one for each with other words; empty: none is known.
[[nodiscard]] std::string known_error_text(const std::vector<Figures>& all);

[[nodiscard]] Figures figures_of(const Prediction& prediction);
[[nodiscard]] std::vector<Figures> figures_of(const std::vector<Prediction>& predictions);

// "compute: forward", "contention", "exposed: data"; as a key "compute_forward_s", "contention_s".
[[nodiscard]] std::string label_of(const TimePartRow& row);
[[nodiscard]] std::string key_of(const TimePartRow& row);

// "gathered_parameters", as keys and columns; "gathered parameters", for people.
[[nodiscard]] std::string category_key(BufferCategory category);
[[nodiscard]] std::string category_label(BufferCategory category);
// The categories that are not empty, largest first: "89.8 GiB optimizer, 15.0 GiB parameters".
[[nodiscard]] std::string largest_categories(const Figures& figures);

// "batch 64, sequence 8,192, microbatches 1, rematerialization none"; empty for programs.
[[nodiscard]] std::string workload_line(const Figures& figures);

// A plain number with all its digits: the same text in CSV and in the attributes of the HTML page.
[[nodiscard]] std::string plain_number(double value);

}  // namespace shardsim
