// What predictions were, in a file for a repository: "shardsim/baseline/1".
//
//   { "schema": "shardsim/baseline/1",
//     "limits": {"*": {"step_time_s": "+3 %"}},          // or "limits.json", a file beside it
//     "experiments": {
//       "fsdp": {
//         "file": "../llama.json",                       // relative to this file
//         "made_from": {"experiment": DIGEST, "model": DIGEST, "machine": DIGEST,
//                       "calibration": DIGEST, "shardsim": "0.1.0"},
//         "settings": {"workload": {...}, "mesh": {"fsdp": 8}},  // resolved
//         "step_time_s": 0.863, ..., "peak_bytes": 28991029248,
//         "by_category": {"activations": 1234, ...},
//         "communication": {"all-gather over fsdp": {"calls": 58, "wire_bytes": 5153960755}},
//         "collectives": [{"kind": "all-gather", "over": "fsdp", ..., "calls": 28}],
//         "shardings": {"lm_head.weight": "P(fsdp, None)"} } } }
//
// Everything is sorted and has a line of its own where it can change alone, so that a diff reads as
// what became of the cost. A file without experiments holds budgets ("shardsim/limits/1" is the
// same with nothing else in it). What shardsim writes it reads back to the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_json.hpp"
#include "base/units.hpp"
#include "checks/limits.hpp"

namespace shardsim {

// Digests (checks/digest.hpp) of what a prediction depends on. Empty: there is none of it.
struct MadeFrom {
  std::string experiment;   // as resolved
  std::string model;        // its description, tree or program
  std::string machine;      // its profile without calibrations
  std::string calibration;  // the experiment's, else all that the profile names
  std::string shardsim;     // version
  friend bool operator==(const MadeFrom&, const MadeFrom&) = default;
};

struct Traffic {
  std::int64_t calls = 0;
  Bytes wire{0};  // sent by one device
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// Collectives that are alike (reports/step/explanation.hpp), in one place of the model.
struct RecordedCollective {
  std::string kind;
  std::string over;  // axes
  std::string dtype;
  Bytes payload{0};
  std::string where;  // "model.layers.{}, backward"
  std::int64_t calls = 0;
  friend bool operator==(const RecordedCollective&, const RecordedCollective&) = default;
};

struct Recorded {
  std::string file;                  // relative to the baseline; empty: flags say it all
  std::string folder;                // of dumps, in place of a file: `name` is the module's
  std::string name;                  // in the file
  std::vector<std::string> options;  // of the command line: "--machine=dgx-h100"
  MadeFrom made_from;
  OwnedJson settings;  // the experiment as resolved; sections too long for a line as digests

  std::map<std::string, double> values;             // by metric, those without parts
  std::map<std::string, std::int64_t> by_category;  // at the peak
  std::map<std::string, Traffic> communication;     // "all-gather over fsdp"
  std::vector<RecordedCollective> collectives;      // those that send most, sorted
  // Of parameters as stored, or of a StableHLO program's first 400 arguments: "P(fsdp, None)".
  // In the file as lines of several (member_names.hpp).
  std::map<std::string, std::string> shardings;
  std::map<std::string, std::int64_t> peak_buffers;  // the largest
  std::vector<std::string> unmatched_rules;

  // What names an experiment and has no figures was written by hand: for budgets.
  [[nodiscard]] bool holds_figures() const;
  friend bool operator==(const Recorded& a, const Recorded& b);
};

// Metrics that a baseline holds beside by_category and communication, in the order of the file.
[[nodiscard]] const std::vector<std::string>& recorded_values();

struct Baseline {
  std::string file;
  OwnedJson stated_limits;  // as written: an object, the path of a file beside it, or null
  Limits limits;
  std::map<std::string, Recorded> experiments;  // by name
  bool is_limits = false;                       // "shardsim/limits/1": not to be written over
};

// Throws InputError with the place. Reads no other file: limits in a file beside it are left to
// load_baseline.
[[nodiscard]] Baseline read_baseline(std::string_view text, const std::string& file);
[[nodiscard]] Baseline load_baseline(const std::string& path);
[[nodiscard]] std::string baseline_text(const Baseline& baseline);

}  // namespace shardsim
