// torchtitan weighs experts' rows in fp32, op by op: what backward reads is rows in fp32, and not
// those that have come back (torchtitan 0.3, models/common/token_dispatcher.py, combine: a cast to
// torch.float32, the product with the scores, a cast back).
//
//   rows --cast--> in fp32 --x scores--> in fp32 --cast--> rows --scatter_add--> tokens
//                     '-- kept for the gradient of the scores
//
// Under a policy that keeps what calls have brought (selective checkpoints) the rows that have come
// back are kept, and cast again.
//
// On the way back the gradient of the rows, its product with the scores and that with the rows are
// in fp32 for a moment.
#pragma once

#include "strategies/partition/spmd.hpp"

namespace shardsim {

// `step` as list_kernels left it. `casts_again`: under such a policy.
void weigh_rows_in_fp32(const Workload& workload, SpmdStep& step, bool casts_again);

}  // namespace shardsim
