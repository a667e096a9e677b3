// Experiments of Pax: classes of constants, each made of others.
//
//   class Mine(lm_cloud.LmCloudSpmd32B):      of the file, its bases there or known here
//     ICI_MESH_SHAPE = [1, 64, 4]
//     HIDDEN_DIMS = MODEL_DIMS * 4            of the constants before it
//
// What the method task() does is known of paxml's own classes ("task.optimizer"); of another one
// statements that change no cost are passed over, and any other is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/formats/formats.hpp"

namespace shardsim {

struct PaxClass {
  std::string_view name;
  std::string_view bases;  // separated by blanks, as Python looks them through
  bool registered = false;
  std::string_view constants;  // JSON; of dotted names the last part: "SAVE_NOTHING"
};

// paxml's own, by file.
[[nodiscard]] const std::vector<PaxClass>& pax_base_classes();
[[nodiscard]] const std::vector<PaxClass>& pax_c4_classes();
// Those that are experiments.
[[nodiscard]] std::vector<std::string> pax_experiment_names();

// A class of a file: its constants, bases and where they stand. Is the text Python at all?
struct PaxFileClass {
  std::string name;
  std::vector<std::string> bases;
  bool registered = false;
  std::vector<Entry> constants;
};
[[nodiscard]] bool is_pax_python(const std::string& text);
// Throws InputError at the line: no expression of constants, or a task() that is not read.
[[nodiscard]] std::vector<PaxFileClass> read_pax_python(const std::string& text,
                                                        const std::string& file);

// What the experiment says, from its own constants to those of its last base, each once. Throws
// InputError for a name that is unknown, with the nearest.
[[nodiscard]] std::vector<Entry> pax_constants(const std::string& experiment,
                                               const std::vector<PaxFileClass>& classes,
                                               const Place& place);

}  // namespace shardsim
