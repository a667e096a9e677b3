// Jobs of a few ranks on this machine's loopback, as threads and as processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "validate/exchange/tcp_exchange.hpp"

namespace shardsim {

// Nothing in these tests takes as long, unless something hangs.
inline constexpr Seconds long_patience{60};

// A port of 127.0.0.1 that no other program is given, and that we can listen at: Linux lets two
// sockets have one port by SO_REUSEADDR while neither listens (socket(7)).
class LoopbackPort {
 public:
  LoopbackPort();
  ~LoopbackPort();
  LoopbackPort(const LoopbackPort&) = delete;
  LoopbackPort& operator=(const LoopbackPort&) = delete;

  [[nodiscard]] std::uint16_t number() const { return number_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(number_); }
  [[nodiscard]] Launch launch(std::int64_t rank, std::int64_t size) const;
  // As another program would.
  void listen() const;
  [[nodiscard]] bool answer(const std::string& bytes) const;  // to the next who comes
  void hang_up() const;                                       // answer() is false from now on

 private:
  int socket_;
  std::uint16_t number_ = 0;
};

// Who is not of the job. Comes as soon as somebody listens.
class Stranger {
 public:
  explicit Stranger(const LoopbackPort& port);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(const std::string& bytes) const;
  [[nodiscard]] std::string hear_all() const;  // until the other end closes

 private:
  int socket_;
};

using Rank = std::function<std::string(Exchange&)>;

// What a rank answers, or "error: ..." with what it threw.
std::string run_rank(const Launch& launch, Seconds patience, const Rank& rank);

// All ranks as threads; what each answers.
std::vector<std::string> run_job(const std::vector<Launch>& launches, Seconds patience,
                                 const Rank& rank);
std::vector<Launch> all_ranks(const LoopbackPort& port, std::int64_t size);

// Calls check() until it throws: what it threw.
std::string wait_for_failure(Exchange& exchange);
// What all_gather() throws.
std::string failure_of_gather(Exchange& exchange);

// A rank as a process. It is forked: no other thread may run yet.
class RankProcess {
 public:
  RankProcess(const Launch& launch, const Rank& rank);
  ~RankProcess();  // kills it
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void kill();
  [[nodiscard]] int wait();  // its exit code

 private:
  pid_t id_;
};

}  // namespace shardsim
