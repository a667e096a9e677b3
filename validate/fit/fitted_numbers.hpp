// Numbers of a profile as they are fitted to a sweep: each with its source and its interval, and
// all of them in a list for the reader.
#pragma once

#include <string>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "measurements/device_sweep.hpp"
#include "validate/fit/robust_fit.hpp"

namespace shardsim {

struct FittedNumber {
  std::string quantity;  // as profile_io.hpp names it: "cluster.scale_up.latency"
  std::string value;     // with its unit
  std::string low;       // of the 95 % interval; "-" where it is not determined
  std::string high;
  bool determined = true;  // if not, the base profile's number stays; "-" where it has none
};

// With four digits, as a profile says them: what is read of it is what was written.
[[nodiscard]] Seconds rounded(Seconds time);
[[nodiscard]] Bandwidth rounded(Bandwidth rate);
[[nodiscard]] FlopRate rounded(FlopRate rate);

// "4 processes", "4 processes on 2 hosts"
[[nodiscard]] std::string where_of(const DeviceSweep& sweep);

class FittedNumbers {
 public:
  explicit FittedNumbers(const DeviceSweep& sweep) : sweep_(sweep) {}

  [[nodiscard]] const std::vector<FittedNumber>& list() const { return list_; }
  [[nodiscard]] Source source(const std::string& note) const;

  // Of a size without a unit, or a time in seconds: lists it and returns its source.
  Source add_size(const std::string& quantity, const FittedTerm& term);
  Source add_time(const std::string& quantity, const FittedTerm& term);

  // Where it is not determined the base profile's number stays, and says so.
  void set(Sourced<Seconds>& number, const std::string& quantity, const FittedTerm& term);
  void leave(Sourced<Seconds>& number, const std::string& quantity);
  void leave(Sourced<Bandwidth>& number, const std::string& quantity);

  // What carries at most `most` a second, and fits as `term` seconds for each; of a published rate
  // the efficiency only. An estimate becomes the most that any record reaches.
  void set_rate(Sourced<Bandwidth>& rate, Sourced<double>& efficiency, const std::string& quantity,
                const FittedTerm& term, double most);
  void set_rate(Sourced<FlopRate>& rate, Sourced<double>& efficiency, const std::string& quantity,
                const FittedTerm& term, double most);

  // `records` is the place in the file.
  [[noreturn]] void say_undetermined(const char* records, const char* what,
                                     const char* would = "larger sizes") const;

 private:
  template <class Number>
  void leave_as(Number& number, const std::string& quantity, const std::string& value);
  template <class Rate>
  void set_any_rate(Sourced<Rate>& rate, Sourced<double>& efficiency, const std::string& quantity,
                    const FittedTerm& term, double most);
  template <class Format>
  Source add(const std::string& quantity, const FittedTerm& term, const Format& format);

  const DeviceSweep& sweep_;
  std::vector<FittedNumber> list_;
};

}  // namespace shardsim
