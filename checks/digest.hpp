// Whether two texts are the same, told from a few characters: a UUID of version 5 (RFC 4122), which
// is made of the text's SHA-1.
#pragma once

#include <string>
#include <string_view>

#include "base/json_reader.hpp"

namespace shardsim {

[[nodiscard]] std::string text_digest(std::string_view text);
// The same for documents that differ in the order of keys only.
[[nodiscard]] std::string digest_of(const Json& document);

}  // namespace shardsim
