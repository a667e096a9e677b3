#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "reports/reshard_report.hpp"

#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "command.hpp"
#include "output.hpp"

namespace shardsim {
namespace {

const Manual manual = {
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
constexpr std::array flags{
    Flag{"shape", "/shape", "SHAPE", "of the array: 4096x14336"},
    Flag{"dtype", "/dtype", "DTYPE", "of the array; bf16"},
    Flag{"from-mesh", "/from/mesh", "MESH", "axes and sizes: fsdp=8,tp=1"},
    Flag{"from", "/from/spec", "SPEC", "PartitionSpec on it: 'fsdp, tp'"},
    Flag{"to-mesh", "/to/mesh", "MESH", "the mesh to go to"},
    Flag{"to", "/to/spec", "SPEC", "PartitionSpec on that one: 'None, (dp, tp)'"},
    Flag{"devices", "/devices", "WHICH",
         "disjoint: the target's devices follow the source's, on a torus on another slice; shared: "
         "they are the same"},
    Flag{"from-devices", "/from/devices", "LIST",
         "in place of --devices: numbers by position of the mesh, 0-3,8"},
    Flag{"to-devices", "/to/devices", "LIST", "the same of the mesh to go to"},
    Flag{"machine", "/machine", "NAME", "hardware profile, or a path to one"},
    Flag{"calibration", "/calibration", "NAME",
         "of collectives, in place of the machine's: one that is shipped, or what calibrate wrote"},
    Flag{"topology", "/topology", "SHAPE",
         "slice of a torus, in chips: 4x4x4, 4x4x8_twisted, 4x4x4_open"},
    Flag{"from-topology", "/from/topology", "SHAPE", "of the source's own slice"},
    Flag{"to-topology", "/to/topology", "SHAPE", "of the target's own slice"},
};

void apply_flags(const Given& given, const std::string& file, Json& document) {
  for (const Flag& flag : flags) {
    const Words values = given.all(flag.name);
    if (values.empty()) continue;
    if (values.size() > 1) throw UsageError(fmt::format("--{} is given twice", flag.name));
    std::string value = values[0];
    const bool names_files =
        flag.name == std::string("machine") || flag.name == std::string("calibration");
    const bool is_path = names_files && std::filesystem::path(value).extension() == ".json";
    // A path on the command line is relative to where the user is, one in a file to the file.
    if (is_path) {
      const auto directory = std::filesystem::absolute(file).parent_path();
      value = std::filesystem::absolute(value).lexically_relative(directory).string();
    }
    try {
      document[Json::json_pointer(flag.path)] = value;
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
  if (files.empty()) document["name"] = "array";
  return read_reshard(document, file);
}

const std::vector<std::string> formats = {"text", "json", "csv"};

void add_options(po::options_description& options) {
  add_flags(options, flags);
  add_output_options(options, formats);
}

int run(const Given& given) {
  const auto outputs = read_outputs(given, formats);
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
  return {"reshard", "from one mesh and sharding to another: steps, time, memory", manual,
          add_options, run};
}

}  // namespace shardsim
