#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "reports/specs/reshard_report.hpp"

#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "command.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual reshard_manual = {
    "reshard [FILE] [OPTION...]",
    "From one sharding and mesh to another: what it takes directly, every device fetching its own\n"
    "shard, and by way of an intermediate sharding, in bytes, time and memory; which is better "
    "and\n"
    "what pathways' find_intermediate_sharding says. A FILE can hold a whole parameter tree; "
    "flags\n"
    "replace what it says.",
    {"shardsim reshard --shape 4096x14336 --dtype bf16 --machine dgx-h100 --devices disjoint \\\n"
     "               --from-mesh fsdp=8,tp=1 --from 'fsdp, tp' --to-mesh dp=2,tp=4 --to 'None, tp'",
     "shardsim reshard --shape 8192x8192 --machine tpu-v5e --devices shared \\\n"
     "               --from-mesh fsdp=16 --from fsdp --to-mesh fsdp=4,tp=4 --to 'fsdp, tp'",
     "shardsim reshard examples/reshard/trainer-to-sampler.json",
     "shardsim reshard examples/reshard/trainer-to-sampler.json --format json -o reshard.json"}};

// Paths are JSON pointers.
constexpr std::array reshard_flags{
    Flag{"shape", "/shape", "SHAPE", "of the array: 4096x14336; '' of a scalar"},
    Flag{"dtype", "/dtype", "DTYPE", "of the array; bf16"},
    Flag{"tree", "/tree", "FILE",
         "in place of --shape: a parameter tree, or an experiment, whose parameters lie as its "
         "strategy says"},
    Flag{"variant", "/variant", "NAME", "of an experiment that has several"},
    Flag{"from-mesh", "/from/mesh", "MESH", "axes and sizes: fsdp=8,tp=1"},
    Flag{"from", "/from/spec", "SPEC", "PartitionSpec on it: 'fsdp, tp'"},
    Flag{"from-strategy", "/from/strategy", "NAME",
         "of a tree, in place of --from: fsdp, ..., or a rule system"},
    Flag{"from-memory", "/from/memory", "WHERE", "host: the arrays lie in the memory of hosts"},
    Flag{"to-mesh", "/to/mesh", "MESH", "the mesh to go to"},
    Flag{"to", "/to/spec", "SPEC", "PartitionSpec on that one: 'None, (dp, tp)'"},
    Flag{"to-strategy", "/to/strategy", "NAME", "of a tree, in place of --to"},
    Flag{"to-memory", "/to/memory", "WHERE",
         "host: every device's shard goes to its host; checkpoint: every piece once. Without "
         "--to-mesh it lies as it did"},
    Flag{"devices", "/devices", "WHICH",
         "disjoint: the target's devices follow the source's, on a torus on another slice; shared: "
         "they are the same"},
    Flag{"from-devices", "/from/devices", "LIST",
         "in place of --devices: numbers by position of the mesh, 0-3,8"},
    Flag{"to-devices", "/to/devices", "LIST", "the same of the mesh to go to"},
    Flag{"machine", "/machine", "NAME",
         "hardware profile, or a path to one; without it there are no times"},
    Flag{"calibration", "/calibration", "NAME",
         "of collectives, in place of the machine's: one that is shipped, or what calibrate wrote"},
    Flag{"topology", "/topology", "SHAPE",
         "slice of a torus, in chips: 4x4x4, 4x4x8_twisted, 4x4x4_open"},
    Flag{"from-topology", "/from/topology", "SHAPE", "of the source's own slice"},
    Flag{"to-topology", "/to/topology", "SHAPE", "of the target's own slice"},
};

// A path on the command line is relative to where the user is, one in a file to the file.
std::string from_folder_of(const std::string& file, const std::string& value) {
  const auto directory = std::filesystem::absolute(file).parent_path();
  return std::filesystem::absolute(value).lexically_relative(directory).string();
}

Json value_of(const Flag& flag, const std::string& file, const std::string& value) {
  const std::string name = flag.name;
  const bool ends_in_json = std::filesystem::path(value).extension() == ".json";
  const bool is_path =
      name == "tree" || ((name == "machine" || name == "calibration") && ends_in_json);
  if (is_path) return from_folder_of(file, value);
  if (std::string(flag.path).ends_with("/strategy")) {
    Json object = Json::parse(value, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) return object;
  }
  return value;
}

void apply_flags(const Given& given, const std::string& file, Json& document) {
  for (const Flag& flag : reshard_flags) {
    const Words values = given.all(flag.name);
    if (values.empty()) continue;
    if (values.size() > 1) throw UsageError(fmt::format("--{} is given twice", flag.name));
    try {
      document[Json::json_pointer(flag.path)] = value_of(flag, file, values[0]);
    } catch (const Json::exception&) {
      throw InputError({file, ""}, fmt::format("--{} has no place in it", flag.name));
    }
  }
}

ReshardExperiment read_given(const Given& given) {
  const Words files = given.all("operand");
  if (files.size() > 1) throw UsageError("one file at a time");
  const std::string file = files.empty() ? "command line" : files[0];
  Json document = files.empty() ? Json::object() : load_json(file, FileKind::reshard);
  apply_flags(given, file, document);
  if (document.empty())
    throw UsageError("nothing to reshard: name a file, or give --shape and so on");
  if (files.empty()) {
    const bool is_tree = given.has("tree");
    document["name"] =
        is_tree ? std::filesystem::path(given.all("tree")[0]).stem().string() : "array";
  }
  return read_reshard(document, file);
}

const std::vector<std::string> reshard_formats = {"text", "json", "csv"};

void add_reshard_options(po::options_description& options) {
  add_flags(options, reshard_flags);
  add_output_options(options, reshard_formats);
}

int run_reshard(const Given& given) {
  const auto outputs = read_outputs(given, reshard_formats);
  const ReshardPrediction prediction = predict_reshard(read_given(given));
  write(outputs, [&](const Output& output) {
    if (output.format == "json") return reshard_json(prediction);
    return output.format == "csv" ? reshard_csv(prediction)
                                  : reshard_text(prediction, output.width);
  });
  return exit_done;
}

}  // namespace

Verb reshard_verb() {
  return {"reshard", "from one mesh and sharding to another: steps, time, memory", reshard_manual,
          add_reshard_options, run_reshard};
}

}  // namespace shardsim
