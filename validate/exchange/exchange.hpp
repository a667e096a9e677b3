// What the processes of a job tell each other apart from the communication of a plan: names of
// hosts, times, errors, NCCL's unique id. Slow and small: nothing of it is measured.
//
// Implementations: TcpExchange (tcp_exchange.hpp) for processes that torchrun, Slurm or a user
// started, MpiExchange (mpi_exchange.hpp) for those of MPI, ThreadExchange (thread_exchange.hpp)
// for the threads of one process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardsim {

class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  [[nodiscard]] virtual std::int64_t rank() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;

  // What every one gives, by rank. All call it, in the same order. Throws CannotRunError where one
  // is gone or does not come in time.
  [[nodiscard]] virtual std::vector<std::string> all_gather(const std::string& mine) = 0;

  // Throws CannotRunError where another is known to be gone; never waits.
  virtual void check() = 0;

  // Ends all processes, whatever they wait for.
  [[noreturn]] virtual void abort(int code) = 0;
};

// Numbers that every process gives, by rank.
[[nodiscard]] std::vector<std::vector<double>> exchange_numbers(Exchange& exchange,
                                                                const std::vector<double>& mine);

// All processes have tried something that may fail; `error` is what this one would say, empty
// where it could. Nothing where all could. Else what it says: its own error where no process of a
// lower rank has the same, else nothing to say (an empty text).
[[nodiscard]] std::optional<std::string> disagreement(Exchange& exchange, const std::string& error);

}  // namespace shardsim
