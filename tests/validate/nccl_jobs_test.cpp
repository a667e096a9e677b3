// The verb validate with the backend nccl, as a user calls it: on GPUs that are not there
// (fake_gpus.hpp), and without any.
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/json.hpp"

namespace shardsim {
namespace {

namespace fs = std::filesystem;

const std::string program = SHARDSIM_BINARY_DIR "/shardsim";
const std::string example = SHARDSIM_SOURCE_DIR "/examples/validate-tiny-llama.json";

struct Job {
  int exit = 0;
  std::string out;  // and errors
};

Job run(const std::string& command) {
  Job job;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> some{};
  while (const std::size_t read = std::fread(some.data(), 1, some.size(), pipe)) {
    job.out.append(some.data(), read);
  }
  job.exit = WEXITSTATUS(pclose(pipe));
  return job;
}

// Of each rank, at the same time; $RANK is its number.
std::vector<Job> run_ranks(int ranks, const std::string& command) {
  std::vector<std::future<Job>> jobs;
  for (int rank = 0; rank < ranks; ++rank) {
    jobs.push_back(std::async(std::launch::async, [rank, &command] {
      return run("R=" + std::to_string(rank) + "; " + command);
    }));
  }
  std::vector<Job> ended;
  for (auto& job : jobs) ended.push_back(job.get());
  return ended;
}

// The program beside a module of GPUs that are not there.
std::string program_with_fake_gpus() {
  const fs::path folder = fs::path(SHARDSIM_FAKE_MODULE).parent_path();
  const fs::path copy = folder / "shardsim";
  fs::copy_file(program, copy, fs::copy_options::overwrite_existing);
  return copy.string();
}

bool has_gpus() { return fs::exists("/dev/nvidiactl"); }

}  // namespace

TEST_CASE("a process that is started alone has a thread for each GPU") {
  const std::string command = program_with_fake_gpus() + " validate " + example +
                              " --name fsdp --machine dgx-h200 --backend nccl --format json";
  const Job job = run(command);
  INFO(job.out);
  REQUIRE(job.exit == 0);
  const Json json = parse_json(job.out, "validation");
  CHECK(json["backend"]["name"] == "nccl");
  CHECK(json["backend"]["processes"] == 4);
  CHECK(json["machine"] == "dgx-h200");
  CHECK(json["step"]["measured_s"].get<double>() > 0);
  CHECK(json["communication"]["tasks"].get<int>() > 0);

  const Job many = run("FAKE_GPUS=2 " + command);
  CHECK(many.exit == 4);
  CHECK_THAT(many.out, Catch::Contains("4 GPUs are asked for and there are 2 here"));
}

TEST_CASE("a sweep of GPUs has collectives, products of every type and copies") {
  const Job job = run(program_with_fake_gpus() +
                      " validate --sweep --backend nccl --sizes 1MiB --repeats 6"
                      " --algorithms all-reduce=ring --format json");
  INFO(job.out);
  REQUIRE(job.exit == 0);
  const Json json = parse_json(job.out, "sweep");
  CHECK(json["profile"] == "dgx-h200");
  CHECK(json["device"]["name"] == "NVIDIA H200");
  // Groups of 2, 4 and 8 GPUs, the first two of them alone, too; of six kinds, and an algorithm.
  CHECK(json["collectives"].size() == 5 * 6 + 3);
  // bf16, fp16, fp32 and fp8; sides from 128 to 8192, five shapes each; moves and copies from
  // 16 KiB to 1 GiB.
  CHECK(json["copies"].size() == 18);
  CHECK(json["kernels"].size() == 4 * 7 * 5 + 9);
  // Context, cuBLAS, communicators, allocator.
  CHECK(json["memory"].size() == 4);

  const Job alone =
      run(program_with_fake_gpus() +
          " validate --sweep --only kernels --backend nccl --repeats 6 --format json");
  INFO(alone.out);
  REQUIRE(alone.exit == 0);
  const Json kernels = parse_json(alone.out, "sweep");
  CHECK(kernels["collectives"].empty());
  CHECK(kernels["kernels"].size() == json["kernels"].size());
}

// What each variant reads is launcher_test.cpp's; here all of them come together, find that there
// is no driver, and say so once.
TEST_CASE("processes that torchrun, srun or a user started meet") {
  if (has_gpus()) {
    WARN("there are GPUs: what is told of none is not seen");
    return;
  }
  const std::string validate = program + " validate " + example + " --name fsdp --backend nccl";
  for (const std::string& variables :
       {std::string("RANK=$R WORLD_SIZE=3 LOCAL_RANK=$R MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 "
                    "TORCHELASTIC_USE_AGENT_STORE=True "),
        std::string("SLURM_STEP_ID=0 SLURM_PROCID=$R SLURM_STEP_NUM_TASKS=3 SLURM_LOCALID=$R "
                    "SLURM_STEP_NODELIST=localhost SLURM_JOB_ID=4711 "),
        std::string()}) {
    CAPTURE(variables);
    const std::string flags =
        variables.empty() ? " --rank $R --processes 3 --rendezvous 127.0.0.1:29617" : "";
    const std::vector<Job> jobs = run_ranks(3, variables + validate + flags);
    for (const Job& job : jobs) CHECK(job.exit == 4);
    CHECK_THAT(jobs[0].out, Catch::Contains("error: rank 0: CUDA"));
    CHECK(jobs[1].out.empty());
    CHECK(jobs[2].out.empty());
  }
}

TEST_CASE("a rank that does not come is named by those that did") {
  const std::vector<Job> jobs =
      run_ranks(2, program + " validate " + example +
                       " --name fsdp --backend nccl --rank $R --processes 3 --timeout 2"
                       " --rendezvous 127.0.0.1:29619");
  for (const Job& job : jobs) {
    CHECK(job.exit == 4);
    CHECK_THAT(job.out, Catch::Contains("rank 2 of 3 did not come within 2 s"));
  }
}

}  // namespace shardsim
