// Files that may be compressed with gzip: dumps of compilers and trees of large models often are.
#pragma once

#include <string>
#include <string_view>

namespace shardsim {

// The content of a file, decompressed when it begins as gzip does; its name does not matter. Throws
// InputError: unreadable, damaged or cut short, more than 4 GiB.
[[nodiscard]] std::string read_maybe_gzip(const std::string& path);

// All members of a gzip file, one after the other (RFC 1952). `file` is for messages.
[[nodiscard]] std::string gunzip(std::string_view compressed, const std::string& file);

}  // namespace shardsim
