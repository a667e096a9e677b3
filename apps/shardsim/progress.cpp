#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

namespace shardsim {

Progress::Progress(std::size_t total) : total_(total), on_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::begin(const std::string& what) {
  ++begun_;
  const auto silent = std::chrono::seconds(2);
  if (!on_terminal_ || std::chrono::steady_clock::now() - start_ < silent) return;
  clear();
  std::cerr << fmt::format("{} of {}: {}", begun_, total_, what) << std::flush;
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace shardsim
