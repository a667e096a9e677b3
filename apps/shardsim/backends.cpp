#include "backends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "processes.hpp"
#include "validate/backends/mpi_backend.hpp"
#include "validate/backends/nccl_plugin.hpp"
#include "validate/exchange/mpi_exchange.hpp"
#include "validate/exchange/tcp_exchange.hpp"
#include "validate/exchange/thread_exchange.hpp"
#include "validate/exchange/watchdog.hpp"

namespace shardsim {
namespace {

using Work = std::function<int(Backend&)>;
using Make = std::function<std::unique_ptr<Backend>(Exchange&, Watchdog&)>;

// A rank, and who notices when it waits in vain.
class Rank {
 public:
  explicit Rank(Seconds patience)
      : patience_(patience),
        watchdog_(std::chrono::duration<double>(patience.count()),
                  [this](const std::string& what) { stall(what); }) {}

  [[nodiscard]] Watchdog& watchdog() { return watchdog_; }

  // The exit code of `work` with the backend that is made.
  [[nodiscard]] int run(Exchange& exchange, const Make& make, const Work& work) {
    exchange_ = &exchange;
    try {
      const std::unique_ptr<Backend> backend = made(exchange, make);
      return backend ? work(*backend) : exit_cannot_run;
    } catch (const CannotRunError& error) {
      return fail(exchange, error.what(), exit_cannot_run);
    } catch (const std::exception& error) {
      return fail(exchange, fmt::format("internal error: {}", error.what()), exit_bug);
    }
  }

 private:
  // Nothing where any rank has none: nobody goes on alone.
  [[nodiscard]] std::unique_ptr<Backend> made(Exchange& exchange, const Make& make) {
    std::unique_ptr<Backend> backend;
    std::string error;
    try {
      backend = make(exchange, watchdog_);
    } catch (const CannotRunError& wrong) {
      error = wrong.what();
    }
    const std::optional<std::string> mine = disagreement(exchange, error);
    if (!mine) return backend;
    if (!mine->empty()) say(fmt::format("rank {}: {}", exchange.rank(), *mine));
    return nullptr;
  }

  // Ends all processes.
  [[nodiscard]] static int fail(Exchange& exchange, const std::string& error, int code) {
    say(fmt::format("rank {}: {}", exchange.rank(), error));
    exchange.abort(code);
    return code;
  }

  // The others, who wait for the same, are given the time to say so.
  void stall(const std::string& what) {
    Exchange* exchange = exchange_;
    const std::string who = exchange == nullptr ? "" : fmt::format("rank {}: ", exchange->rank());
    say(fmt::format("{}waits in vain for {} s: {}", who, patience_.count(), what));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    if (exchange == nullptr) std::_Exit(exit_cannot_run);
    exchange->abort(exit_cannot_run);
  }

  Seconds patience_;
  std::atomic<Exchange*> exchange_ = nullptr;  // once it is there
  Watchdog watchdog_;
};

int on_mpi(const BackendOptions& options, const Work& work) {
  Rank rank(options.patience);
  const auto exchange = make_mpi_exchange(rank.watchdog(), options.chooses_algorithms);
  return rank.run(*exchange, make_mpi_backend, work);
}

// A thread for each.
int on_gpus_of_node(const BackendOptions& options, const NcclPlugin& plugin, const Work& work) {
  const int gpus = plugin.gpus_of_process();
  if (gpus == 0) throw CannotRunError("CUDA shows no GPU: --backend mpi runs plans on CPUs");
  const std::int64_t ranks = options.ranks ? options.ranks() : gpus;
  if (ranks > gpus) {
    throw CannotRunError(
        fmt::format("{} are asked for and there are {} here: torchrun, srun or mpirun start a "
                    "process for each, on several nodes",
                    counted(ranks, "GPU"), gpus));
  }
  std::atomic<int> highest = exit_done;
  run_in_threads(ranks, [&](Exchange& exchange) {
    Rank rank(options.patience);
    const auto make = [&](Exchange& with, Watchdog& watchdog) {
      return plugin.make_backend(with, watchdog, static_cast<int>(with.rank()));
    };
    const int code = rank.run(exchange, make, work);
    int seen = highest;
    while (code > seen && !highest.compare_exchange_weak(seen, code)) {
    }
  });
  return highest;
}

// Of the processes on its host, how many have a lower rank: its GPU among those of the host.
std::int64_t local_rank(Exchange& exchange) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");  // no two hosts have the same
  std::string host;
  std::getline(file, host);
  const std::vector<std::string> hosts = exchange.all_gather(host);
  return std::count(hosts.begin(), hosts.begin() + exchange.rank(), host);
}

// The only one, where what started the process shows it no other.
int gpu_of(const NcclPlugin& plugin, std::int64_t local_rank) {
  const int gpus = plugin.gpus_of_process();
  if (gpus == 1) return 0;
  if (local_rank < gpus) return static_cast<int>(local_rank);
  throw CannotRunError(fmt::format("is the {}. process of its host, which has {}", local_rank + 1,
                                   counted(gpus, "GPU")));
}

// One process of several, and one GPU.
int on_one_gpu(const BackendOptions& options, const NcclPlugin& plugin, const Launch& launch,
               const Work& work) {
  Rank rank(options.patience);
  const std::unique_ptr<Exchange> exchange =
      launch.through_mpi ? make_mpi_exchange(rank.watchdog(), /*chooses_algorithms=*/false)
                         : make_tcp_exchange(launch, options.patience);
  const std::int64_t local = launch.local_rank ? *launch.local_rank : local_rank(*exchange);
  const auto make = [&](Exchange& with, Watchdog& watchdog) {
    return plugin.make_backend(with, watchdog, gpu_of(plugin, local));
  };
  return rank.run(*exchange, make, work);
}

int on_nccl(const BackendOptions& options, const Work& work) {
  const NcclPlugin& plugin = load_nccl_plugin();
  const std::optional<Launch> launch = launch_of(process_environment, options.launch);
  return launch ? on_one_gpu(options, plugin, *launch, work)
                : on_gpus_of_node(options, plugin, work);
}

}  // namespace

int on_backend(const BackendOptions& options, const Work& work) {
  return options.name == "nccl" ? on_nccl(options, work) : on_mpi(options, work);
}

}  // namespace shardsim
