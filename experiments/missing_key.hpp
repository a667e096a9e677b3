// What an experiment lacks, with what stands for it on the command line.
#pragma once

#include <string>

namespace shardsim {

// "missing key "mesh": give --mesh, for example --mesh data=2,fsdp=4"; the key alone where no flag
// stands for it.
[[nodiscard]] std::string missing_key(const std::string& key);

}  // namespace shardsim
