// Tells when nothing has happened for too long: a process that waits for one that is gone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace shardsim {

class Watchdog {
 public:
  // Calls `stalled` with the last thing that was told, once, from a thread of its own, when `tell`
  // has not been called for `patience`.
  Watchdog(std::chrono::duration<double> patience, std::function<void(const std::string&)> stalled);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void tell(const std::string& what);  // that is begun
  void rest();                         // until the next `tell` nothing is expected

 private:
  void watch();

  std::chrono::duration<double> patience_;
  std::function<void(const std::string&)> stalled_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::chrono::steady_clock::time_point last_;
  bool is_resting_ = true;
  bool ends_ = false;
  std::thread thread_;  // last: the others are there when it begins
};

}  // namespace shardsim
