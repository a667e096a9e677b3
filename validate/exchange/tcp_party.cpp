#include "validate/exchange/tcp_party.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "base/text.hpp"
#include "validate/exchange/tcp_messages.hpp"

namespace shardsim {

std::vector<std::string> TcpParty::all_gather(const std::string& mine) {
  const std::lock_guard lock(mutex_);
  read_what_came();
  throw_failure();
  const Bytes length(static_cast<std::int64_t>(mine.size()));
  if (length.count() > longest_message) {
    fail(fmt::format("{} gives {} to all, more than {}", name(rank()), format_bytes(length),
                     format_bytes(Bytes(longest_message))));
    flush();
    throw_failure();
  }
  std::vector<std::string> all = gather(mine);
  if (has_failed()) flush();
  throw_failure();
  return all;
}

void TcpParty::check() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  read_what_came();
  throw_failure();
}

void TcpParty::abort(int code) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) {
    fail(fmt::format("{} ended all processes with exit code {}", name(rank()), code));
    flush();
  }
  std::_Exit(code);
}

bool TcpParty::run_until(const std::function<bool()>& done, Clock::time_point end) {
  while (!done()) {
    io_.restart();
    if (io_.run_one_until(end) == 0) return done();
  }
  return true;
}

void TcpParty::read_what_came() {
  io_.restart();
  io_.poll();
}

// For who does not read what it is told nobody waits long.
void TcpParty::flush() {
  run_until([this] { return has_said_all(); }, Clock::now() + std::chrono::seconds(2));
}

TcpParty::Clock::time_point TcpParty::patience_ends() const {
  constexpr double longest = 1e8;  // seconds: three years, which a clock's ticks can count
  const std::chrono::duration<double> wait(std::min(patience_.count(), longest));
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
}

void TcpParty::fail(const std::string& why) {
  if (failure_) return;
  failure_ = why;
  failure_message_ = write_message(TcpMessage::failure, why);
  tell_failure(failure_message_);
}

void TcpParty::learn(const std::string& why) {
  if (!failure_) failure_ = why;
}

void TcpParty::throw_failure() const {
  if (failure_) throw CannotRunError(*failure_);
}

std::string TcpParty::name(std::int64_t rank) const {
  return fmt::format("rank {} of {}", rank, launch_.size);
}

std::string TcpParty::meeting_point() const {
  const bool is_v6 = launch_.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? fmt::format("[{}]", launch_.host) : launch_.host;
  return fmt::format("{}:{}", host, launch_.port);
}

std::string TcpParty::patience_text() const { return fmt::format("{:g} s", patience_.count()); }

std::vector<boost::asio::ip::tcp::endpoint> TcpParty::endpoints() {
  using boost::asio::ip::tcp;
  tcp::resolver resolver(io_);
  boost::system::error_code error;
  const auto found = resolver.resolve(launch_.host, std::to_string(launch_.port),
                                      tcp::resolver::numeric_service, error);
  if (error == boost::asio::error::host_not_found) {
    throw CannotRunError(
        fmt::format("{} does not know the host \"{}\", where rank 0 is to listen; "
                    "another: --rendezvous HOST:PORT",
                    name(rank()), launch_.host));
  }
  if (error && error != boost::asio::error::host_not_found_try_again) {
    throw CannotRunError(fmt::format("{} cannot look up the host \"{}\": {}", name(rank()),
                                     launch_.host, error.message()));
  }
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  return endpoints;
}

}  // namespace shardsim
