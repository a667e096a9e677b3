#include "validate/exchange/tcp_messages.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim {
namespace {

constexpr std::string_view magic = "shardsim";
constexpr std::size_t number_bytes = 8;
constexpr std::size_t longest_failure = 4096;

void put_number(std::uint64_t value, char* to) {
  for (std::size_t i = 0; i < number_bytes; ++i) to[i] = static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint64_t get_number(const char* from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < number_bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  }
  return value;
}

std::size_t longest_of(TcpMessage kind) {
  switch (kind) {
    case TcpMessage::ready:
    case TcpMessage::farewell:
      return 0;
    case TcpMessage::part:
    case TcpMessage::all:
      return at(longest_message);
    case TcpMessage::failure:
      return longest_failure;
  }
  return 0;
}

}  // namespace

TcpGreetingBytes write_greeting(const TcpGreeting& greeting) {
  TcpGreetingBytes bytes{};
  std::copy(magic.begin(), magic.end(), bytes.begin());
  put_number(static_cast<std::uint64_t>(greeting.version), &bytes[8]);
  put_number(static_cast<std::uint64_t>(greeting.rank), &bytes[16]);
  put_number(static_cast<std::uint64_t>(greeting.size), &bytes[24]);
  return bytes;
}

std::optional<TcpGreeting> read_greeting(const TcpGreetingBytes& bytes) {
  if (!std::equal(magic.begin(), magic.end(), bytes.begin())) return std::nullopt;
  return TcpGreeting{.version = static_cast<std::int64_t>(get_number(&bytes[8])),
                     .rank = static_cast<std::int64_t>(get_number(&bytes[16])),
                     .size = static_cast<std::int64_t>(get_number(&bytes[24]))};
}

std::string write_message(TcpMessage kind, std::string_view body) {
  if (kind == TcpMessage::failure) body = body.substr(0, longest_failure);
  std::string bytes(1 + number_bytes, static_cast<char>(kind));
  put_number(body.size(), &bytes[1]);
  bytes += body;
  return bytes;
}

std::optional<TcpMessageHead> read_head(const TcpHeadBytes& bytes) {
  const auto kind = static_cast<TcpMessage>(bytes[0]);
  if (kind < TcpMessage::ready || kind > TcpMessage::farewell) return std::nullopt;
  const std::uint64_t length = get_number(&bytes[1]);
  if (length > longest_of(kind)) return std::nullopt;
  return TcpMessageHead{.kind = kind, .length = length};
}

std::string write_parts(const std::vector<std::string>& parts) {
  std::string body(parts.size() * number_bytes, '\0');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    put_number(parts[i].size(), &body[i * number_bytes]);
  }
  for (const std::string& part : parts) body += part;
  return body;
}

std::optional<std::vector<std::string>> read_parts(std::string_view body, std::int64_t count) {
  if (body.size() / number_bytes < at(count)) return std::nullopt;
  std::string_view rest = body.substr(at(count) * number_bytes);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < at(count); ++i) {
    const std::uint64_t length = get_number(&body[i * number_bytes]);
    if (length > rest.size()) return std::nullopt;
    parts.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (!rest.empty()) return std::nullopt;
  return parts;
}

}  // namespace shardsim
