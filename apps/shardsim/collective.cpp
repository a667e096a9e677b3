#include <array>

#include "base/json.hpp"
#include "base/text.hpp"
#include "experiments/experiment.hpp"
#include "reports/collective/collective_report.hpp"

#include "command.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report_format.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual collective_manual = {
    "collective [OPTION...]",
    "One collective on one machine, over sizes, as nccl-tests shows it: time, bandwidths, the\n"
    "algorithm, and what the time is made of. A size is nccl-tests': the whole array, of a\n"
    "collective-permute or broadcast the message. --against FILE puts a measured table beside it,\n"
    "which says what ran where (docs/collective.md).",
    {"shardsim collective --machine dgx-h100 --kind all-reduce --devices 16 --sizes 1KiB:8GiB:x2",
     "shardsim collective --machine 'ring(bandwidth=50GiB/s,latency=500ns)' --kind all-reduce \\\n"
     "               --devices 1024 --sizes 512MiB:1GiB:+512MiB --format csv",
     "shardsim collective --machine examples/topologies/two-hosts.json --kind all-to-all \\\n"
     "               --devices 8 --sizes 256MiB --links",
     "shardsim collective --against examples/collectives/h100-dgx-8-all-reduce.json \\\n"
     "               -o collective.html"}};

constexpr std::array collective_flags{
    Flag{
        "machine", "machine", "NAME",
        "hardware profile, a path to one (which may hold a graph of your own), or a network: ring, "
        "full, switch, torus, fat-tree or dragonfly, as in docs/networks.md"},
    Flag{"calibration", "calibration", "NAME",
         "in place of the machine's: one that is shipped, or what calibrate wrote"},
    Flag{"topology", "topology", "SHAPE",
         "slice of a torus, in chips: 4x4x4, 4x4x8_twisted, 4x4x4_open"},
    Flag{"slices", "slices", "N", "slices of TPUs over which the devices lie evenly"},
    Flag{"kind", "kind", "KIND",
         "all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute or broadcast"},
    Flag{"devices", "devices", "N", "in the group"},
    Flag{"nodes", "nodes", "N", "over which they lie evenly; as many as they fill when left out"},
    Flag{"sizes", "sizes", "SIZES",
         "64MiB or, as in nccl-tests, 64M; a list 1MiB,64MiB; 1KiB:8GiB:x2 or 1MiB:64MiB:+1MiB"},
    Flag{"model", "model", "MODEL",
         "whose time: simulated; all-links, every link of a torus whatever the compiler chooses; "
         "tpu-scheduler; xla-sol; flows, every message on its links (docs/collective.md)"},
    Flag{"algorithm", "algorithm", "NAME",
         "of NCCL: Ring, Tree, NVLS, ...; on a network written in place, a graph or with --model "
         "flows: ring, torus, double-tree, collnet and others, as in docs/networks.md; the "
         "library's "
         "choice when left out"},
    Flag{"protocol", "protocol", "NAME", "of NCCL: LL, LL128 or Simple"},
    Flag{"against", "against", "FILE",
         "a measured table, which says machine, kind, devices, nodes and sizes, what nccl-tests "
         "print, or traces of the PyTorch profiler (a file, or a folder with the ranks of a job), "
         "of "
         "which --kind, --devices and --nodes tell the collective; --machine replaces its machine"},
};

Json collective_of_flags(const Given& given) {
  if (given.has("operand")) throw UsageError("collective takes no file; a table is for --against");
  Json document = Json::object();
  for (const Flag& flag : collective_flags) {
    const Words values = given.all(flag.name);
    if (values.size() > 1) throw UsageError(std::string("--") + flag.name + " is given twice");
    if (!values.empty()) apply_override(document, flag.path, values[0]);
  }
  if (given.has("links")) document["links"] = true;
  if (given.has("unfold")) document["unfold"] = true;
  if (document.empty()) {
    throw UsageError(
        "nothing to predict: give --machine, --kind, --devices and --sizes, or "
        "--against FILE");
  }
  return document;
}

void add_collective_options(po::options_description& options) {
  add_flags(options, collective_flags);
  options.add_options()("links",
                        "what every link carries, in all and over time, for the last size; the "
                        "busiest first");
  options.add_options()("unfold",
                        "where collectives are simulated, every device and link of its own: the "
                        "same time, later");
  add_output_options(options, report_formats());
}

int run_collective(const Given& given) {
  const auto outputs = read_outputs(given, report_formats());
  const CollectiveExperiment experiment =
      read_collective(collective_of_flags(given), "command line");
  Progress progress(experiment.sizes.size());
  const CollectivePrediction prediction =
      predict_collective(experiment, [&](Bytes size) { progress.begin(format_bytes(size)); });
  progress.clear();
  write(outputs, [&](const Output& output) {
    return report_collective(prediction, report_format(output.format), output.width);
  });
  return exit_done;
}

}  // namespace

Verb collective_verb() {
  return {"collective", "one collective on one machine: time by size, like nccl-tests",
          collective_manual, add_collective_options, run_collective};
}

}  // namespace shardsim
