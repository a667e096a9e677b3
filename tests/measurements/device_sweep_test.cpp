// Sweeps of devices, written and read.
#include "measurements/device_sweep.hpp"

#include <catch2/catch.hpp>

#include "../base/mistake.hpp"
#include "base/json.hpp"

namespace shardsim::device_sweep_test {
namespace {

// Made up: figures that differ from each other.
DeviceSweep small_sweep() {
  DeviceSweep sweep;
  sweep.file = "sweep.json";
  sweep.date = "2026-11-22";
  sweep.profile = "cpu-host";
  sweep.on = {"mpi", "Open MPI v4.1.4", 4, {"here"}};
  sweep.processor = "A \"fine\" CPU";
  sweep.cores = 2;
  const MeasuredTime time{Seconds(1.25e-5), Seconds(1e-5), Seconds(2e-5), 12};
  sweep.device = {{"name", "fine"}, {"clock", "2 GHz"}};
  sweep.collectives = {{CollectiveKind::all_gather, 4, 1, Bytes(64 * KiB), time},
                       {CollectiveKind::all_gather, 2, 1, Bytes(64 * KiB), time, "ring"},
                       {CollectiveKind::collective_permute, 2, 2, Bytes(KiB), time}};
  sweep.copies = {{TaskKind::to_host, Bytes(MiB), time}, {TaskKind::from_host, Bytes(MiB), time}};
  sweep.memory = {{"context", Bytes(300 * MiB)}};
  sweep.kernels = {{{"", KernelClass::matmul, DType::f32, Flops(1e6), Bytes(4 * KiB)}, time}};
  return sweep;
}

// What is wrong with the sweep after `change`.
template <class Change>
std::string mistake_after(const Change& change) {
  Json document = parse_json(sweep_text(small_sweep()), "sweep.json");
  change(document);
  return testing::mistake_of([&] { return read_sweep(document, "sweep.json"); });
}

}  // namespace

TEST_CASE("a sweep reads back") {
  const std::string text = sweep_text(small_sweep());
  const Json document = parse_json(text, "sweep.json");
  const DeviceSweep sweep = read_sweep(document, "sweep.json");
  CHECK(sweep_text(sweep) == text);
  CHECK(sweep.collectives.size() == 3);
  CHECK(sweep.collectives[1].algorithm == "ring");
  CHECK(sweep.collectives[2].kind == CollectiveKind::collective_permute);
  CHECK(sweep.collectives[2].groups == 2);
  CHECK(sweep.device.at("clock") == "2 GHz");
  CHECK(sweep.copies[0].bytes == Bytes(MiB));
  CHECK(sweep.copies[1].direction == TaskKind::from_host);
  CHECK(sweep.memory[0].what == "context");
  CHECK(sweep.kernels[0].kernel.kernel_class == KernelClass::matmul);
  CHECK(sweep.processor == "A \"fine\" CPU");
}

TEST_CASE("a sweep that cannot be says where") {
  CHECK(mistake_after([](Json& sweep) { sweep["schema"] = "shardsim/sweep/2"; }) ==
        "sweep.json: /schema: expected \"shardsim/sweep/1\"");
  CHECK(mistake_after([](Json& sweep) { sweep["collectives"][0]["time_s"] = 0; }) ==
        "sweep.json: /collectives/0/time_s: expected a time above 0, in seconds");
  CHECK(mistake_after([](Json& sweep) {
          sweep["collectives"][2]["group_size"] = 1;
        }).starts_with("sweep.json: /collectives/2/group_size: "));
  CHECK(mistake_after([](Json& sweep) { sweep["collectives"][2]["kind"] = "all-redcue"; }) ==
        "sweep.json: /collectives/2/kind: unknown kind of collective \"all-redcue\", did you mean "
        "\"all-reduce\"?");
  CHECK(mistake_after([](Json& sweep) {
          sweep["kernels"][0]["class"] = "matmull";
        }).starts_with("sweep.json: /kernels/0/class: "));
  CHECK(mistake_after([](Json& sweep) { sweep["kernels"][0]["flops"] = -1; }) ==
        "sweep.json: /kernels/0/flops: an impossible number");
  CHECK(mistake_after([](Json& sweep) { sweep["kernels"][0]["dtype"] = "f33"; }) ==
        "sweep.json: /kernels/0/dtype: unknown type of elements");
  CHECK(mistake_after([](Json& sweep) {
          sweep["kernels"][0]["tiem_s"] = 1;
        }).starts_with("sweep.json: /kernels/0"));
}

}  // namespace shardsim::device_sweep_test
