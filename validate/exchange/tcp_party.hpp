// What rank 0 and the others of a TcpExchange have in common: time, failure, farewell.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "validate/exchange/exchange.hpp"
#include "validate/exchange/launcher.hpp"

namespace shardsim {

class TcpParty : public Exchange {
 public:
  [[nodiscard]] std::int64_t rank() const final { return launch_.rank; }
  [[nodiscard]] std::int64_t size() const final { return launch_.size; }
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& mine) final;
  void check() final;
  [[noreturn]] void abort(int code) final;

 protected:
  using Clock = std::chrono::steady_clock;

  TcpParty(Launch launch, Seconds patience) : launch_(std::move(launch)), patience_(patience) {}

  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  virtual void tell_failure(const std::string& message) = 0;  // which stays
  [[nodiscard]] virtual bool has_said_all() const = 0;

  // Lets happen what happens until `done`, or the time is up: false.
  bool run_until(const std::function<bool()>& done, Clock::time_point end);
  void read_what_came();
  void flush();  // what was said; not for long
  [[nodiscard]] Clock::time_point patience_ends() const;

  void fail(const std::string& why);   // here first: the others are told
  void learn(const std::string& why);  // from another
  [[nodiscard]] bool has_failed() const { return failure_.has_value(); }
  [[nodiscard]] const std::string& failure_message() const { return failure_message_; }
  void throw_failure() const;

  [[nodiscard]] std::string name(std::int64_t rank) const;  // "rank 2 of 8"
  [[nodiscard]] std::string meeting_point() const;          // "node1:29501"
  [[nodiscard]] std::string patience_text() const;          // "60 s"
  // Of the meeting point; empty where no name server answers, which another attempt may find to
  // have changed. Throws CannotRunError where there is no such host.
  [[nodiscard]] std::vector<boost::asio::ip::tcp::endpoint> endpoints();

  [[nodiscard]] boost::asio::io_context& io() { return io_; }
  [[nodiscard]] const Launch& launch() const { return launch_; }

 private:
  boost::asio::io_context io_;
  Launch launch_;
  Seconds patience_;
  std::mutex mutex_;
  std::optional<std::string> failure_;
  std::string failure_message_;
};

}  // namespace shardsim
