// What the processes of a TcpExchange say to each other, as bytes. Numbers are 8 bytes, the lowest
// first.
//
//   greeting   "shardsim", version, rank, size                  from a process to rank 0, once
//   message    kind (1 byte), length, as many bytes             from then on, both ways
//
//   ready      rank 0: all are here
//   part       to rank 0: what this one gives
//   all        rank 0: what all gave; of each its length, then of each its bytes
//   failure    why nothing goes on, as text
//   farewell   this one ends as it should
//
// Who reads believes nothing: a length beyond what its kind may have, an unknown kind or lengths
// that do not add up are no message, and no memory is taken for them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

inline constexpr std::int64_t exchange_version = 1;
// Of a message: what a process gives, and what all give together.
inline constexpr std::int64_t longest_message = std::int64_t{64} << 20;

struct TcpGreeting {
  std::int64_t version = exchange_version;
  std::int64_t rank = 0;
  std::int64_t size = 0;
};

enum class TcpMessage : std::uint8_t { ready = 1, part, all, failure, farewell };

struct TcpMessageHead {
  TcpMessage kind = TcpMessage::ready;
  std::size_t length = 0;
};

using TcpGreetingBytes = std::array<char, 32>;
using TcpHeadBytes = std::array<char, 9>;

[[nodiscard]] TcpGreetingBytes write_greeting(const TcpGreeting& greeting);
[[nodiscard]] std::optional<TcpGreeting> read_greeting(const TcpGreetingBytes& bytes);

[[nodiscard]] std::string write_message(TcpMessage kind, std::string_view body);
[[nodiscard]] std::optional<TcpMessageHead> read_head(const TcpHeadBytes& bytes);

// The body of `all`.
[[nodiscard]] std::string write_parts(const std::vector<std::string>& parts);
[[nodiscard]] std::optional<std::vector<std::string>> read_parts(std::string_view body,
                                                                 std::int64_t count);

}  // namespace shardsim
