#include "validate/exchange/thread_exchange.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"

namespace shardsim {
namespace {

// Where the threads meet.
class Meeting {
 public:
  explicit Meeting(std::int64_t ranks) : gathered_(at(ranks)), waiting_(ranks) {}

  [[nodiscard]] std::vector<std::string> gather(std::int64_t rank, const std::string& mine) {
    std::unique_lock lock(mutex_);
    check_locked();
    gathered_[at(rank)] = mine;
    const std::int64_t round = round_;
    if (--waiting_ == 0) {
      waiting_ = size();
      ++round_;
      last_ = gathered_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round || gone_; });
    if (round_ == round) check_locked();
    // Nobody ends the next round before this one has left.
    return last_;
  }

  void check() {
    const std::lock_guard lock(mutex_);
    check_locked();
  }

  void leave(std::int64_t rank) {
    const std::lock_guard lock(mutex_);
    if (!gone_) gone_ = rank;
    changed_.notify_all();
  }

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(gathered_.size()); }

 private:
  void check_locked() const {
    if (gone_) throw CannotRunError(fmt::format("rank {} has failed", *gone_));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> gathered_;
  std::vector<std::string> last_;
  std::int64_t waiting_;
  std::int64_t round_ = 0;
  std::optional<std::int64_t> gone_;
};

class ThreadExchange : public Exchange {
 public:
  ThreadExchange(Meeting& meeting, std::int64_t rank) : meeting_(meeting), rank_(rank) {}

  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override { return meeting_.size(); }
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& mine) override {
    return meeting_.gather(rank_, mine);
  }
  void check() override { meeting_.check(); }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }

 private:
  Meeting& meeting_;
  std::int64_t rank_;
};

}  // namespace

void run_in_threads(std::int64_t ranks, const std::function<void(Exchange&)>& work) {
  Meeting meeting(ranks);
  std::vector<std::exception_ptr> errors(at(ranks));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&meeting, &errors, &work, rank] {
      ThreadExchange exchange(meeting, rank);
      try {
        work(exchange);
      } catch (...) {
        errors[at(rank)] = std::current_exception();
        meeting.leave(rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace shardsim
