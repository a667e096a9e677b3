#include "plan/row_visits.hpp"

#include <algorithm>

namespace shardsim {

std::string_view name_of(RowKernels kernels) {
  return kernels == RowKernels::deepep ? "deepep" : "hybridep";
}

double copies_by_part(std::int64_t places, std::int64_t visited, std::int64_t parts) {
  const std::int64_t own = (places + parts - 1) / parts;
  double missed = 1;
  for (std::int64_t i = 0; i < visited; ++i) {
    missed *= static_cast<double>(std::max<std::int64_t>(places - own - i, 0)) /
              static_cast<double>(places - i);
  }
  return static_cast<double>(parts) * (1 - missed);
}

}  // namespace shardsim
