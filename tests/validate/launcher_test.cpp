// Environments as the launchers make them: torchrun's of local_elastic_agent.py, Slurm's from the
// print-outs of a batch script, of a step and of salloc's shell (srun(1), src/common/env.c), Open
// MPI's of mpirun.
#include "validate/exchange/launcher.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/error.hpp"

namespace shardsim {
namespace {

using Settings = std::map<std::string, std::string>;

std::optional<Launch> launch_in(const Settings& settings, const LaunchFlags& flags = {}) {
  return launch_of(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = settings.find(name);
        if (found == settings.end()) return std::nullopt;
        return found->second;
      },
      flags);
}

std::string launch_error(const Settings& settings, const LaunchFlags& flags = {}) {
  try {
    const auto launch = launch_in(settings, flags);
    return launch ? "none: by " + launch->by : "none: alone";
  } catch (const InputError& error) {
    return error.what();
  }
}

Settings with(Settings settings, const Settings& others) {
  for (const auto& [name, value] : others) settings[name] = value;
  return settings;
}

Settings without(Settings settings, const std::string& name) {
  settings.erase(name);
  return settings;
}

const Settings torchrun = {{"RANK", "3"},
                           {"WORLD_SIZE", "8"},
                           {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "node1"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
const Settings open_mpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                           {"PMIX_RANK", "2"},
                           {"PMIX_NAMESPACE", "prterun-node1-4711@1"}};
const Settings slurm_batch = {{"SLURM_JOB_ID", "200505"},
                              {"SLURM_NTASKS", "4"},
                              {"SLURM_PROCID", "0"},
                              {"SLURM_LOCALID", "0"},
                              {"SLURM_NODEID", "0"},
                              {"SLURM_JOB_NODELIST", "gnode[10,20,25,37]"},
                              {"SLURM_TASKS_PER_NODE", "1(x4)"}};
const Settings slurm_step = with(slurm_batch, {{"SLURM_STEP_ID", "0"},
                                               {"SLURM_STEP_NUM_TASKS", "3"},
                                               {"SLURM_NTASKS", "3"},
                                               {"SLURM_PROCID", "2"},
                                               {"SLURM_STEP_NODELIST", "gnode[20,25,37]"},
                                               {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}});
const Settings slurm_shell = with(slurm_batch, {{"SLURM_STEP_ID", "4294967290"},
                                                {"SLURM_STEP_NUM_TASKS", "1"},
                                                {"SLURM_STEP_NODELIST", "gnode10"},
                                                {"PMIX_RANK", "0"},
                                                {"PMIX_NAMESPACE", "slurm.pmix.200505.0"}});

TEST_CASE("a process that was started alone has no launch") {
  CHECK(launch_error({}) == "none: alone");
  // Set for all in a script of Slurm's, whose steps have their ranks from Slurm.
  CHECK(launch_error({{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}}) == "none: alone");
}

TEST_CASE("of torchrun: its variables") {
  const auto launch = launch_in(torchrun);
  REQUIRE(launch);
  CHECK(launch->by == "torchrun");
  CHECK(launch->rank == 3);
  CHECK(launch->size == 8);
  CHECK(launch->local_rank == 1);
  CHECK(launch->host == "node1");
  CHECK(launch->port == 29500);  // nobody's: the agent has a store elsewhere
  CHECK(!launch->through_mpi);
  CHECK(!launch_in(without(torchrun, "LOCAL_RANK"))->local_rank);
}

TEST_CASE("where torchrun's agent listens, rank 0 listens elsewhere") {
  const auto port_for = [](int master_port) {
    return launch_in(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                     {"MASTER_PORT", std::to_string(master_port)}}))
        ->port;
  };
  // 61440 + (29500 + 2048) mod 4096, and 31548 = 7 * 4096 + 2876.
  CHECK(port_for(29500) == 64316);
  std::set<int> of_neighbours;
  for (int port = 29500; port < 29500 + 4096; ++port) of_neighbours.insert(port_for(port));
  CHECK(of_neighbours.size() == 4096);
  CHECK(*of_neighbours.begin() == 61440);
  CHECK(*of_neighbours.rbegin() == 65535);
  for (int port = 1; port <= 65535; ++port) {
    if (port_for(port) == port) FAIL(port);
  }
}

TEST_CASE("of torchrun with one process no address is asked for") {
  const auto launch = launch_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  REQUIRE(launch);
  CHECK(launch->size == 1);
  CHECK(launch->host.empty());
}

TEST_CASE("of Open MPI: rank and size, and MPI connects them") {
  const auto launch = launch_in(open_mpi);
  REQUIRE(launch);
  CHECK(launch->by == "Open MPI");
  CHECK(launch->rank == 2);
  CHECK(launch->size == 4);
  CHECK(launch->local_rank == 0);
  CHECK(launch->through_mpi);
}

TEST_CASE("of Slurm: a step that srun started") {
  const auto launch = launch_in(slurm_step);
  REQUIRE(launch);
  CHECK(launch->by == "Slurm");
  CHECK(launch->rank == 2);
  CHECK(launch->size == 3);
  CHECK(launch->local_rank == 0);
  CHECK(launch->host == "gnode20");  // of the step, not of the job
  // 200505 = 48 * 4096 + 3897; 61440 + 3897 * 61 mod 4096, and 237717 = 58 * 4096 + 149.
  CHECK(launch->port == 61589);
  CHECK(!launch->through_mpi);
}

TEST_CASE("of Slurm: the tasks of the step, not of the job") {
  CHECK(launch_in(with(slurm_step, {{"SLURM_NTASKS", "16"}}))->size == 3);
  CHECK(launch_in(without(slurm_step, "SLURM_STEP_NUM_TASKS"))->size == 3);
}

TEST_CASE("of Slurm: steps of a job and jobs in a row have ports of their own") {
  std::set<int> ports;
  for (const char* job : {"200505", "200506"}) {
    for (int step = 0; step < 61; ++step) {
      ports.insert(launch_in(with(slurm_step,
                                  {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", std::to_string(step)}}))
                       ->port);
    }
  }
  CHECK(ports.size() == 2 * 61);
}

TEST_CASE("a batch script of Slurm's and the shell of salloc are no steps") {
  CHECK(launch_error(slurm_batch) == "none: alone");
  CHECK(launch_error(slurm_shell) == "none: alone");
}

TEST_CASE("of PMIx alone: only MPI knows how many there are") {
  const auto launch = launch_in({{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "job"}});
  REQUIRE(launch);
  CHECK(launch->by == "PMIx");
  CHECK(launch->rank == 5);
  CHECK(launch->size == 0);
  CHECK(launch->through_mpi);
  CHECK(launch_error({{"PMIX_RANK", "5"}}) == "none: alone");
}

TEST_CASE("where one launcher started another, the inner one counts") {
  CHECK(launch_in(with(slurm_step, torchrun))->by == "torchrun");
  CHECK(launch_in(with(slurm_step, open_mpi))->by == "Open MPI");
  CHECK(launch_in(with(open_mpi, torchrun))->by == "torchrun");
  // srun --mpi=pmix
  CHECK(launch_in(with(slurm_step, {{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "slurm"}}))->by ==
        "Slurm");
}

TEST_CASE("flags win over launchers") {
  const auto launch = launch_in(with(slurm_step, with(open_mpi, torchrun)),
                                {.rank = 1, .processes = 2, .rendezvous = "node7:1234"});
  REQUIRE(launch);
  CHECK(launch->by == "flags");
  CHECK(launch->rank == 1);
  CHECK(launch->size == 2);
  CHECK(!launch->local_rank);
  CHECK(launch->host == "node7");
  CHECK(launch->port == 1234);
  CHECK(!launch->through_mpi);
  CHECK(launch_in({}, {.rank = 0, .processes = 1})->by == "flags");
}

TEST_CASE("--rendezvous alone moves the meeting point of a launcher") {
  const LaunchFlags flags{.rendezvous = "[fe80::1]:29501"};
  const auto launch = launch_in(without(without(torchrun, "MASTER_ADDR"), "MASTER_PORT"), flags);
  REQUIRE(launch);
  CHECK(launch->by == "torchrun");
  CHECK(launch->rank == 3);
  CHECK(launch->host == "fe80::1");
  CHECK(launch->port == 29501);
  CHECK(!launch_in(open_mpi, flags)->through_mpi);
  CHECK(launch_in(slurm_step, flags)->host == "fe80::1");
  const std::string nothing =
      "command line: --rendezvous: needs --rank and --processes, which nothing here says";
  CHECK(launch_error({}, flags) == nothing);
  CHECK(launch_error({{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "job"}}, flags) == nothing);
}

TEST_CASE("flags that lack others or cannot be") {
  CHECK(launch_error({}, {.rank = 1}) ==
        "command line: --rank: needs --processes, how many there are");
  CHECK(launch_error(torchrun, {.processes = 2}) ==
        "command line: --processes: needs --rank, which of them this is");
  CHECK(launch_error({}, {.rank = 1, .processes = 2}) ==
        "command line: --processes: needs --rendezvous HOST:PORT, where rank 0 listens");
  CHECK(launch_error({}, {.rank = 2, .processes = 2, .rendezvous = "a:1"}) ==
        "command line: --rank: 2 is not from 0 to 1, as --processes is 2");
  CHECK(launch_error({}, {.rank = -1, .processes = 2, .rendezvous = "a:1"}) ==
        "command line: --rank: -1 is not from 0 to 1, as --processes is 2");
  CHECK(launch_error({}, {.rank = 0, .processes = 0}) ==
        "command line: --processes: 0 is not from 1 to 1048576");
  CHECK(launch_error({}, {.rank = 0, .processes = 1048577, .rendezvous = "a:1"}) ==
        "command line: --processes: 1048577 is not from 1 to 1048576");
}

TEST_CASE("a meeting point is HOST:PORT") {
  const auto error_of = [](const std::string& rendezvous) {
    return launch_error({}, {.rank = 0, .processes = 2, .rendezvous = rendezvous});
  };
  for (const char* text : {"", "node1", "node1:", ":29500", "29500"}) {
    CHECK(error_of(text) == "command line: --rendezvous: \"" + std::string(text) +
                                "\" is not HOST:PORT, as node1:29500");
  }
  for (const char* text : {"fe80::1:29500", "[fe80::1:29500", "[]:29500", "fe80::1]:29500"}) {
    CHECK(error_of(text) == "command line: --rendezvous: \"" + std::string(text) +
                                "\" is not HOST:PORT; an IPv6 address stands in brackets, as "
                                "[fe80::1]:29500");
  }
  for (const char* port : {"0", "70000", "-1", "http", "29500 "}) {
    CHECK(error_of("node1:" + std::string(port)) == "command line: --rendezvous: the port \"" +
                                                        std::string(port) +
                                                        "\" is not a whole number from 1 to 65535");
  }
}

TEST_CASE("variables that cannot be are named with their values") {
  const auto error_with = [](const Settings& base, const std::string& name,
                             const std::string& value) {
    return launch_error(with(base, {{name, value}}));
  };
  CHECK(error_with(torchrun, "RANK", "abc") ==
        "environment: RANK: \"abc\" is not a whole number from 0 to 1048575");
  CHECK(error_with(torchrun, "RANK", "-1") ==
        "environment: RANK: \"-1\" is not a whole number from 0 to 1048575");
  CHECK(error_with(torchrun, "RANK", "") == "environment: RANK: empty");
  CHECK(error_with(torchrun, "RANK", "8") ==
        "environment: RANK: 8 of only 8 processes (WORLD_SIZE)");
  CHECK(error_with(torchrun, "WORLD_SIZE", "1048577") ==
        "environment: WORLD_SIZE: \"1048577\" is not a whole number from 1 to 1048576");
  CHECK(
      error_with(torchrun, "WORLD_SIZE", "99999999999999999999") ==
      "environment: WORLD_SIZE: \"99999999999999999999\" is not a whole number from 1 to 1048576");
  CHECK(error_with(torchrun, "LOCAL_RANK", "8") ==
        "environment: LOCAL_RANK: \"8\" is not a whole number from 0 to 7");
  CHECK(error_with(torchrun, "MASTER_PORT", "0") ==
        "environment: MASTER_PORT: \"0\" is not a whole number from 1 to 65535");
  CHECK(error_with(torchrun, "MASTER_PORT", "70000") ==
        "environment: MASTER_PORT: \"70000\" is not a whole number from 1 to 65535");
  CHECK(error_with(slurm_step, "SLURM_STEP_ID", "batch") ==
        "environment: SLURM_STEP_ID: \"batch\" is not a whole number from 0 to 4294967295");
  CHECK(error_with(slurm_step, "SLURM_STEP_NODELIST", "gnode[20") ==
        "environment: SLURM_STEP_NODELIST: \"gnode[20\" is no list of hosts");
}

TEST_CASE("variables that others need are named where they lack") {
  CHECK(launch_error(without(torchrun, "MASTER_ADDR")) ==
        "environment: MASTER_ADDR: not set, though WORLD_SIZE is");
  CHECK(launch_error(without(torchrun, "MASTER_PORT")) ==
        "environment: MASTER_PORT: not set, though WORLD_SIZE is");
  CHECK(launch_error(without(open_mpi, "OMPI_COMM_WORLD_SIZE")) ==
        "environment: OMPI_COMM_WORLD_SIZE: not set, though OMPI_COMM_WORLD_RANK is");
  CHECK(launch_error(without(slurm_step, "SLURM_JOB_ID")) ==
        "environment: SLURM_JOB_ID: not set, though SLURM_STEP_ID is");
  CHECK(launch_error(without(without(slurm_step, "SLURM_STEP_NODELIST"), "SLURM_JOB_NODELIST")) ==
        "environment: SLURM_JOB_NODELIST: not set, though SLURM_STEP_ID is");
}

TEST_CASE("the first host of Slurm's lists") {
  for (const auto& [list, host] : Settings{{"node1", "node1"},
                                           {"node1,node2", "node1"},
                                           {"node[003-010,12],other", "node003"},
                                           {"node[7]", "node7"},
                                           {"node[3,5-7]-ib.cluster,x", "node3-ib.cluster"},
                                           {"rack[02-10,12]n[1,3],login", "rack02n1"},
                                           {"10.0.0.[4-7]", "10.0.0.4"}}) {
    INFO(list);
    CHECK(first_host("V", list) == host);
  }
  for (const std::string list :
       {"", ",a", "a[", "a[]", "a[-3]", "a[,3]", "a[x-y]", "a[1-2", "a1]", "a[1[2]]", "a b"}) {
    CHECK_THROWS_WITH(first_host("V", list),
                      "environment: V: \"" + list + "\" is no list of hosts");
  }
}

}  // namespace
}  // namespace shardsim
