#include "validate/step/validate_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"

namespace shardsim {
namespace {

Bytes bytes_told(double number) { return Bytes(static_cast<std::int64_t>(number)); }

std::vector<MemoryOffer> exchange_offers(Backend& backend, const MemoryOffer& mine) {
  std::vector<MemoryOffer> offers;
  for (const std::string& name : backend.exchange().all_gather(mine.shared_by))
    offers.push_back({name, {}});
  const auto allowances =
      exchange_numbers(backend.exchange(), {static_cast<double>(mine.allowance.count())});
  for (std::size_t i = 0; i < offers.size(); ++i) {
    offers[i].allowance = bytes_told(allowances[i].front());
  }
  return offers;
}

// Bytes are whole in a double up to 8 PiB.
std::vector<MeasuredMemory> exchange_measured(Backend& backend, const MeasuredMemory& mine) {
  std::vector<double> numbers{static_cast<double>(mine.peak.count()),
                              static_cast<double>(mine.reserved.count())};
  for (const Bytes category : mine.by_category) {
    numbers.push_back(static_cast<double>(category.count()));
  }
  std::vector<MeasuredMemory> all;
  for (const auto& given : exchange_numbers(backend.exchange(), numbers)) {
    MeasuredMemory& measured = all.emplace_back();
    measured.peak = bytes_told(given[0]);
    measured.reserved = bytes_told(given[1]);
    for (std::size_t c = 0; c < measured.by_category.size(); ++c) {
      measured.by_category[c] = bytes_told(given[2 + c]);
    }
  }
  return all;
}

MemoryValidation not_compared(const std::string& why) {
  return {{}, {"memory is not compared: " + why}};
}

// All processes try something: what the first of those says that cannot. Empty: all could.
std::string first_error(Backend& backend, const std::function<void()>& attempt) {
  std::string mine;
  try {
    attempt();
  } catch (const CannotRunError& error) {
    mine = error.what();
  }
  const std::vector<std::string> errors = backend.exchange().all_gather(mine);
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    if (!errors[rank].empty()) return fmt::format("rank {}: {}", rank, errors[rank]);
  }
  return {};
}

}  // namespace

std::optional<std::string> memory_shortage(const Plan& plan, const Result& simulated,
                                           const std::vector<MemoryOffer>& offers) {
  for (const MemoryOffer& offer : offers) {
    std::int64_t processes = 0;
    Bytes needed{0};
    for (std::size_t rank = 0; rank < offers.size(); ++rank) {
      if (offers[rank].shared_by != offer.shared_by) continue;
      ++processes;
      needed += simulated.programs[program_at(plan, static_cast<std::int64_t>(rank))].peak;
    }
    if (needed <= offer.allowance) continue;
    return fmt::format("buffers of {} on {} need {}, and may take {}",
                       counted(processes, "process"), offer.shared_by, format_bytes(needed),
                       format_bytes(offer.allowance));
  }
  return std::nullopt;
}

std::vector<ValidatedMemory> compare_memory(const Plan& plan, const Result& simulated,
                                            const std::vector<MeasuredMemory>& measured) {
  std::vector<ValidatedMemory> all(plan.programs.size());
  for (std::size_t p = 0; p < all.size(); ++p) {
    all[p].program = plan.programs[p].name;
    all[p].peak.predicted = simulated.programs[p].peak;
    for (std::size_t c = 0; c < all[p].by_category.size(); ++c) {
      all[p].by_category[c].predicted = simulated.programs[p].peak_by_category[c];
    }
  }
  for (std::size_t rank = 0; rank < measured.size(); ++rank) {
    const MeasuredMemory& here = measured[rank];
    ValidatedMemory& program = all[program_at(plan, static_cast<std::int64_t>(rank))];
    if (here.peak <= program.peak.measured) continue;
    program.rank = static_cast<std::int64_t>(rank);
    program.peak.measured = here.peak;
    program.reserved = here.reserved;
    for (std::size_t c = 0; c < here.by_category.size(); ++c) {
      program.by_category[c].measured = here.by_category[c];
    }
  }
  return all;
}

MemoryValidation validate_memory(const Plan& plan, const Result& simulated, Backend& backend) {
  const bool has_buffers = std::any_of(plan.programs.begin(), plan.programs.end(),
                                       [](const Program& of) { return !of.buffers.empty(); });
  if (!has_buffers) return not_compared("there are no buffers");
  const std::unique_ptr<DeviceMemory> memory = backend.memory();
  if (!memory) return not_compared(fmt::format("the backend {} measures none", backend.name()));
  MemoryOffer offer{memory->shared_by(), {}};
  std::string error = first_error(backend, [&] { offer.allowance = memory->allowance(); });
  if (!error.empty()) return not_compared(error);
  const auto shortage = memory_shortage(plan, simulated, exchange_offers(backend, offer));
  if (shortage) return not_compared(*shortage);
  const std::size_t program = program_at(plan, backend.exchange().rank());
  MeasuredMemory mine;
  error = first_error(backend, [&] { mine = measure_memory(plan.programs[program], *memory); });
  if (!error.empty()) return not_compared(error);
  MemoryValidation validation{compare_memory(plan, simulated, exchange_measured(backend, mine)),
                              {}};
  for (const MemoryTaken& taken : backend.memory_taken()) {
    validation.notes.push_back(fmt::format("beside the step's buffers, on rank {}: {} for {}",
                                           backend.exchange().rank(), format_bytes(taken.bytes),
                                           taken.what));
  }
  return validation;
}

}  // namespace shardsim
