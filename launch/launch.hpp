// The files that people launch their trainings with, as experiments, and experiments as such files.
//
//   Imported i = import_launch("megatron", text, "train.sh", {.devices = 64});
//   i.experiment                                  // as `run` takes it
//   write_launch(experiment, "torchtitan", {})    // the text of a .toml
//
// What is written is read again, and must come to the experiment that it was written of: what a
// format cannot say is an InputError where the run would be another, else a note.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_json.hpp"
#include "experiments/experiment.hpp"
#include "launch/keys.hpp"

namespace shardsim {

// What a file does not say itself.
struct LaunchOptions {
  std::optional<std::int64_t> devices = std::nullopt;
  OwnedJson model = OwnedJson();  // in place of the file's; null: none
  std::string mesh = {};          // of DeepSpeed: "dp=8,tp=2"
  std::optional<std::int64_t> sequence = std::nullopt;
  std::string machine = {};
  std::vector<std::string> overrides = {};  // "key=value" in the file's own words
  std::vector<std::string> leave_out = {};
  std::vector<Setting> settings = {};  // fields of the experiment, whatever the file says
  bool lists_refused = false;  // refused and unknown keys are listed, not thrown; no experiment
};

struct Imported {
  std::string framework;
  std::string file;
  OwnedJson experiment;  // null where refused keys are listed
  std::vector<KeyUse> keys;
  std::vector<std::string> notes;
};

[[nodiscard]] Imported import_launch(std::string_view name, const std::string& text,
                                     const std::string& file, const LaunchOptions& options);

// {"schema": "shardsim/import/1", "counts": {"used": n, ...}, "keys": [...], "experiment": {...}}
[[nodiscard]] Json imported_to_json(const Imported& imported);
[[nodiscard]] std::string imported_text(const Imported& imported);

struct WrittenLaunch {
  std::string text;
  LaunchOptions options;  // with which it is read again
  std::vector<std::string> notes;
};

// `devices_of_node`: how many a launcher starts on one.
[[nodiscard]] WrittenLaunch write_launch(const Experiment& experiment, std::string_view name,
                                         std::int64_t devices_of_node);

struct LaunchFramework {
  std::string_view name;
  std::string_view file;  // what its files are called: "megatron.args"
  std::string_view meaning;
  bool written = true;  // by write_launch
};
[[nodiscard]] const std::vector<LaunchFramework>& launch_frameworks();

}  // namespace shardsim
