#include "validate/fit/fitted_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"
#include "validate/fit/kernel_terms.hpp"

namespace shardsim {
namespace {

std::string text_of(Bandwidth rate) { return format_bandwidth(rate); }
std::string text_of(FlopRate rate) { return format_flop_rate(rate); }

std::string interval(const FittedNumber& number) {
  return fmt::format("95 % interval {} to {}", number.low, number.high);
}

}  // namespace

Seconds rounded(Seconds time) {
  return parse_seconds(fmt::format("{:.4g} us", time.count() * 1e6), {});
}

Bandwidth rounded(Bandwidth rate) {
  return parse_bandwidth(fmt::format("{:.4g} MB/s", rate.count() / 1e6), {});
}

FlopRate rounded(FlopRate rate) {
  return parse_flop_rate(fmt::format("{:.4g} GFLOP/s", rate.count() / 1e9), {});
}

std::string where_of(const DeviceSweep& sweep) {
  const std::string processes = fmt::format("{} processes", sweep.on.processes);
  const std::size_t hosts = sweep.on.hosts.size();
  return hosts > 1 ? fmt::format("{} on {} hosts", processes, hosts) : processes;
}

Source FittedNumbers::source(const std::string& note) const {
  if (!sweep_.source.empty()) return {"measured", sweep_.source, sweep_.date, note};
  return {"measured",
          fmt::format("{}: {} on {}, {}", sweep_.file, where_of(sweep_), sweep_.processor,
                      sweep_.on.library),
          sweep_.date, note};
}

template <class Format>
Source FittedNumbers::add(const std::string& quantity, const FittedTerm& term,
                          const Format& format) {
  if (!term.determined) {
    list_.push_back({quantity, "-", "-", "-", false});
    return {};
  }
  list_.push_back({quantity, format(term.value), format(term.low), format(term.high), true});
  return source(interval(list_.back()));
}

Source FittedNumbers::add_size(const std::string& quantity, const FittedTerm& term) {
  return add(quantity, term, [](double size) { return fmt::format("{:.1f}", size); });
}

Source FittedNumbers::add_time(const std::string& quantity, const FittedTerm& term) {
  return add(quantity, term, [](double seconds) { return format_seconds(Seconds(seconds)); });
}

template <class Number>
void FittedNumbers::leave_as(Number& number, const std::string& quantity,
                             const std::string& value) {
  list_.push_back({quantity, value, "-", "-", false});
  number.source.note = fmt::format("as in {}: {} does not tell it", sweep_.profile, sweep_.file);
}

void FittedNumbers::leave(Sourced<Seconds>& number, const std::string& quantity) {
  leave_as(number, quantity, format_seconds(number.value));
}

void FittedNumbers::leave(Sourced<Bandwidth>& number, const std::string& quantity) {
  leave_as(number, quantity, format_bandwidth(number.value));
}

void FittedNumbers::set(Sourced<Seconds>& number, const std::string& quantity,
                        const FittedTerm& term) {
  if (!term.determined) return leave(number, quantity);
  number.source = add_time(quantity, term);
  number.value = rounded(Seconds(term.value));
}

template <class Rate>
void FittedNumbers::set_any_rate(Sourced<Rate>& rate, Sourced<double>& efficiency,
                                 const std::string& quantity, const FittedTerm& term, double most) {
  const double fitted = 1 / term.value;
  // The interval of a rate is that of its inverse, turned round.
  const double low = std::isfinite(term.high) ? 1 / term.high : 0;
  const double high = term.low > 0 ? 1 / term.low : std::max(most, fitted);
  list_.push_back({quantity, text_of(Rate(fitted)), text_of(Rate(low)), text_of(Rate(high)), true});
  if (!is_published(rate.source)) {
    constexpr double a_digit = 1.0005;  // not rounded down below what is reached
    rate = {rounded(Rate(std::max(most, fitted) * a_digit)),
            source("the most that any record reaches")};
  }
  efficiency = {std::min(1.0, fitted / rate.value.count()),
                source(fmt::format("{} fit best, {}", list_.back().value, interval(list_.back())))};
}

void FittedNumbers::set_rate(Sourced<Bandwidth>& rate, Sourced<double>& efficiency,
                             const std::string& quantity, const FittedTerm& term, double most) {
  set_any_rate(rate, efficiency, quantity, term, most);
}

void FittedNumbers::set_rate(Sourced<FlopRate>& rate, Sourced<double>& efficiency,
                             const std::string& quantity, const FittedTerm& term, double most) {
  set_any_rate(rate, efficiency, quantity, term, most);
}

void FittedNumbers::say_undetermined(const char* records, const char* what,
                                     const char* would) const {
  throw InputError({sweep_.file, records},
                   fmt::format("they do not tell {}: {} would", what, would));
}

}  // namespace shardsim
