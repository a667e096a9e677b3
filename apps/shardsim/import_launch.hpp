// `import megatron|torchtitan|deepspeed|maxtext FILE`: somebody's own configuration as an
// experiment.
#pragma once

#include "command.hpp"

namespace shardsim {

[[nodiscard]] Words launch_kinds();  // "megatron", ...
[[nodiscard]] bool is_launch_kind(const std::string& kind);
void add_launch_options(po::options_description& options);
// Options of these kinds alone, of which another was given; empty: none.
[[nodiscard]] std::string given_launch_option(const Given& given);
int run_import_launch(const Given& given);

}  // namespace shardsim
