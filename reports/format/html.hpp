// HTML from text: what comes from users cannot leave the place it is put in.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {

// For element content and quoted attributes: & < > " ' become entities.
[[nodiscard]] std::string html_escape(std::string_view text);
// For a <script type="application/json">: every < is written as \u003c, so that nothing in a string
// can end the element or open a comment.
[[nodiscard]] std::string script_json(const Json& document);

// Replaces every {{key}} of the skeleton. Values are not searched again: a value may hold braces.
// A key without a value is a bug.
using Slots = std::vector<std::pair<std::string_view, std::string>>;
[[nodiscard]] std::string fill(std::string_view skeleton, const Slots& slots);

// Of a page, to within <main>: style sheet, title and what it is about, which are escaped here.
[[nodiscard]] std::string html_opening(std::string_view title, std::string_view subject);

// A heading and a list; empty without notes.
[[nodiscard]] std::string html_notes(const std::vector<std::string>& notes);

// From </main> on, of a page whose plots `script` makes of `data` with Chart.js.
[[nodiscard]] std::string html_end(const Json& data, std::string_view script);

// A <table> with caption, header cells with scope, and the exact number of every cell that has one
// in data-value. `emphasized` are the rows to highlight; `links[row]`, where given, are
// the targets of the first cell.
[[nodiscard]] std::string to_html(const Table& table, const std::vector<int>& emphasized = {},
                                  const std::vector<std::string>& links = {});

}  // namespace shardsim
