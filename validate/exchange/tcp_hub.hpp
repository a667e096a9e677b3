// Rank 0 of a TcpExchange: all others are connected to it.
#pragma once

#include <memory>

#include "base/units.hpp"
#include "validate/exchange/exchange.hpp"
#include "validate/exchange/launcher.hpp"

namespace shardsim {

[[nodiscard]] std::unique_ptr<Exchange> make_tcp_hub(const Launch& launch, Seconds patience);

}  // namespace shardsim
