#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/text.hpp"

namespace shardsim {
namespace {

// 0: not set, or no width.
std::size_t width_from_environment() {
  const char* columns = std::getenv("COLUMNS");
  if (columns == nullptr) return 0;
  const std::string_view text(columns);
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? width : 0;
}

}  // namespace

std::size_t terminal_width() {
  if (const std::size_t width = width_from_environment(); width > 0) return width;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return default_text_width;
}

}  // namespace shardsim
