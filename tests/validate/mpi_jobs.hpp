// Jobs of several processes on this machine: the program under mpirun, what it printed.
#pragma once

#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace shardsim::test {

inline const std::string program = SHARDSIM_BINARY_DIR "/shardsim";
inline const std::string few = " --backend mpi --repeats 6 --precision 50% --timeout 60";

struct Job {
  int exit = 0;
  std::string out;
  std::string errors;
};

inline std::filesystem::path scratch() {
  const std::filesystem::path folder = SHARDSIM_BINARY_DIR "/tests/mpi_jobs";
  std::filesystem::create_directories(folder);
  return folder;
}

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline Job run(const std::string& command) {
  const auto errors = scratch() / "errors.txt";
  std::filesystem::remove(errors);
  Job job;
  std::FILE* pipe = popen((command + " 2>" + errors.string()).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
    job.out.append(part.data(), got);
  }
  const int status = pclose(pipe);
  job.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  job.errors = text_of(errors);
  return job;
}

inline std::string mpirun(int processes) {
  // Containers run tests as root, on fewer cores than processes.
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
         std::string(SHARDSIM_MPIRUN) + " --oversubscribe -n " + std::to_string(processes) + " ";
}

inline Job validate(int processes, const std::string& arguments) {
  return run(mpirun(processes) + program + " validate " + arguments + few);
}

}  // namespace shardsim::test
