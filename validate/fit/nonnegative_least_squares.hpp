// The x >= 0 that brings |a x - b| nearest to 0: Lawson & Hanson, Solving Least Squares Problems,
// 1974, algorithm NNLS (23.10). Eigen 3.4.0, Debian's, has none. For sources of this room: who
// includes it needs Eigen.
//
// Example: a = (1 1; 1 2), b = (2, 1): without the constraint x = (3, -1), with it (1.5, 0).
#pragma once

#include <Eigen/Core>

namespace shardsim {

// Of columns that fit alike the first is taken: the others stay 0.
[[nodiscard]] Eigen::VectorXd nonnegative_least_squares(const Eigen::MatrixXd& a,
                                                        const Eigen::VectorXd& b);

}  // namespace shardsim
