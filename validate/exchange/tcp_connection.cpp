#include "validate/exchange/tcp_connection.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace shardsim {
namespace {

using boost::system::error_code;

void set_option(boost::asio::ip::tcp::socket& socket, int option, int value) {
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
}

// A host without power closes nothing. After 10 s without a word it is asked every 5 s, and is gone
// after three questions.
void keep_alive(boost::asio::ip::tcp::socket& socket) {
  error_code ignored;
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  set_option(socket, TCP_KEEPIDLE, 10);
  set_option(socket, TCP_KEEPINTVL, 5);
  set_option(socket, TCP_KEEPCNT, 3);
}

std::string address_of(const boost::asio::ip::tcp::socket& socket) {
  error_code error;
  const boost::asio::ip::address address = socket.remote_endpoint(error).address();
  if (error) return "an unknown address";
  // Of a socket for both, IPv4 as part of IPv6: ::ffff:10.0.0.7.
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

}  // namespace

TcpConnection::TcpConnection(boost::asio::ip::tcp::socket socket)
    : socket_(std::move(socket)), address_(address_of(socket_)) {
  error_code ignored;
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  keep_alive(socket_);
}

void TcpConnection::listen(Heard heard, Lost lost) {
  heard_ = std::move(heard);
  lost_ = std::move(lost);
  read_next();
}

void TcpConnection::read_next() {
  boost::asio::async_read(
      socket_, boost::asio::buffer(head_), [this](error_code error, std::size_t /*bytes*/) {
        if (error) return lose(error.message());
        const auto head = read_head(head_);
        if (!head) return lose("it says what shardsim does not");
        body_.resize(head->length);
        boost::asio::async_read(
            socket_, boost::asio::buffer(body_),
            [this, kind = head->kind](error_code failed, std::size_t /*bytes*/) {
              if (failed) return lose(failed.message());
              heard_(kind, std::move(body_));
              body_.clear();
              read_next();
            });
      });
}

void TcpConnection::say(std::string_view bytes) {
  if (is_lost_ || is_deaf_) return;
  to_say_.push_back(bytes);
  if (to_say_.size() == 1) write_next();
}

void TcpConnection::write_next() {
  boost::asio::async_write(socket_,
                           boost::asio::buffer(to_say_.front().data(), to_say_.front().size()),
                           [this](error_code error, std::size_t /*bytes*/) {
                             if (error) return stop_saying();
                             to_say_.pop_front();
                             if (!to_say_.empty()) write_next();
                           });
}

// The other end may have said why it closed: what it said is read before its end.
void TcpConnection::stop_saying() {
  is_deaf_ = true;
  to_say_.clear();
}

void TcpConnection::lose(const std::string& why) {
  if (is_lost_) return;
  is_lost_ = true;
  error_code ignored;
  socket_.close(ignored);
  if (lost_) lost_(why);
}

}  // namespace shardsim
