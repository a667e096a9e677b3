#include "base/gzip.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

// "hello\n" as gzip 1.12 compresses it: printf 'hello\n' | gzip -n | xxd -i
const std::string hello(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00"
    "\x20\x30\x3a\x36\x06\x00\x00\x00",
    26);

}  // namespace

TEST_CASE("a gzip file is decompressed, of several members each") {
  CHECK(gunzip(hello, "a.gz") == "hello\n");
  CHECK(gunzip(hello + hello, "a.gz") == "hello\nhello\n");
}

TEST_CASE("a damaged gzip file is an error") {
  for (const std::size_t length : {2U, 10U, 17U, 25U}) {
    CHECK_THROWS_WITH(gunzip(hello.substr(0, length), "a.gz"), "a.gz: gzip: ends too early");
  }
  std::string flipped = hello;
  flipped[13] ^= 1;
  CHECK_THROWS_WITH(gunzip(flipped, "a.gz"), "a.gz: gzip: damaged");
  CHECK_THROWS_WITH(gunzip(hello + "rest", "a.gz"), "a.gz: gzip: damaged");
}

TEST_CASE("only what begins as gzip does is decompressed") {
  const std::string path =
      std::filesystem::temp_directory_path() / ("shardsim-gzip-" + std::to_string(::getpid()));
  write_file(path, hello);
  CHECK(read_maybe_gzip(path) == "hello\n");
  write_file(path, "hello\n");
  CHECK(read_maybe_gzip(path) == "hello\n");
  std::filesystem::remove(path);
}
