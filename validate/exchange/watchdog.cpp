#include "validate/exchange/watchdog.hpp"

#include <utility>

namespace shardsim {

Watchdog::Watchdog(std::chrono::duration<double> patience,
                   std::function<void(const std::string&)> stalled)
    : patience_(patience), stalled_(std::move(stalled)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::tell(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  last_ = std::chrono::steady_clock::now();
  is_resting_ = false;
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  is_resting_ = true;
}

void Watchdog::watch() {
  // Seen late by at most a tenth.
  const auto nap = patience_ / 10;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, nap, [this] { return ends_; })) {
    if (is_resting_ || std::chrono::steady_clock::now() - last_ < patience_) continue;
    const std::string what = what_;
    is_resting_ = true;
    lock.unlock();
    stalled_(what);
    lock.lock();
  }
}

}  // namespace shardsim
