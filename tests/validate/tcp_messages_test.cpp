#include "validate/exchange/tcp_messages.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace shardsim {
namespace {

TcpHeadBytes head_bytes(const std::string& message) {
  TcpHeadBytes bytes{};
  std::copy_n(message.begin(), bytes.size(), bytes.begin());
  return bytes;
}

// The kind, then a length of 8 bytes, the lowest first.
std::optional<TcpMessageHead> head_of(TcpMessage kind, std::uint64_t length) {
  std::string bytes(1, static_cast<char>(kind));
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return read_head(head_bytes(bytes));
}

TEST_CASE("a greeting is read as it was written") {
  const auto read = read_greeting(write_greeting({.rank = 258, .size = 1 << 20}));
  REQUIRE(read);
  CHECK(read->version == exchange_version);
  CHECK(read->rank == 258);
  CHECK(read->size == 1 << 20);
}

TEST_CASE("what begins with another word is no greeting") {
  TcpGreetingBytes bytes = write_greeting({.rank = 1, .size = 2});
  bytes[0] = 'S';
  CHECK(!read_greeting(bytes));
  CHECK(!read_greeting({}));
}

TEST_CASE("the head of a message is read as it was written") {
  const auto head = read_head(head_bytes(write_message(TcpMessage::part, std::string(300, 'x'))));
  REQUIRE(head);
  CHECK(head->kind == TcpMessage::part);
  CHECK(head->length == 300);
}

TEST_CASE("a head that claims too much, or an unknown kind, is none") {
  CHECK(head_of(TcpMessage::part, 64 << 20));
  CHECK(!head_of(TcpMessage::part, (64 << 20) + 1));
  CHECK(!head_of(TcpMessage::all, std::uint64_t{1} << 63));
  CHECK(head_of(TcpMessage::failure, 4096));
  CHECK(!head_of(TcpMessage::failure, 4097));
  CHECK(!head_of(TcpMessage::ready, 1));
  CHECK(!head_of(TcpMessage::farewell, 1));
  CHECK(!head_of(TcpMessage{0}, 0));
  CHECK(!head_of(TcpMessage{6}, 0));
  CHECK(!head_of(TcpMessage{255}, 0));
}

TEST_CASE("a failure is cut to what a message of it may hold") {
  const std::string message = write_message(TcpMessage::failure, std::string(5000, 'x'));
  const auto head = read_head(head_bytes(message));
  REQUIRE(head);
  CHECK(head->length == 4096);
  CHECK(message.size() == 9 + 4096);
}

TEST_CASE("parts are read as they were written") {
  for (const std::vector<std::string>& parts :
       {std::vector<std::string>{""}, {"a", "", "bcd"}, {"", ""}, {std::string(1000, '\0'), "x"}}) {
    const auto count = static_cast<std::int64_t>(parts.size());
    CHECK(read_parts(write_parts(parts), count) == parts);
    CHECK(!read_parts(write_parts(parts), count + 1));
    CHECK(!read_parts(write_parts(parts) + "x", count));
    CHECK(!read_parts(write_parts(parts).substr(1), count));
  }
}

TEST_CASE("lengths of parts that do not add up are refused") {
  std::string body = write_parts({"ab", "cd"});
  body[0] = 3;  // of the first
  CHECK(!read_parts(body, 2));
  body[7] = '\xff';
  CHECK(!read_parts(body, 2));
  CHECK(!read_parts("", 1));
  CHECK(!read_parts("1234567", 1 << 20));
}

}  // namespace
}  // namespace shardsim
