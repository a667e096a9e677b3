#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"
#include "base/version.hpp"

#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "specs EXPERIMENT [OPTION...]",
    "Prints how every parameter lies on the mesh: as stored between steps and as the operations\n"
    "read it, what one device holds of it, and which rule said so. Needs no machine.",
    {"shardsim specs examples/rules.json",
     "shardsim specs examples/llama-3.1-8b-8xh100.json --name fsdp+tp --format csv",
     "shardsim specs --model gpt2 --batch 8 --sequence 1024 --mesh fsdp=4 --strategy fsdp"}};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Bytes total(const CompiledStep& step, Bytes ParameterSharding::*one) {
  Bytes sum;
  for (const ParameterSharding& row : step.parameters) sum += row.*one * row.instances;
  return sum;
}

std::string specs_text(const CompiledStep& step) {
  using Align = TextTable::Align;
  TextTable table({{"parameter"},
                   {"count", Align::right},
                   {"shape"},
                   {"stored"},
                   {"computed with"},
                   {"shard"},
                   {"bytes per device", Align::right},
                   {"padding", Align::right},
                   {"assigned by"}});
  for (const ParameterSharding& row : step.parameters) {
    table.add_row({row.name, format_count(row.instances), shape_text(row.shape),
                   to_string(row.spec), to_string(row.compute_spec), shape_text(row.shard_shape),
                   format_count(row.bytes_per_device.count()),
                   format_count(row.padding_per_device.count()), row.assigned_by});
  }
  std::string out = table.text();
  out += fmt::format("\nParameters on each device: {}, of that {} padding\n",
                     format_bytes(total(step, &ParameterSharding::bytes_per_device)),
                     format_bytes(total(step, &ParameterSharding::padding_per_device)));
  for (const std::string& warning : step.warnings) out += "warning: " + warning + "\n";
  return out;
}

std::string specs_json(const Experiment& experiment, const CompiledStep& step) {
  Json json;
  json["schema"] = "shardsim/specs/1";
  json["shardsim"] = program_version;
  json["experiment"] = experiment.resolved;
  json["parameters"] = Json::array();
  for (const ParameterSharding& row : step.parameters) {
    json["parameters"].push_back({{"name", row.name},
                                  {"instances", row.instances},
                                  {"shape", row.shape},
                                  {"spec", to_json(row.spec)},
                                  {"compute_spec", to_json(row.compute_spec)},
                                  {"gradient_spec", to_json(row.gradient_spec)},
                                  {"optimizer_spec", to_json(row.optimizer_spec)},
                                  {"shard_shape", row.shard_shape},
                                  {"bytes_per_device", row.bytes_per_device.count()},
                                  {"padding_bytes_per_device", row.padding_per_device.count()},
                                  {"assigned_by", row.assigned_by}});
  }
  json["bytes_per_device"] = total(step, &ParameterSharding::bytes_per_device).count();
  json["padding_bytes_per_device"] = total(step, &ParameterSharding::padding_per_device).count();
  json["warnings"] = step.warnings;
  return json.dump(2) + "\n";
}

std::string specs_csv(const CompiledStep& step) {
  std::string out =
      "name,instances,shape,spec,compute_spec,gradient_spec,optimizer_spec,shard_shape,"
      "bytes_per_device,padding_bytes_per_device,assigned_by\n";
  for (const ParameterSharding& row : step.parameters) {
    const std::vector<std::string> fields = {row.name,
                                             std::to_string(row.instances),
                                             shape_text(row.shape),
                                             to_string(row.spec),
                                             to_string(row.compute_spec),
                                             to_string(row.gradient_spec),
                                             to_string(row.optimizer_spec),
                                             shape_text(row.shard_shape),
                                             std::to_string(row.bytes_per_device.count()),
                                             std::to_string(row.padding_per_device.count()),
                                             row.assigned_by};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      out += (i == 0 ? "" : ",") + csv_field(fields[i]);
    }
    out += "\n";
  }
  return out;
}

}  // namespace

int specs_command(const Words& words) {
  const std::vector<std::string> formats = {"text", "json", "csv"};
  boost::program_options::options_description options("Options");
  add_experiment_options(options);
  add_output_options(options, formats);
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const auto outputs = read_outputs(given, formats, /*text_beside_files=*/false);
  const Experiment experiment = read_given_experiment(given);
  const CompiledStep step = compile_experiment(experiment);
  write(outputs, [&](const std::string& format) {
    if (format == "json") return specs_json(experiment, step);
    return format == "csv" ? specs_csv(step) : specs_text(step);
  });
  return exit_done;
}

}  // namespace shardsim
