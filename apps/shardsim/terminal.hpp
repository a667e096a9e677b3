// How wide the text on standard output may be: COLUMNS, which is asked first since somebody set it,
// else the terminal's width, else default_text_width, as in a pipe or a file.
#pragma once

#include <cstddef>

namespace shardsim {

[[nodiscard]] std::size_t terminal_width();

}  // namespace shardsim
