// Numbers that know where they come from.
#pragma once

#include <string>

namespace shardsim {

// Where a number comes from. `kind`: vendor, code, measured, derived, estimate.
struct Source {
  std::string kind;
  std::string reference;  // document, file, table
  std::string date;       // of the source or of its reading, YYYY-MM or YYYY-MM-DD
  std::string note;
};

template <class T>
struct Sourced {
  T value{};
  Source source;
};

}  // namespace shardsim
