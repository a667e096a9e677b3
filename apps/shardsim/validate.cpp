#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "backends.hpp"
#include "base/error.hpp"
#include "base/index.hpp"
#include "command.hpp"
#include "experiment_options.hpp"
#include "output.hpp"
#include "processes.hpp"
#include "progress.hpp"
#include "report_format.hpp"
#include "reports/step/validation_report.hpp"
#include "validate/step/validate_step.hpp"
#include "validate_sweep.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual validate_manual = {
    "validate EXPERIMENT|--sweep --backend mpi|nccl [OPTION...]",
    "Runs a step on real devices and puts what it took beside what is predicted; or measures,\n"
    "with --sweep, collectives and kernels of many sizes, of which calibrate makes a profile.\n"
    "The backend mpi has a process for each device, on CPUs; nccl has one for each GPU, or,\n"
    "where it is started alone, a thread. Rank 0 prints.",
    {"shardsim validate examples/validate-tiny-llama.json --name alone --backend mpi \\\n"
     "               --batch 1 --sequence 32 --repeats 6",
     "mpirun -n 4 shardsim validate --sweep --backend mpi -o sweep.json",
     "mpirun -n 4 shardsim validate examples/validate-tiny-llama.json --name fsdp \\\n"
     "               --backend mpi --calibrated my-host.json --tolerance 15%",
     "torchrun --nproc-per-node 8 --no-python shardsim validate step.json --backend nccl"}};

// What is wrong with words is the same for all processes: said before there are any.
struct Wanted {
  Repeats repeats;
  BackendOptions backend;
  RunPart part = RunPart::everything;
  std::optional<double> tolerance;
  std::vector<Output> outputs;
};

// 0.15, or 15% where a part is asked for.
double read_number(const Given& given, const std::string& option, double otherwise) {
  if (!given.has(option)) return otherwise;
  const std::string text = given.all(option).back();
  std::size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::logic_error&) {
    end = 0;
  }
  const bool is_percent = text.substr(std::min(end, text.size())) == "%";
  const bool is_whole = end == text.size() || is_percent;
  if (end == 0 || !is_whole || !std::isfinite(number) || number <= 0) {
    throw UsageError(fmt::format("--{} {}: expected a number above 0", option, text));
  }
  constexpr double percent = 100;
  return is_percent ? number / percent : number;
}

// What is for a sweep is not for a step, and the other way round.
void check_together(const Given& given) {
  if (given.has("calibrated") && given.has("machine")) {
    throw UsageError("--calibrated is the machine: --machine is one too many");
  }
  if (!given.has("sweep")) {
    if (given.has("sizes")) throw UsageError("--sizes is for --sweep");
    return;
  }
  if (given.has("operand")) throw UsageError("a sweep takes no experiment");
  const std::set<std::string> of_sweeps = {
      "sweep",     "only",    "sizes", "algorithms", "backend",    "machine", "repeats",
      "precision", "timeout", "rank",  "processes",  "rendezvous", "format",  "output"};
  for (const auto& option : given.parsed.options) {
    if (of_sweeps.contains(option.string_key)) continue;
    throw UsageError(fmt::format("--{} is not for --sweep", option.string_key));
  }
}

// Who this process is, where nothing that started it says so.
LaunchFlags read_launch(const Given& given, const std::string& backend) {
  LaunchFlags flags;
  const auto number = [&](const char* option) -> std::optional<std::int64_t> {
    if (!given.has(option)) return std::nullopt;
    const std::string text = given.all(option).back();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
    throw UsageError(fmt::format("--{} {}: expected a whole number", option, text));
  };
  flags.rank = number("rank");
  flags.processes = number("processes");
  if (given.has("rendezvous")) flags.rendezvous = given.all("rendezvous").back();
  const bool any = flags.rank || flags.processes || flags.rendezvous;
  if (any && backend == "mpi") {
    throw UsageError(
        "--rank, --processes and --rendezvous are for --backend nccl: mpirun starts "
        "the processes of mpi");
  }
  return flags;
}

Wanted read_wanted(const Given& given) {
  Wanted wanted;
  if (!given.has("backend")) throw UsageError("on what: --backend mpi, or nccl");
  const std::string backend = given.all("backend").back();
  if (backend != "mpi" && backend != "nccl") {
    throw UsageError(fmt::format("--backend {}: there are mpi and nccl", backend));
  }
  wanted.backend.name = backend;
  wanted.backend.launch = read_launch(given, backend);
  check_together(given);
  const Repeats defaults;
  constexpr double most_steps = 1e6;
  wanted.repeats.most =
      static_cast<int>(std::min(read_number(given, "repeats", defaults.most), most_steps));
  wanted.repeats.least = std::min(defaults.least, wanted.repeats.most);
  if (wanted.repeats.most < least_repeats) {
    throw UsageError(fmt::format("--repeats {}: at least {}, for an interval of the median",
                                 given.all("repeats").back(), least_repeats));
  }
  wanted.repeats.precision = read_number(given, "precision", defaults.precision);
  constexpr double a_minute = 60;
  wanted.backend.patience = Seconds(read_number(given, "timeout", a_minute));
  if (given.has("sweep")) {
    (void)read_sweep_part(given);
  } else if (given.has("only")) {
    const std::string part = given.all("only").back();
    if (part != "collectives") {
      throw UsageError(fmt::format("--only {}: of a step there is collectives", part));
    }
    wanted.part = RunPart::collectives;
  }
  if (given.has("tolerance")) wanted.tolerance = read_number(given, "tolerance", 0);
  wanted.backend.chooses_algorithms = given.has("sweep") && given.has("algorithms");
  wanted.outputs = read_outputs(given, given.has("sweep") ? sweep_formats() : report_formats());
  return wanted;
}

bool is_within(const StepValidation& validation, double tolerance) {
  const auto step = validation.step.relative_error();
  const auto tasks = errors_of(validation.tasks, StepPart::everything);
  const double memory = largest_error(validation.memory).value_or(0);  // not measured: no verdict
  return step && tasks && std::abs(*step) <= tolerance && tasks->median <= tolerance &&
         memory <= tolerance;
}

Experiment with_machine(Experiment experiment, const Given& given, const Backend& backend) {
  if (given.has("calibrated")) {
    // Seen from where the user is, not from the experiment.
    experiment.machine = std::filesystem::absolute(given.all("calibrated").back()).string();
    experiment.written.machine = {"command line", "/calibrated"};
    experiment.calibrations.reset();  // it has its own
  } else if (experiment.machine.empty()) {
    experiment.machine = backend.profile();
  }
  return experiment;
}

int validate_on(Backend& backend, const Given& given, const Wanted& wanted) {
  if (given.has("sweep")) return sweep_on(backend, given, wanted.repeats, wanted.outputs);
  const bool prints = backend.exchange().rank() == 0;
  Attempts together(backend.exchange());
  const auto prediction = together([&] {
    return predict_to_run(with_machine(read_given_experiment(given), given, backend),
                          backend.overlaps_streams(), wanted.part);
  });
  if (!prediction) return together.exit_code();
  const auto is_same = together([&] {
    check_same_plan(backend.exchange(), prediction->step.plan);
    return true;
  });
  if (!is_same) return together.exit_code();
  const auto validation = together([&] {
    std::optional<Progress> progress;
    if (prints) progress.emplace(at(wanted.repeats.warm_ups + wanted.repeats.most));
    return validate_step(*prediction, backend, wanted.repeats, [&](int step) {
      if (progress) progress->begin(fmt::format("step {}", step + 1));
    });
  });
  if (!validation) return together.exit_code();
  const auto written = together([&] {
    if (!prints) return true;
    write(wanted.outputs, [&](const Output& output) {
      return report_validation(*validation, report_format(output.format), output.width);
    });
    return true;
  });
  if (!written) return together.exit_code();
  const bool fails = wanted.tolerance && !is_within(*validation, *wanted.tolerance);
  return fails && prints ? exit_verdict_is_no : exit_done;
}

void add_validate_options(po::options_description& options) {
  add_experiment_options(options);
  const auto text = [](const char* name) { return po::value<Words>()->value_name(name); };
  options.add_options()("backend", text("NAME"), "mpi or nccl")(
      "calibrated", text("PROFILE"), "the machine: what shardsim calibrate made of a sweep")(
      "only", text("PART"),
      "collectives: of the step these alone, without kernels and memory; of a sweep these, or\n"
      "kernels: with copies to hosts and memory, without collectives")(
      "repeats", text("N"), "at most so many steps (200)")(
      "precision", text("PART"),
      "enough steps when half the 95 % interval of their median is this part of it (2%)")(
      "tolerance", text("PART"),
      "exit with 1 when the step, the median task, or a peak of memory is off by more: 15%")(
      "timeout", text("SECONDS"), "that a process waits for another before all end (60)")(
      "rank", text("N"), "of this process for nccl, where torchrun, srun or mpirun do not say it")(
      "processes", text("N"), "how many there are")("rendezvous", text("HOST:PORT"),
                                                    "where rank 0 listens");
  add_sweep_options(options);
  add_output_options(options, report_formats());
}

int run_validate(const Given& given) {
  Wanted wanted = read_wanted(given);
  if (!given.has("sweep")) {
    wanted.backend.ranks = [&] {
      return compile_experiment(read_given_experiment(given)).plan.mesh.devices();
    };
  }
  return on_backend(wanted.backend,
                    [&](Backend& backend) { return validate_on(backend, given, wanted); });
}

}  // namespace

Verb validate_verb() {
  return {"validate", "a step on real devices: predicted beside measured", validate_manual,
          add_validate_options, run_validate};
}

}  // namespace shardsim
