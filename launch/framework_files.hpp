// One kind of file: its format, its keys, and what several keys are together. To add one: a source
// with these functions, a table of keys, and its row in framework_files.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/formats/formats.hpp"
#include "launch/launch.hpp"

namespace shardsim {

using Notes = std::vector<std::string>;

struct FrameworkFile {
  std::string_view name;
  std::string_view file;
  std::string_view meaning;
  std::string_view strategy;  // the experiment's
  KeyTable keys;
  KeyFile (*read)(const std::string& text, const std::string& file) = nullptr;  // null: arguments
  // What the keys of the file and the overrides name and do not say themselves: null, nothing.
  std::vector<Entry> (*expand)(std::vector<Entry> entries, const std::string& text,
                               const std::string& file) = nullptr;
  // Programs that a file launches which are something else, with what they are.
  std::vector<std::pair<std::string_view, std::string_view>> other_programs = {};
  // What facts come to; those that are fields by their names are copied before.
  void (*to_experiment)(Facts& facts, const LaunchOptions& options, Notes& notes,
                        Json& experiment) = nullptr;
  // The other way, from an experiment with every default filled in, and the model's config.json.
  // Null: such files are not written.
  void (*from_experiment)(const Json& resolved, const Json& config, const Place& place,
                          Facts& facts) = nullptr;
  std::string (*print)(const std::vector<WrittenKey>& keys, const FileHead& head) = nullptr;
  bool has_comments = true;  // false: nor has it model, mesh and sequence
  // Fields of an experiment that the file leaves to who reads it.
  std::vector<std::string_view> elsewhere = {};
};

[[nodiscard]] const std::vector<FrameworkFile>& framework_files();
// Throws InputError with those that are known.
[[nodiscard]] const FrameworkFile& framework_file(std::string_view name);

[[nodiscard]] FrameworkFile megatron_file();
[[nodiscard]] FrameworkFile torchtitan_file();
[[nodiscard]] FrameworkFile deepspeed_file();
[[nodiscard]] FrameworkFile maxtext_file();
[[nodiscard]] FrameworkFile pax_file();

// Their tables of keys.
[[nodiscard]] KeyTable megatron_keys();
[[nodiscard]] KeyTable torchtitan_keys();
[[nodiscard]] KeyTable deepspeed_keys();
[[nodiscard]] KeyTable maxtext_keys();
[[nodiscard]] KeyTable pax_keys();
// Of the longest tables the parts.
[[nodiscard]] const std::vector<HarmlessKeys>& megatron_harmless_keys();
[[nodiscard]] const std::vector<HarmlessKeys>& megatron_newer_harmless_keys();
[[nodiscard]] const std::vector<RefusedKey>& megatron_refused_keys();
[[nodiscard]] const std::vector<HarmlessKeys>& maxtext_harmless_keys();
[[nodiscard]] const std::vector<HarmlessKeys>& maxtext_newer_harmless_keys();
[[nodiscard]] const HarmlessKeys& maxtext_image_keys();
[[nodiscard]] const std::vector<RefusedKey>& maxtext_refused_keys();

// Axes by what they are for, of more than one device: {"pp": 4, "dp": 2}, in the mesh's order.
// Throws InputError for two axes of one role where `roles` has the role, or one that it lacks.
struct NamedRole {
  AxisRole role;
  std::string_view name;
};
void add_mesh_facts(const Json& mesh, const Json& roles, const std::vector<NamedRole>& names,
                    const Place& place, Facts& facts);

// An axis that goes over so many slices of TPUs (DCN meshes of MaxText and Pax). Other machines,
// where one is named, have nodes, which the mesh's axes fill from the last on.
void set_slices(const std::string& axis, std::int64_t slices, const LaunchOptions& options,
                Json& experiment);

// "microbatches" or "microbatch" of a batch over so many shares of it.
struct BatchSize {
  std::int64_t batch = 1;
  std::int64_t microbatches = 1;
};
// Throws InputError where `batch` is no multiple of what is computed at once.
[[nodiscard]] BatchSize batch_size(const Facts& facts, std::int64_t microbatch,
                                   std::int64_t shares);

// The integer field of a resolved experiment; `otherwise` where it is not there.
[[nodiscard]] std::int64_t integer_at(const Json& json, std::string_view path,
                                      std::int64_t otherwise);
// The field at a dotted path; null: not there.
[[nodiscard]] Json json_at(const Json& json, std::string_view path);

// What is left for one axis of the devices by the others, whose degrees are `facts_of_others`.
// Throws InputError where it does not divide, at the first of these that the file says.
[[nodiscard]] std::int64_t rest_of_devices(const Facts& facts, std::int64_t others,
                                           std::string_view others_text,
                                           const std::vector<std::string_view>& facts_of_others);

}  // namespace shardsim
