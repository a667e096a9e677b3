// Exchange among processes of one or several hosts over TCP, without MPI.
//
// Rank 0 listens where Launch says; the others come to it, again and again until it is there, and
// stay connected. What all gather goes to rank 0, and the whole of it back. Whoever finds that
// something is wrong tells rank 0, and rank 0 the others: all throw the same reason.
//
//   a rank does not come    after `patience`: "ranks 2 and 5 of 8 did not come within 60 s to
//                           node1:29501"
//   a rank is gone          its connection ends without a farewell: "rank 2 of 8 at 10.0.0.7 is
//                           gone (End of file)"; rank 0 sees it when it calls all_gather() or
//                           check(), the others when it has
//   a host is gone          that of a rank, without power: 25 s later, as above
//   another speaks          what does not begin as shardsim does is dropped, and silence waits in
//                           nobody's way; a rank that is there twice or another size ends all
//
// There is no thread: what others say is read in all_gather() and check(). One thread calls these;
// abort() and check() any, and while another is in all_gather() check() does nothing, and abort()
// ends without a word: the others see the connection end.
//
// Nothing is encrypted and nobody proves who he is: as in torch.distributed and MPI, the network
// between the hosts of a job is trusted.
#pragma once

#include <memory>

#include "base/units.hpp"
#include "validate/exchange/exchange.hpp"
#include "validate/exchange/launcher.hpp"

namespace shardsim {

// When all are there. Waits for `patience`, here and in every all_gather(). Throws CannotRunError
// where rank 0 cannot listen or is not to be reached, and where others do not come.
[[nodiscard]] std::unique_ptr<Exchange> make_tcp_exchange(const Launch& launch, Seconds patience);

}  // namespace shardsim
