#include "validate/exchange/tcp_hub.hpp"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "validate/exchange/tcp_connection.hpp"
#include "validate/exchange/tcp_party.hpp"

namespace shardsim {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// "rank 2", "ranks 2 and 5", "ranks 1, 2, 3 and 97 others".
std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t most_named = 8;
  std::vector<std::string> words;
  for (const std::int64_t rank : ranks) {
    if (words.size() == most_named) break;
    words.push_back(std::to_string(rank));
  }
  if (ranks.size() > words.size()) {
    words.push_back(counted(static_cast<std::int64_t>(ranks.size() - words.size()), "other"));
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

// Loopback where that is what was said, else all interfaces, whatever the host's name means here:
// Debian's /etc/hosts has it as 127.0.1.1.
std::optional<boost::asio::ip::address> only_interface(const std::string& host) {
  if (host == "localhost") return boost::asio::ip::address_v4::loopback();
  error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  if (error || !address.is_loopback()) return std::nullopt;
  return address;
}

// Who has come and not yet said who he is.
struct Newcomer {
  tcp::socket socket;
  TcpGreetingBytes greeting = {};
};

// One of the others.
struct Member {
  std::unique_ptr<TcpConnection> connection = {};
  std::optional<std::string> part = {};  // of what is gathered
  bool has_left = false;                 // with a farewell
};

class TcpHub : public TcpParty {
 public:
  TcpHub(const Launch& launch, Seconds patience);
  ~TcpHub() override;
  TcpHub(const TcpHub&) = delete;
  TcpHub& operator=(const TcpHub&) = delete;

 protected:
  std::vector<std::string> gather(const std::string& mine) override;
  void tell_failure(const std::string& message) override { say(message); }
  [[nodiscard]] bool has_said_all() const override;

 private:
  void open();
  error_code open_at(const tcp::endpoint& endpoint);
  void wait_for_all();
  void accept();
  void greet(tcp::socket socket);
  void welcome(tcp::socket socket, const TcpGreeting& greeting);
  [[nodiscard]] std::string objection(const TcpGreeting& greeting,
                                      const std::string& address) const;
  void receive(std::int64_t rank, TcpMessage kind, std::string body);
  void lose(std::int64_t rank, const std::string& why);
  void fail_of_who_left();
  void say(std::string_view bytes);
  [[nodiscard]] std::string name_at(std::int64_t rank) const;

  // What connections say, for as long as they do.
  const std::string ready_ = write_message(TcpMessage::ready, "");
  const std::string farewell_ = write_message(TcpMessage::farewell, "");
  const std::string too_late_ = write_message(
      TcpMessage::failure, fmt::format("all {} processes were there already", size()));
  std::string whole_;

  tcp::acceptor acceptor_{io()};
  std::vector<Member> members_;  // by rank; of rank 0 nothing
  std::int64_t here_ = 1;        // processes
  std::int64_t given_ = 0;       // parts of members
  bool gathers_ = false;
  std::vector<std::unique_ptr<TcpConnection>> turned_away_;
};

TcpHub::TcpHub(const Launch& launch, Seconds patience)
    : TcpParty(launch, patience), members_(at(launch.size)) {
  open();
  wait_for_all();
}

TcpHub::~TcpHub() {
  try {
    say(farewell_);
    flush();
  } catch (...) {
    // The others see their connections end instead.
  }
}

void TcpHub::open() {
  static_cast<void>(endpoints());  // throws: to an unknown host nobody can come
  const auto only = only_interface(launch().host);
  error_code error;
  if (only) {
    error = open_at({*only, launch().port});
  } else {
    error = open_at({tcp::v6(), launch().port});
    // Without IPv6.
    if (error == boost::asio::error::address_family_not_supported ||
        error == boost::system::errc::address_not_available) {
      error = open_at({tcp::v4(), launch().port});
    }
  }
  if (!error) return;
  throw CannotRunError(
      fmt::format("rank 0 cannot listen at {}: {}; elsewhere: --rendezvous HOST:PORT",
                  meeting_point(), error.message()));
}

error_code TcpHub::open_at(const tcp::endpoint& endpoint) {
  error_code error;
  if (acceptor_.is_open()) acceptor_.close(error);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6()) {
    acceptor_.set_option(boost::asio::ip::v6_only(false), error);
  }
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  return error;
}

void TcpHub::wait_for_all() {
  accept();
  run_until([this] { return has_failed() || here_ == size(); }, patience_ends());
  if (!has_failed() && here_ < size()) {
    std::vector<std::int64_t> missing;
    for (std::int64_t rank = 1; rank < size(); ++rank) {
      if (!members_[at(rank)].connection) missing.push_back(rank);
    }
    fail(fmt::format("{} of {} did not come within {} to {}", ranks_text(missing), size(),
                     patience_text(), meeting_point()));
  }
  if (has_failed()) flush();
  throw_failure();
  error_code ignored;
  acceptor_.close(ignored);
  say(ready_);
}

void TcpHub::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error == boost::asio::error::no_descriptors) {
      return fail(
          fmt::format("rank 0 cannot have more connections than {} of {}: {}; more: ulimit -n",
                      here_ - 1, size() - 1, error.message()));
    }
    // Any other error is of one connection that is no more (accept(2), "Error handling").
    if (!error) greet(std::move(socket));
    accept();
  });
}

// Who closes or does not begin as we do is dropped with what the handler owns; who says too little
// is kept there until the end.
void TcpHub::greet(tcp::socket socket) {
  auto newcomer = std::make_unique<Newcomer>(Newcomer{.socket = std::move(socket)});
  tcp::socket& from = newcomer->socket;
  const auto into = boost::asio::buffer(newcomer->greeting);
  boost::asio::async_read(
      from, into, [this, newcomer = std::move(newcomer)](error_code error, std::size_t /*bytes*/) {
        if (error) return;
        const auto greeting = read_greeting(newcomer->greeting);
        if (greeting) welcome(std::move(newcomer->socket), *greeting);
      });
}

void TcpHub::welcome(tcp::socket socket, const TcpGreeting& greeting) {
  auto connection = std::make_unique<TcpConnection>(std::move(socket));
  if (!has_failed() && here_ < size()) {
    const std::string wrong = objection(greeting, connection->address());
    if (!wrong.empty()) fail(wrong);
  }
  if (has_failed() || here_ == size()) {
    connection->say(has_failed() ? failure_message() : too_late_);
    turned_away_.push_back(std::move(connection));
    return;
  }
  const std::int64_t rank = greeting.rank;
  members_[at(rank)].connection = std::move(connection);
  ++here_;
  members_[at(rank)].connection->listen(
      [this, rank](TcpMessage kind, std::string body) { receive(rank, kind, std::move(body)); },
      [this, rank](const std::string& why) { lose(rank, why); });
}

std::string TcpHub::objection(const TcpGreeting& greeting, const std::string& address) const {
  if (greeting.version != exchange_version) {
    return fmt::format(
        "a process at {} speaks version {} of the exchange, rank 0 version {}: all "
        "need the same shardsim",
        address, greeting.version, exchange_version);
  }
  if (greeting.size != size()) {
    return fmt::format("rank {} at {} was started as one of {}, rank 0 as one of {}", greeting.rank,
                       address, greeting.size, size());
  }
  if (greeting.rank < 0 || greeting.rank >= size()) {
    return fmt::format("a process at {} says it is {}", address, name(greeting.rank));
  }
  if (greeting.rank == 0) {
    return fmt::format("two processes say they are {}: here and at {}", name(0), address);
  }
  const Member& there = members_[at(greeting.rank)];
  if (!there.connection) return {};
  return fmt::format("two processes say they are {}: at {} and at {}", name(greeting.rank),
                     there.connection->address(), address);
}

void TcpHub::receive(std::int64_t rank, TcpMessage kind, std::string body) {
  Member& member = members_[at(rank)];
  if (kind == TcpMessage::part && !member.part) {
    member.part = std::move(body);
    ++given_;
  } else if (kind == TcpMessage::failure) {
    fail(body);
  } else if (kind == TcpMessage::farewell) {
    member.has_left = true;
    if (gathers_) fail_of_who_left();
  } else {
    fail(fmt::format("{} says what it cannot mean", name_at(rank)));
  }
}

void TcpHub::lose(std::int64_t rank, const std::string& why) {
  if (!members_[at(rank)].has_left) fail(fmt::format("{} is gone ({})", name_at(rank), why));
}

void TcpHub::fail_of_who_left() {
  for (std::int64_t rank = 1; rank < size(); ++rank) {
    const Member& member = members_[at(rank)];
    if (member.has_left && !member.part) {
      return fail(fmt::format("{} has ended, and others go on", name_at(rank)));
    }
  }
}

std::vector<std::string> TcpHub::gather(const std::string& mine) {
  const auto end = patience_ends();
  gathers_ = true;
  fail_of_who_left();
  run_until([this] { return has_failed() || given_ == size() - 1; }, end);
  gathers_ = false;
  if (!has_failed() && given_ < size() - 1) {
    std::vector<std::int64_t> missing;
    for (std::int64_t rank = 1; rank < size(); ++rank) {
      if (!members_[at(rank)].part) missing.push_back(rank);
    }
    fail(fmt::format("rank 0 waited in vain for {} for what {} of {} had to give to all",
                     patience_text(), ranks_text(missing), size()));
  }
  if (has_failed()) return {};

  std::vector<std::string> all = {mine};
  for (std::int64_t rank = 1; rank < size(); ++rank) {
    all.push_back(std::move(*members_[at(rank)].part));
    members_[at(rank)].part.reset();
  }
  given_ = 0;
  const std::string body = write_parts(all);
  const Bytes length(static_cast<std::int64_t>(body.size()));
  if (length.count() > longest_message) {
    fail(fmt::format("all {} give {} together, more than {}", size(), format_bytes(length),
                     format_bytes(Bytes(longest_message))));
    return {};
  }
  whole_ = write_message(TcpMessage::all, body);
  say(whole_);
  if (!run_until([this] { return has_failed() || has_said_all(); }, patience_ends())) {
    fail(fmt::format("rank 0 waited in vain for {} for others to read what all gave",
                     patience_text()));
  }
  return all;
}

void TcpHub::say(std::string_view bytes) {
  for (const Member& member : members_) {
    if (member.connection) member.connection->say(bytes);
  }
}

bool TcpHub::has_said_all() const {
  for (const Member& member : members_) {
    if (member.connection && !member.connection->has_said_all()) return false;
  }
  for (const auto& connection : turned_away_) {
    if (!connection->has_said_all()) return false;
  }
  return true;
}

std::string TcpHub::name_at(std::int64_t rank) const {
  return fmt::format("{} at {}", name(rank), members_[at(rank)].connection->address());
}

}  // namespace

std::unique_ptr<Exchange> make_tcp_hub(const Launch& launch, Seconds patience) {
  return std::make_unique<TcpHub>(launch, patience);
}

}  // namespace shardsim
