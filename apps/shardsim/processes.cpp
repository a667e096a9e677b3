#include "processes.hpp"

#include <fmt/format.h>

#include <iostream>

namespace shardsim {

// Whole lines at a time: processes share a terminal.
void say(const std::string& error) { std::cerr << fmt::format("error: {}\n", error) << std::flush; }

}  // namespace shardsim
