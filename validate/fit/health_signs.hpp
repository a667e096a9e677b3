// What a measured table itself shows of a machine that is not well, beside what the model says.
//
// Of the whole table, which then is suspicious:
//
//   slow      The largest sizes, where transfer is nine tenths of the modelled time, take at least
//             twice what their links carry (the median of those rows). Twice: what breaks or is not
//             used goes by halves, one of two rails, eight of sixteen lanes, sockets in place of
//             RDMA. A fault of less is not told from what the model misses.
//   sagging   The largest size reaches half the rate of a smaller one, or less. A rate grows with
//             the size and stays; congestion and retransmission bring it down again.
//   too fast  A row takes less than its transfer would at the full bandwidth of the links, by
//             whatever algorithm: another size, number of ranks or machine than the table says.
//
// Of single rows, which is no verdict (docs/calibration.md counts how often healthy tables show it:
// libraries change protocols late, first rows warm up):
//
//   falling   A larger collective takes half the time, or less.
//   odd       A row is twice, or half, what the sizes on both sides of it say: the straight line
//             through their logarithms. Only sizes within a factor of 4 say anything.
//
// What small sizes take is no sign: the same node takes 8 or 25 us by how collectives are launched.
//
// Example: all-reduces of 1, 2 and 4 GiB in 13, 26 and 52 ms on links that would take 4, 8 and 16:
// slow by 3.25.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/collective_experiment.hpp"

namespace shardsim {

// What any sign is measured against.
inline constexpr double suspicious_factor = 2;

struct JudgedRow {
  Bytes bytes{0};
  Seconds measured{0};
  // Uncalibrated; 0 where no machine is known: then only the rows speak for each other.
  Seconds modelled{0};
  Seconds transfer{0};         // of it
  Seconds fastest{0};          // the transfer at full bandwidth, by whatever algorithm
  Seconds full{0};             // the transfer at full bandwidth, by the algorithm that is modelled,
  std::string algorithm = {};  // which is this
};

enum class Sign : std::uint8_t { slow, sagging, too_fast, falling, odd };
inline constexpr int sign_count = 5;
[[nodiscard]] std::string_view name_of(Sign sign);

struct Finding {
  Sign sign = Sign::slow;
  Bytes bytes{0};     // of the row; of a slow table the first of those looked at
  double factor = 1;  // how much too slow or, below 1, too fast
};

// Predicted uncalibrated. Throws InputError for a group that the machine cannot have.
[[nodiscard]] std::vector<JudgedRow> judged_rows(const CollectiveExperiment& experiment);

// What the sign `slow` goes by; nothing where no size is transfer enough.
[[nodiscard]] std::optional<double> plateau_factor(const std::vector<JudgedRow>& rows);

// In any order; findings in that of the signs, at most one a sign but of odd rows.
[[nodiscard]] std::vector<Finding> find_signs(std::vector<JudgedRow> rows);

// What calibrations cannot correct: rows that took less than the modelled algorithm's links do at
// their full bandwidth, below which nothing is predicted; empty where there are none.
//   "4 sizes from 1.0 GiB on take less than Ring's links do at their full bandwidth ..."
[[nodiscard]] std::string beyond_links(const std::vector<JudgedRow>& rows);

// The table and not only a row of it.
[[nodiscard]] bool is_of_table(Sign sign);

// "slow: sizes from 256.0 MiB take 10.6 times what their links carry"
[[nodiscard]] std::string describe(const Finding& finding);

}  // namespace shardsim
