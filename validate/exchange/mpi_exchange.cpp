#include "validate/exchange/mpi_exchange.hpp"

#include <mpi.h>

#include <cstdlib>

#include "base/index.hpp"
#include "validate/exchange/mpi_algorithms.hpp"
#include "validate/exchange/mpi_calls.hpp"

namespace shardsim {
namespace {

class MpiExchange : public Exchange {
 public:
  explicit MpiExchange(Watchdog& watchdog);
  ~MpiExchange() override;
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& mine) override;
  void check() override {}  // MPI ends all when one is gone
  [[noreturn]] void abort(int code) override;

 private:
  Watchdog& watchdog_;
  int rank_ = 0;
  int size_ = 1;
};

MpiExchange::MpiExchange(Watchdog& watchdog) : watchdog_(watchdog) {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_));
}

MpiExchange::~MpiExchange() {
  watchdog_.tell("the end of all processes");
  MPI_Finalize();
  watchdog_.rest();
}

std::vector<std::string> MpiExchange::all_gather(const std::string& mine) {
  watchdog_.tell("what all processes exchange");
  const int length = mpi_count(Bytes(static_cast<std::int64_t>(mine.size())), 1);
  std::vector<int> lengths(at(size_));
  check_mpi(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD));
  std::vector<int> begins(at(size_), 0);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    begins[i] = mpi_count(Bytes(total), 1);
    total += lengths[i];
  }
  std::string all(at(total), '\0');
  check_mpi(MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(),
                           MPI_CHAR, MPI_COMM_WORLD));
  watchdog_.rest();
  std::vector<std::string> given;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    given.push_back(all.substr(at(begins[i]), at(lengths[i])));
  }
  return given;
}

void MpiExchange::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace

std::unique_ptr<Exchange> make_mpi_exchange(Watchdog& watchdog, bool chooses_algorithms) {
  if (chooses_algorithms) let_mpi_algorithms_be_chosen();
  return std::make_unique<MpiExchange>(watchdog);
}

}  // namespace shardsim
