// Files are read whole and written whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace shardsim {

// Throws InputError when the file cannot be read.
[[nodiscard]] std::string read_file(const std::string& path);

// Writes beside the target and renames over it, so that a reader never sees half a file; pipes and
// devices are written to directly. Throws InputError, leaving the old file as it was, when the
// place is not writable.
void write_file(const std::string& path, std::string_view content);

}  // namespace shardsim
