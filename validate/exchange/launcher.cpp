#include "validate/exchange/launcher.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_processes = std::int64_t{1} << 20;
constexpr std::int64_t highest_port = 65535;

// Ports that we choose ourselves are the highest 4096, as JAX's in a job of Slurm, which takes the
// job's number mod 4096 (jax/_src/clusters/slurm_cluster.py, read on 2026-11-22): above those that
// Linux gives to outgoing connections (32768 to 60999, Documentation/networking/ip-sysctl.rst:
// ip_local_port_range).
constexpr std::int64_t chosen_ports = 4096;
constexpr std::int64_t first_chosen_port = highest_port - chosen_ports + 1;

// Slurm keeps higher ones for what srun did not start: the shell of salloc, batch scripts
// (slurm/slurm.h: SLURM_MAX_NORMAL_STEP_ID).
constexpr std::int64_t highest_step = 0xfffffff0;

[[noreturn]] void fail_launch(const std::string& variable, const std::string& message) {
  throw InputError({"environment", variable}, message);
}

[[noreturn]] void fail_flag(const std::string& flag, const std::string& message) {
  throw InputError({"command line", flag}, message);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// What a launcher left behind.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  [[nodiscard]] bool has(const std::string& name) const { return environment_(name).has_value(); }

  [[nodiscard]] std::string text(const std::string& name, const std::string& beside) const {
    const std::optional<std::string> value = environment_(name);
    if (!value) fail_launch(name, fmt::format("not set, though {} is", beside));
    if (value->empty()) fail_launch(name, "empty");
    return *value;
  }

  [[nodiscard]] std::int64_t number(const std::string& name, const std::string& beside,
                                    std::int64_t lowest, std::int64_t highest) const {
    const std::string value = text(name, beside);
    const std::optional<std::int64_t> read = whole_number(value);
    if (!read || *read < lowest || *read > highest) {
      fail_launch(
          name, fmt::format("\"{}\" is not a whole number from {} to {}", value, lowest, highest));
    }
    return *read;
  }

  // Rank, size and, if it is set, local rank.
  [[nodiscard]] Launch launch(const std::string& by, const std::string& rank,
                              const std::string& size, const std::string& local_rank) const {
    Launch launch{.by = by};
    launch.size = number(size, rank, 1, most_processes);
    launch.rank = number(rank, size, 0, most_processes - 1);
    if (launch.rank >= launch.size) {
      fail_launch(rank,
                  fmt::format("{} of only {} processes ({})", launch.rank, launch.size, size));
    }
    if (has(local_rank)) launch.local_rank = number(local_rank, rank, 0, launch.size - 1);
    return launch;
  }

 private:
  const Environment& environment_;
};

// Where torchrun's agent has MASTER_PORT, as it has unless it was asked not to share its store,
// rank 0 listens elsewhere. Agents of two jobs on a host differ in MASTER_PORT, mostly by little:
// these ports do, too, unless by a multiple of 4096. Half the range further, none is MASTER_PORT.
std::int64_t port_beside(std::int64_t master_port) {
  return first_chosen_port + (master_port + chosen_ports / 2) % chosen_ports;
}

// Jobs with numbers in a row, and steps of one that run at the same time, may share a host. As 61
// is odd, 4096 jobs in a row differ; up to its 61st step a job does not meet the next one.
std::int64_t port_of_step(std::int64_t job, std::int64_t step) {
  constexpr std::int64_t steps = 61;
  return first_chosen_port + (job % chosen_ports * steps + step) % chosen_ports;
}

Launch launch_of_torchrun(const Variables& variables, bool needs_address) {
  Launch launch = variables.launch("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK");
  if (launch.size == 1 || !needs_address) return launch;
  launch.host = variables.text("MASTER_ADDR", "WORLD_SIZE");
  std::int64_t port = variables.number("MASTER_PORT", "WORLD_SIZE", 1, highest_port);
  const std::string agent = "TORCHELASTIC_USE_AGENT_STORE";
  if (variables.has(agent) && variables.text(agent, agent) == "True") port = port_beside(port);
  launch.port = static_cast<std::uint16_t>(port);
  return launch;
}

// SLURM_NTASKS is what the job asked for, in the shell of salloc and in batch scripts as well,
// where SLURM_PROCID is 0: only steps say how many tasks they have. SLURM_LAUNCH_NODE_IPADDR is
// where srun was called, a login node perhaps, and nobody of the step need be there.
Launch launch_of_slurm(const Variables& variables, std::int64_t step, bool needs_address) {
  const std::string tasks =
      variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Launch launch = variables.launch("Slurm", "SLURM_PROCID", tasks, "SLURM_LOCALID");
  if (launch.size == 1 || !needs_address) return launch;
  const std::string nodes =
      variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  launch.host = first_host(nodes, variables.text(nodes, "SLURM_STEP_ID"));
  const std::int64_t job =
      variables.number("SLURM_JOB_ID", "SLURM_STEP_ID", 0, std::int64_t{0xffffffff});
  launch.port = static_cast<std::uint16_t>(port_of_step(job, step));
  return launch;
}

std::optional<Launch> launch_of_launcher(const Variables& variables, bool needs_address) {
  if (variables.has("RANK") && variables.has("WORLD_SIZE")) {
    return launch_of_torchrun(variables, needs_address);
  }
  if (variables.has("OMPI_COMM_WORLD_RANK")) {
    Launch launch = variables.launch("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_RANK");
    launch.through_mpi = true;
    return launch;
  }
  if (variables.has("SLURM_STEP_ID")) {
    const std::int64_t step =
        variables.number("SLURM_STEP_ID", "SLURM_STEP_ID", 0, std::int64_t{0xffffffff});
    // The shell of salloc is one, with PMIX_RANK=0 where PMIx is the default.
    if (step > highest_step) return std::nullopt;
    return launch_of_slurm(variables, step, needs_address);
  }
  if (variables.has("PMIX_RANK") && variables.has("PMIX_NAMESPACE")) {
    const std::int64_t rank =
        variables.number("PMIX_RANK", "PMIX_NAMESPACE", 0, most_processes - 1);
    return Launch{.by = "PMIx", .rank = rank, .size = 0, .through_mpi = true};
  }
  return std::nullopt;
}

void set_address(Launch& launch, const std::string& rendezvous) {
  const std::string flag = "--rendezvous";
  const std::size_t colon = rendezvous.rfind(':');
  std::string host = rendezvous.substr(0, colon);
  if (colon == std::string::npos || host.empty() || colon + 1 == rendezvous.size()) {
    fail_flag(flag, fmt::format("\"{}\" is not HOST:PORT, as node1:29500", rendezvous));
  }
  if (host.front() == '[' && host.back() == ']' && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of("[]:") != std::string::npos) {
    fail_flag(flag, fmt::format("\"{}\" is not HOST:PORT; an IPv6 address stands in brackets, as "
                                "[fe80::1]:29500",
                                rendezvous));
  }
  const std::string text = rendezvous.substr(colon + 1);
  const std::optional<std::int64_t> port = whole_number(text);
  if (!port || *port < 1 || *port > highest_port) {
    fail_flag(flag, fmt::format("the port \"{}\" is not a whole number from 1 to {}", text,
                                highest_port));
  }
  launch.host = host;
  launch.port = static_cast<std::uint16_t>(*port);
  launch.through_mpi = false;
}

Launch launch_of_flags(const LaunchFlags& flags) {
  if (!flags.processes) fail_flag("--rank", "needs --processes, how many there are");
  if (!flags.rank) fail_flag("--processes", "needs --rank, which of them this is");
  if (*flags.processes < 1 || *flags.processes > most_processes) {
    fail_flag("--processes",
              fmt::format("{} is not from 1 to {}", *flags.processes, most_processes));
  }
  if (*flags.rank < 0 || *flags.rank >= *flags.processes) {
    fail_flag("--rank", fmt::format("{} is not from 0 to {}, as --processes is {}", *flags.rank,
                                    *flags.processes - 1, *flags.processes));
  }
  Launch launch{.by = "flags", .rank = *flags.rank, .size = *flags.processes};
  if (flags.rendezvous) {
    set_address(launch, *flags.rendezvous);
  } else if (launch.size > 1) {
    fail_flag("--processes", "needs --rendezvous HOST:PORT, where rank 0 listens");
  }
  return launch;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<Launch> launch_of(const Environment& environment, const LaunchFlags& flags) {
  if (flags.rank || flags.processes) return launch_of_flags(flags);
  std::optional<Launch> launch =
      launch_of_launcher(Variables(environment), /*needs_address=*/!flags.rendezvous);
  if (!flags.rendezvous) return launch;
  if (!launch || launch->size == 0) {
    fail_flag("--rendezvous", "needs --rank and --processes, which nothing here says");
  }
  set_address(*launch, *flags.rendezvous);
  return launch;
}

std::string first_host(const std::string& variable, const std::string& list) {
  const auto fail = [&] { fail_launch(variable, fmt::format("\"{}\" is no list of hosts", list)); };
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const std::size_t close = list.find(']', i);
    const std::size_t digits = list.find_first_not_of("0123456789", i + 1);
    if (close == std::string::npos || digits == i + 1) fail();
    if (list.find_first_not_of("0123456789-,", i + 1) != close) fail();
    host += list.substr(i + 1, digits - i - 1);
    i = close;
  }
  if (host.empty() || host.find_first_of("] \t") != std::string::npos) fail();
  return host;
}

}  // namespace shardsim
