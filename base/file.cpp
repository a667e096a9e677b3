#include "base/file.hpp"

#include <unistd.h>

#include <fmt/format.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
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
  if (!stream)
    throw InputError({path, ""}, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::ostringstream content;
  content << stream.rdbuf();
  return std::move(content).str();
}

void write_file(const std::string& path, std::string_view content) {
  namespace fs = std::filesystem;
  std::error_code status;
  if (fs::is_directory(path, status)) {
    throw InputError({path, ""}, "is a directory, expected a file");
  }
  // A link stays a link, to a new file; pipes and devices are written to, never replaced.
  const fs::path target =
      fs::is_symlink(path, status) ? fs::canonical(path, status) : fs::path(path);
  const bool in_place = fs::is_other(target, status);
  const fs::path written_to =
      in_place ? target : fs::path(fmt::format("{}.{}.tmp", target.string(), ::getpid()));
  bool written = false;
  {
    std::ofstream stream(written_to, std::ios::binary | std::ios::trunc);
    const auto size = static_cast<std::streamsize>(content.size());
    written = stream.write(content.data(), size).flush().good();
  }
  if (written && in_place) return;
  int failure = errno;
  if (written) {
    fs::rename(written_to, target, status);
    if (!status) return;
    failure = status.value();
  }
  if (!in_place) fs::remove(written_to, status);
  throw InputError({path, ""}, fmt::format("cannot be written: {}", std::strerror(failure)));
}

}  // namespace shardsim
