// A backend of one process that plays all ranks: it tells times that it was given.
#pragma once

#include <cstdlib>
#include <utility>

#include "fake_memory.hpp"
#include "validate/backends/backend.hpp"

namespace shardsim::testing {

// What all others give is what it was told, else what this one gives.
class FakeExchange : public Exchange {
 public:
  FakeExchange(std::int64_t rank, std::int64_t size) : rank_(rank), size_(size) {}

  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& mine) override {
    if (!next.empty()) return std::exchange(next, {});
    return std::vector<std::string>(static_cast<std::size_t>(size_), mine);
  }
  void check() override {}
  [[noreturn]] void abort(int code) override { std::_Exit(code); }

  std::vector<std::string> next;  // of the next exchange

 private:
  std::int64_t rank_;
  std::int64_t size_;
};

class FakeBackend : public Backend {
 public:
  // The spans of each rank, of every step the same.
  explicit FakeBackend(std::vector<std::vector<TaskSpan>> spans)
      : spans_(std::move(spans)), exchange_(0, static_cast<std::int64_t>(spans_.size())) {}

  [[nodiscard]] Exchange& exchange() const override { return exchange_; }
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] std::string profile() const override { return "cpu-host"; }
  [[nodiscard]] std::string library() const override { return "none"; }
  [[nodiscard]] std::string host() const override { return "here"; }
  [[nodiscard]] std::vector<std::string> notes() const override { return {}; }
  [[nodiscard]] bool overlaps_streams() const override { return false; }
  [[nodiscard]] bool shares_clock() const override { return on_one_clock; }
  [[nodiscard]] std::map<std::string, std::string> device() const override { return {}; }
  [[nodiscard]] std::vector<MemoryTaken> memory_taken() const override { return {}; }
  [[nodiscard]] WorkRange range() const override { return {}; }
  void choose_algorithm(CollectiveKind /*kind*/, const std::string& /*algorithm*/) override {}
  void prepare(const Plan& /*plan*/) override {}
  [[nodiscard]] std::vector<std::optional<Seconds>> estimates() override { return {}; }
  // The spans of every rank are asked for next.
  [[nodiscard]] std::vector<TaskSpan> run_step() override {
    ++steps;
    for (const auto& spans : spans_) {
      std::string& bytes = exchange_.next.emplace_back();
      for (const TaskSpan& span : spans) {
        for (const double number : {span.start.count(), span.end.count()}) {
          bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
        }
      }
    }
    return spans_.front();
  }
  [[nodiscard]] std::unique_ptr<DeviceMemory> memory() override {
    return std::make_unique<FakeMemory>(Bytes(granule));
  }

  int steps = 0;
  bool on_one_clock = true;
  std::int64_t granule = 1;  // of its memory

 protected:
  std::vector<std::vector<TaskSpan>> spans_;

 private:
  mutable FakeExchange exchange_;
};

}  // namespace shardsim::testing
