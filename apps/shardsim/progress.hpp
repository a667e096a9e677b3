// A line on standard error that says how far a long command is: only on a terminal, only after two
// seconds, gone when the work is done.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace shardsim {

class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(const std::string& what);
  void clear();

 private:
  std::size_t total_;
  std::size_t begun_ = 0;
  bool on_terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace shardsim
