// Student's t.
#pragma once

namespace shardsim {

// Between plus and minus this lie 95 % of the distribution: 12.71 for 1 degree of freedom, 4.30 for
// 2, 1.96 for many.
[[nodiscard]] double student_t_95(double degrees_of_freedom);

}  // namespace shardsim
