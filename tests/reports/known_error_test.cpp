// The figures of known_error.hpp: the published steps of tests/measurements/steps.csv, predicted
// once more as docs/accuracy.md says; linear percentiles.
#include "reports/format/known_error.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "tests/workloads/scratch_folder.hpp"

namespace shardsim {
namespace {

const std::string folder = SHARDSIM_SOURCE_DIR "/tests/measurements/";

using Row = std::map<std::string, std::string>;  // by the names of columns

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<Row> measured_steps() {
  const std::vector<std::string> lines = split(read_file(folder + "steps.csv"), '\n');
  const std::vector<std::string> columns = split(lines.at(0), ',');
  std::vector<Row> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = split(lines[i], ',');
    REQUIRE(fields.size() == columns.size());
    Row& row = rows.emplace_back();
    for (std::size_t k = 0; k < fields.size(); ++k) row[columns[k]] = fields[k];
  }
  return rows;
}

// Models that are not shipped; learned positions are as many as the sequence has tokens.
std::string model_of(const Row& row, const Json& models, const test::ScratchFolder& scratch) {
  const std::string& name = row.at("model");
  if (!models.contains(name)) return name;
  Json config = models[name];
  if (config["model_type"] == "gpt2") config["n_positions"] = std::stoi(row.at("sequence"));
  return scratch.write(name + "-" + row.at("sequence") + ".json", config.dump());
}

// Weights and gradients in fp32, as mixed precision has them.
Json experiment_of(const Row& row, const std::string& model) {
  Json mesh = Json::object();
  for (const std::string& axis : split(row.at("mesh"), ' ')) {
    const std::vector<std::string> parts = split(axis, '=');
    mesh[parts.at(0)] = std::stoi(parts.at(1));
  }
  const bool shards = mesh.contains("fsdp");
  const char* strategy = !shards ? "dp" : mesh.contains("data") ? "hsdp" : "fsdp";
  return {{"name", row.at("id")},
          {"workload",
           {{"model", model},
            {"batch", std::stoi(row.at("batch"))},
            {"sequence", std::stoi(row.at("sequence"))},
            {"microbatches", std::stoi(row.at("microbatches"))},
            {"rematerialization", row.at("rematerialization")},
            {"precision", {{"parameters", "fp32"}, {"gradients", "fp32"}}}}},
          {"mesh", mesh},
          {"strategy", strategy},
          {"machine", row.at("machine")}};
}

double predicted_seconds(const Json& experiment) {
  const Experiment read = read_experiments(experiment, "steps.csv").at(0);
  return to_seconds(predict(read, {}).result.step_time).count();
}

double percentile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

// Of every two steps that share source, machine, model and sequence: how differently they are off.
std::vector<double> between_two(const std::map<std::string, std::vector<double>>& alike) {
  std::vector<double> result;
  for (const auto& [what, ratios] : alike) {
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      for (std::size_t k = i + 1; k < ratios.size(); ++k) {
        result.push_back(std::max(ratios[i], ratios[k]) / std::min(ratios[i], ratios[k]));
      }
    }
  }
  return result;
}

TEST_CASE("the known error is that of the measured steps") {
  constexpr double last_digit = 0.005;
  const test::ScratchFolder scratch;
  const Json models = parse_json(read_file(folder + "step_models.json"), "step_models.json");
  std::vector<double> ratios;
  std::map<std::string, std::vector<double>> alike;
  for (const Row& row : measured_steps()) {
    const Json experiment = experiment_of(row, model_of(row, models, scratch));
    const double ratio = std::stod(row.at("measured_s")) / predicted_seconds(experiment);
    ratios.push_back(ratio);
    const std::string source = row.at("id").substr(0, row.at("id").find('/'));
    alike[source + row.at("machine") + row.at("model") + "," + row.at("sequence")].push_back(ratio);
  }
  const StepEvidence error = known_error();
  CHECK(static_cast<int>(ratios.size()) == error.steps);
  CHECK(percentile(ratios, 0.1) == Approx(error.low).margin(last_digit));
  CHECK(percentile(ratios, 0.5) == Approx(error.median).margin(last_digit));
  CHECK(percentile(ratios, 0.9) == Approx(error.high).margin(last_digit));
  const std::vector<double> pairs = between_two(alike);
  CHECK(static_cast<int>(pairs.size()) == error.pairs);
  CHECK(percentile(pairs, 0.9) == Approx(error.between_two).margin(last_digit));
}

}  // namespace
}  // namespace shardsim
