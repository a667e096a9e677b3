// The files of this folder, and Chart.js, as the build embedded them (embed.cmake).
#pragma once

#include <string_view>

namespace shardsim::resources {

extern const std::string_view published_steps_tsv;  // evidence/evidence.hpp
extern const std::string_view opening_html;
extern const std::string_view page_html;
extern const std::string_view configuration_html;
extern const std::string_view machine_html;
extern const std::string_view model_html;
extern const std::string_view model_js;
extern const std::string_view specs_html;
extern const std::string_view report_css;
extern const std::string_view collective_html;
extern const std::string_view collective_js;
extern const std::string_view common_js;
extern const std::string_view charts_js;
extern const std::string_view step_links_js;
extern const std::string_view step_passes_js;
extern const std::string_view step_view_js;
extern const std::string_view plots_end_html;
extern const std::string_view validation_html;
extern const std::string_view validation_js;
extern const std::string_view validation_memory_html;
extern const std::string_view chart_library_js;  // Chart.js, its licence banner first

}  // namespace shardsim::resources
