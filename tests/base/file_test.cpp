#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/error.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

// An empty folder for one test case.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("shardsim-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("what was written is read back, byte for byte") {
  const Folder folder;
  const std::string content("first\r\nsecond\0third\xff", 20);
  write_file(folder.file("a"), content);
  CHECK(read_file(folder.file("a")) == content);
  write_file(folder.file("a"), "");
  CHECK(read_file(folder.file("a")).empty());
}

TEST_CASE("writing leaves nothing behind but the file") {
  const Folder folder;
  write_file(folder.file("a"), "old");
  write_file(folder.file("a"), "new");
  CHECK(folder.listing() == std::vector<std::string>{"a"});
  CHECK(read_file(folder.file("a")) == "new");
}

// A file that is replaced, not rewritten, keeps its old content for who has it open or linked.
TEST_CASE("a reader of the old file never sees half of the new one") {
  const Folder folder;
  write_file(folder.file("a"), "old");
  std::filesystem::create_hard_link(folder.file("a"), folder.file("link"));
  write_file(folder.file("a"), "new");
  CHECK(read_file(folder.file("link")) == "old");
}

TEST_CASE("a link stays a link and its target gets the content") {
  const Folder folder;
  write_file(folder.file("a"), "old");
  std::filesystem::create_symlink(folder.file("a"), folder.file("link"));
  write_file(folder.file("link"), "new");
  CHECK(std::filesystem::is_symlink(folder.file("link")));
  CHECK(read_file(folder.file("a")) == "new");
}

// As /dev/stdout and /dev/null: replacing one by a file would harm the whole machine.
TEST_CASE("a pipe stays a pipe and gets the content") {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  REQUIRE(reader >= 0);
  write_file(pipe, "content");
  std::array<char, 16> buffer{};
  const ssize_t size = ::read(reader, buffer.data(), buffer.size());
  ::close(reader);
  CHECK(size == 7);
  CHECK(std::string(buffer.data()) == "content");
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(folder.listing() == std::vector<std::string>{"pipe"});
}

// The target is a folder that is not empty, so the last step, the renaming, must fail; this holds
// for root too, whom no permission stops.
TEST_CASE("a failed write says why and leaves everything as it was") {
  const Folder folder;
  std::filesystem::create_directories(folder.file("taken/inside"));
  CHECK_THROWS_AS(write_file(folder.file("taken"), "content"), InputError);
  CHECK(folder.listing() == std::vector<std::string>{"taken"});
  CHECK(std::filesystem::is_directory(folder.file("taken/inside")));
}

TEST_CASE("places that cannot be written or read are named") {
  const Folder folder;
  const std::string missing = folder.file("missing/a");
  CHECK_THROWS_WITH(write_file(missing, "x"),
                    missing + ": cannot be written: No such file or directory");
  CHECK_THROWS_WITH(read_file(missing), missing + ": cannot be read: No such file or directory");
  CHECK_THROWS_WITH(read_file(folder.file("")),
                    folder.file("") + ": is a directory, expected a file");
}
