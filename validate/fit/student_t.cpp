#include "validate/fit/student_t.hpp"

#include <boost/math/distributions/students_t.hpp>

namespace shardsim {

double student_t_95(double degrees_of_freedom) {
  constexpr double both_sides = 0.975;
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), both_sides);
}

}  // namespace shardsim
