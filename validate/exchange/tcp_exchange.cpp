#include "validate/exchange/tcp_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "validate/exchange/tcp_connection.hpp"
#include "validate/exchange/tcp_hub.hpp"
#include "validate/exchange/tcp_party.hpp"

namespace shardsim {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Rank 0, whose patience may have begun as much later as a connection took, is to speak first.
constexpr auto grace = std::chrono::seconds(5);

// Any rank but 0.
class TcpSpoke : public TcpParty {
 public:
  TcpSpoke(const Launch& launch, Seconds patience);
  ~TcpSpoke() override;
  TcpSpoke(const TcpSpoke&) = delete;
  TcpSpoke& operator=(const TcpSpoke&) = delete;

 protected:
  std::vector<std::string> gather(const std::string& mine) override;
  void tell_failure(const std::string& message) override;
  [[nodiscard]] bool has_said_all() const override { return !hub_ || hub_->has_said_all(); }

 private:
  void reach_hub();
  error_code connect(const tcp::endpoint& endpoint);
  void wait_until_ready();
  void forget_hub();
  void receive(TcpMessage kind, std::string body);
  void lose(const std::string& why);

  // What the connection says, for as long as it does.
  const TcpGreetingBytes greeting_;
  const std::string farewell_ = write_message(TcpMessage::farewell, "");
  std::string part_;

  std::unique_ptr<TcpConnection> hub_;
  bool is_ready_ = false;
  bool hub_has_left_ = false;
  std::string lost_;  // why, before it was ready
  std::optional<std::string> whole_;
};

TcpSpoke::TcpSpoke(const Launch& launch, Seconds patience)
    : TcpParty(launch, patience),
      greeting_(write_greeting({.rank = launch.rank, .size = launch.size})) {
  reach_hub();
}

TcpSpoke::~TcpSpoke() {
  try {
    if (hub_) hub_->say(farewell_);
    flush();
  } catch (...) {
    // Rank 0 sees the connection end instead.
  }
}

// Another may listen there still, or a proxy before rank 0 does: who is not greeted tries again.
void TcpSpoke::reach_hub() {
  const auto end = patience_ends();
  std::chrono::milliseconds pause(20);
  std::string why = "no name server answers";
  while (!is_ready_) {
    for (const tcp::endpoint& endpoint : endpoints()) {
      const error_code error = connect(endpoint);
      if (!error) {
        wait_until_ready();
        throw_failure();
        if (is_ready_) return;
        forget_hub();
      }
      why = error ? error.message() : lost_;
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, end - Clock::now()));
    if (Clock::now() >= end) {
      throw CannotRunError(
          fmt::format("{} could not reach rank 0 at {} within {}: {}; if it is "
                      "elsewhere: --rendezvous HOST:PORT",
                      name(rank()), meeting_point(), patience_text(), why));
    }
    pause = std::min(2 * pause, std::chrono::milliseconds(1000));
  }
}

// What its connection, which is lost, still had to do ends first.
void TcpSpoke::forget_hub() {
  run_until([] { return false; }, Clock::time_point::max());
  hub_.reset();
}

// 5 s for one address, even at the end of patience: two repeated attempts of TCP's (RFC 6298: after
// 1 s and 3 s), and there may be another address.
error_code TcpSpoke::connect(const tcp::endpoint& endpoint) {
  tcp::socket socket(io());
  std::optional<error_code> result;
  socket.async_connect(endpoint, [&](error_code error) { result = error; });
  const auto is_done = [&] { return result.has_value(); };
  if (!run_until(is_done, Clock::now() + std::chrono::seconds(5))) {
    error_code ignored;
    socket.close(ignored);
    run_until(is_done, Clock::time_point::max());
    return boost::asio::error::timed_out;
  }
  if (*result) return *result;
  // On one host, a port that nobody listens at may be given to this very attempt.
  error_code ignored;
  if (socket.local_endpoint(ignored) == socket.remote_endpoint(ignored)) {
    return boost::asio::error::connection_refused;
  }
  hub_ = std::make_unique<TcpConnection>(std::move(socket));
  return {};
}

void TcpSpoke::wait_until_ready() {
  lost_.clear();
  hub_->listen([this](TcpMessage kind, std::string body) { receive(kind, std::move(body)); },
               [this](const std::string& why) { lose(why); });
  hub_->say({greeting_.data(), greeting_.size()});
  if (run_until([this] { return is_ready_ || has_failed() || !lost_.empty(); },
                patience_ends() + grace)) {
    return;
  }
  fail(fmt::format("{} reached {} and waited there in vain for {} for word of rank 0", name(rank()),
                   meeting_point(), patience_text()));
}

void TcpSpoke::receive(TcpMessage kind, std::string body) {
  if (kind == TcpMessage::ready && !is_ready_) {
    is_ready_ = true;
  } else if (kind == TcpMessage::all && is_ready_ && !whole_) {
    whole_ = std::move(body);
  } else if (kind == TcpMessage::failure) {
    learn(body);
  } else if (kind == TcpMessage::farewell) {
    hub_has_left_ = true;
  } else {
    fail(fmt::format("rank 0 at {} says what it cannot mean", meeting_point()));
  }
}

void TcpSpoke::lose(const std::string& why) {
  lost_ = why;
  if (is_ready_ && !hub_has_left_) {
    fail(fmt::format("{} at {} is gone ({})", name(0), meeting_point(), why));
  }
}

void TcpSpoke::tell_failure(const std::string& message) {
  if (hub_) hub_->say(message);
}

std::vector<std::string> TcpSpoke::gather(const std::string& mine) {
  part_ = write_message(TcpMessage::part, mine);
  hub_->say(part_);
  const bool has_come = run_until([this] { return has_failed() || whole_ || hub_has_left_; },
                                  patience_ends() + grace);
  if (!has_come) {
    fail(fmt::format("{} waited in vain for {} for rank 0 to give it what all gave", name(rank()),
                     patience_text()));
  }
  if (!whole_ && hub_has_left_) {
    fail(fmt::format("{} at {} has ended, and others go on", name(0), meeting_point()));
  }
  if (has_failed()) return {};
  auto parts = read_parts(*whole_, size());
  whole_.reset();
  if (!parts) {
    fail(fmt::format("rank 0 at {} says what it cannot mean", meeting_point()));
    return {};
  }
  return std::move(*parts);
}

// The only process there is.
class LoneExchange : public Exchange {
 public:
  [[nodiscard]] std::int64_t rank() const override { return 0; }
  [[nodiscard]] std::int64_t size() const override { return 1; }
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& mine) override {
    return {mine};
  }
  void check() override {}
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
};

}  // namespace

std::unique_ptr<Exchange> make_tcp_exchange(const Launch& launch, Seconds patience) {
  if (launch.size == 1) return std::make_unique<LoneExchange>();
  if (launch.rank == 0) return make_tcp_hub(launch, patience);
  return std::make_unique<TcpSpoke>(launch, patience);
}

}  // namespace shardsim
