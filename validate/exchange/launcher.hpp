// Which of how many processes this is, and where rank 0 listens: from flags, or from what the
// program that started it left in its environment.
//
//   torchrun --nproc-per-node 8 --no-python shardsim validate ...
//     RANK=3 WORLD_SIZE=8 LOCAL_RANK=3 MASTER_ADDR=node1 MASTER_PORT=29500
//     TORCHELASTIC_USE_AGENT_STORE=True
//     -> by torchrun, rank 3 of 8, local rank 3, rank 0 at node1:64316
//
// In this order, the first that applies:
//
//   flags      --rank, --processes and --rendezvous, all three (no address for one process)
//   torchrun   RANK and WORLD_SIZE
//   Open MPI   OMPI_COMM_WORLD_RANK: before Slurm, for mpirun in a job of Slurm sees both
//   Slurm      SLURM_STEP_ID of a step that srun started
//   PMIx       PMIX_RANK and PMIX_NAMESPACE
//
// --rendezvous alone replaces the address that a launcher gives.
//
// Sources: PyTorch, torch/distributed/elastic/agent/server/local_elastic_agent.py (the variables)
// and rendezvous/{static_tcp,dynamic}_rendezvous.py (who listens at MASTER_PORT: the agent of the
// node of rank 0, unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1). Slurm, srun(1) "OUTPUT ENVIRONMENT
// VARIABLES", src/common/env.c and slurm/slurm.h. All read on 2026-11-22.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace shardsim {

struct Launch {
  std::string by = {};  // "torchrun", "Slurm", "Open MPI", "PMIx", "flags"
  std::int64_t rank = 0;
  std::int64_t size = 1;                        // 0 of PMIx alone: only MPI knows
  std::optional<std::int64_t> local_rank = {};  // on its host, where the launcher says so
  std::string host = {};                        // where rank 0 listens; "" of one process
  std::uint16_t port = 0;
  bool through_mpi = false;  // rank and size are those of MPI_Init, which also connects them
};

// What the user said.
struct LaunchFlags {
  std::optional<std::int64_t> rank = {};
  std::optional<std::int64_t> processes = {};
  std::optional<std::string> rendezvous = {};  // HOST:PORT, [IPv6]:PORT
};

// The value of a variable; nothing where there is none.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

// Nothing for a process that was started alone. Throws InputError, with the place "command line" or
// "environment", for flags that lack others and for values that cannot be.
[[nodiscard]] std::optional<Launch> launch_of(const Environment& environment,
                                              const LaunchFlags& flags = {});

// The first host of Slurm's list: "rack[02-10,12]n[1,3],login" -> "rack02n1". Throws InputError
// with the name of the variable for what is no such list.
[[nodiscard]] std::string first_host(const std::string& variable, const std::string& list);

}  // namespace shardsim
