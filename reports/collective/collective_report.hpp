// A collective over sizes, perhaps beside measurements: the table of nccl-tests as text, JSON
// (shardsim/collective/1), CSV, Markdown and as a page with plots.
//
//   { "schema": "shardsim/collective/1", "shardsim": version, "machine": name,
//     "kind": "all-reduce", "devices": n, "nodes": n, or of a torus "topology": "4x4",
//     "against": {"file", "id", "source", "healthy": b or null, "healthy_reason"},
//     "rows": [{"bytes", "time_s", "algbw_Bps", "busbw_Bps", "algorithm", "protocol": s or null,
//               "launch_s", "latency_s", "transfer_s", "calibration_factor", "nccl_estimate_s",
//               "tpu": {"choice", "instruction", "asynchronous", "emitter", "strategy", "colors",
//               "phases", "scheduler_s"}, "measured_s": n or null, "measured_busbw_Bps": n or
//               null, "relative_error": n or null}...],
//     "link_view": {"bytes", "time_s", "algorithm",
//                   "links": [{"from", "to", "bytes", "utilisation", "history"}...],
//                   "bins": {"count", "start_s", "duration_s",
//                            "histories": [{"links", "full_s", "first_full_s", "last_full_s",
//                            "utilisation": [n...]}...]}},
//     "errors": {"rows", "median_absolute_relative_error", "percentile_90_absolute_relative_error"}
//               or null, "notes": [s...] }
//
// "against", "measured_s", "measured_busbw_Bps", "relative_error" and "errors" are there where a
// measurement is given,
// "nccl_estimate_s" where NCCL runs, "tpu" where the TPU compiler's choice is known, "model" where
// the times are not simulated (CollectiveModel), "link_view" where it is asked for: what links
// carry for the size "bytes", the busiest first; "utilisation" is that of their bandwidth over the
// time. Errors are predicted over measured, less 1; "errors" is null where no row tells a time.
// launch + latency + transfer = time.
//
// CSV has the rows and, with links, behind an empty line the table from,to,bytes,utilisation.
//
// "bins" is the same over time, which "count" bins of "duration_s" cut up from "start_s" on: of
// every link the history of that number, of which "links" links are, its utilisation in every bin,
// to a millionth (their mean is that of the link); for how long it is at its full bandwidth, from
// when on and until when (null where it never is). Not there where links differ too much to follow
// them, which a note says.
#pragma once

#include <string>

#include "experiments/collective_experiment.hpp"
#include "reports/format/report.hpp"

namespace shardsim {

[[nodiscard]] std::string report_collective(const CollectivePrediction& prediction, Format format,
                                            std::size_t width = default_text_width);

}  // namespace shardsim
