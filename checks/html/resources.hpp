// The files of this folder, as the build embedded them (reports/html/embed.cmake).
#pragma once

#include <string_view>

namespace shardsim::resources {

extern const std::string_view check_html;
extern const std::string_view check_charts_html;
extern const std::string_view check_js;

}  // namespace shardsim::resources
