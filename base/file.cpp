#include "base/file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/error.hpp"

namespace shardsim {

std::string read_file(const std::string& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw InputError({path, ""}, "is a directory, expected a file");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw InputError({path, ""}, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::ostringstream content;
  content << stream.rdbuf();
  return std::move(content).str();
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  bool written = false;
  {
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    written = stream.write(content.data(), static_cast<std::streamsize>(content.size())).flush().good();
  }
  int failure = errno;
  if (written) {
    std::error_code status;
    std::filesystem::rename(temporary, path, status);
    if (!status) return;
    failure = status.value();
  }
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  throw InputError({path, ""}, fmt::format("cannot be written: {}", std::strerror(failure)));
}

}  // namespace shardsim
