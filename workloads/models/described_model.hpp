// Steps of models that the families' descriptions know (families/families.hpp): the file is read,
// checked key by key, and its op graph built.
//
// A key of the file is asked for by the family's reader, known to change nothing
// (harmless_keys.hpp), or an error: what is not known may be what makes the model another.
// `shardsim model` reads a file likewise (config_keys.hpp), whatever else a step cannot do with it.
#pragma once

#include <string>
#include <vector>

#include "workloads/models/build.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim {

struct DescribedModel {
  models::ModelSpec spec;
  std::vector<std::string> notes;  // what of the file is left out: noise of routers
};

// Whether a family describes it; else it is one of our own programs. Throws InputError where it is
// neither, with the nearest known ones.
[[nodiscard]] bool is_described(const ModelConfig& config);
// Throws InputError for keys of consequence that are not known or not built: quantization, eager
// attention, two spellings of one key that contradict.
[[nodiscard]] DescribedModel read_described(const ModelConfig& config);
// Throws InputError, too, where a component has no op graph yet, or the sequence is longer than the
// model's positions.
[[nodiscard]] Workload build_described(const ModelConfig& config, const WorkloadOptions& options);

}  // namespace shardsim
