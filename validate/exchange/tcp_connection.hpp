// One connection of a TcpExchange, after the greeting: messages both ways, while its io_context
// runs.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "validate/exchange/tcp_messages.hpp"

namespace shardsim {

class TcpConnection {
 public:
  using Heard = std::function<void(TcpMessage, std::string body)>;
  // Called once, with the reason: nothing is heard any more, and what is said is lost.
  using Lost = std::function<void(const std::string& why)>;

  explicit TcpConnection(boost::asio::ip::tcp::socket socket);

  void listen(Heard heard, Lost lost);

  // The bytes are the caller's, and stay until has_said_all().
  void say(std::string_view bytes);
  [[nodiscard]] bool has_said_all() const { return is_lost_ || to_say_.empty(); }

  [[nodiscard]] const std::string& address() const { return address_; }  // the other end's, no port

 private:
  void read_next();
  void write_next();
  void stop_saying();
  void lose(const std::string& why);

  boost::asio::ip::tcp::socket socket_;
  std::string address_;
  Heard heard_;
  Lost lost_;
  TcpHeadBytes head_{};
  std::string body_;
  std::deque<std::string_view> to_say_;
  bool is_deaf_ = false;  // the other end
  bool is_lost_ = false;
};

}  // namespace shardsim
