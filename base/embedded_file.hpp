// A file that is built into the library (cmake/ShardsimEmbed.cmake), so that it is wherever the
// program is.
#pragma once

#include <string_view>

namespace shardsim {

struct EmbeddedFile {
  std::string_view name;  // "dgx-h100", of profiles/dgx-h100.json
  std::string_view text;
};

}  // namespace shardsim
