#include "reports/format/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "reports/format/cells.hpp"
#include "reports/format/known_error.hpp"
#include "reports/format/time_tables.hpp"
#include "reports/format/verdict.hpp"

namespace shardsim {

namespace {

using cells::bytes;
using cells::duration;
using cells::number;
using cells::percent;
using cells::words;

constexpr auto left = TextTable::Align::left;
constexpr auto right = TextTable::Align::right;

constexpr std::string_view no_value = "-";

Cell throughput(const Figures& figures) {
  if (!figures.tokens_per_second_per_device) return words(no_value);
  const double rate = *figures.tokens_per_second_per_device;
  const std::string text =
      rate < 100 ? fmt::format("{:.2f}", rate) : format_count(std::llround(rate));
  return {text, plain_number(rate)};
}

Cell mfu(const Figures& figures) { return figures.mfu ? percent(*figures.mfu) : words(no_value); }

// "54.9 %, with full attention 60.3 %"; the second where a causal mask makes a difference.
std::string mfu_line(const Figures& figures) {
  std::string line = mfu(figures).text;
  if (figures.mfu_full_attention && *figures.mfu_full_attention > *figures.mfu) {
    line += ", with full attention " + percent(*figures.mfu_full_attention).text;
  }
  return line;
}

std::string or_dash(const std::string& text) { return text.empty() ? std::string(no_value) : text; }

// " (430.00 ms into the step, during model.layers.31.mlp.down_proj)"
std::string peak_moment(const Figures& figures) {
  // A compiled program holds its heap from the beginning.
  if (figures.step_kind == "program" && figures.peak_time == SimTime(0)) return " (all step long)";
  if (figures.peak_task.empty()) return {};
  return fmt::format(" ({} into the step, during {})",
                     format_seconds(to_seconds(figures.peak_time)), figures.peak_task);
}

std::string_view fits_text(const Figures& figures) {
  if (!figures.fits) return "no";
  return figures.fits_narrowly() ? "narrowly" : "yes";
}

std::string workload_part(const Figures& figures, const std::string& part) {
  for (const auto& [name, value] : figures.workload) {
    if (name == part) return value;
  }
  return std::string(no_value);
}

// What is not the same in all of them: "batch", "rematerialization".
std::vector<std::string> differing_workload(const std::vector<Figures>& all) {
  std::vector<std::string> parts;
  for (const Figures& figures : all) {
    for (const auto& [name, value] : figures.workload) {
      if (std::find(parts.begin(), parts.end(), name) == parts.end()) parts.push_back(name);
    }
  }
  std::erase_if(parts, [&](const std::string& part) {
    return std::all_of(all.begin(), all.end(), [&](const Figures& figures) {
      return workload_part(figures, part) == workload_part(all.front(), part);
    });
  });
  return parts;
}

double fraction_of(Bytes part, Bytes whole) {
  if (whole.count() == 0) return 0;
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

// Published steps near this one.
Table nearby_table(const StepEvidence& evidence) {
  std::string caption = "Published steps nearby, and what is predicted of them";
  if (!evidence.outside.empty()) {
    caption += fmt::format("; here is {}", fmt::join(evidence.outside, "; "));
  }
  Table table{std::move(caption),
              {{"step", left}, {"measured", right}, {"predicted", right}, {"error", right}},
              {}};
  for (const PublishedStep& step : evidence.nearest) {
    table.rows.push_back({words(step.id), words(format_seconds(Seconds(step.measured))),
                          words(format_seconds(Seconds(step.predicted))),
                          words(fmt::format("{:+.1f} %", 100 * (1 / step.ratio() - 1)))});
  }
  return table;
}

}  // namespace

std::string to_text(const Table& table, std::string_view indent, std::size_t width) {
  TextTable text(table.columns);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(cell.text);
    text.add_row(std::move(cells));
  }
  return text.text(indent, width);
}

std::string to_markdown(const Table& table) {
  TextTable text(table.columns);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(markdown_escape(cell.text));
    text.add_row(std::move(cells));
  }
  return text.markdown();
}

Table comparison_table(const std::vector<Figures>& all) {
  Table table{"Configurations", {{"name", left}, {"strategy", left}, {"mesh", left}}, {}};
  const std::vector<std::string> workload = differing_workload(all);
  for (const std::string& part : workload) table.columns.push_back({part, left});
  table.columns.insert(table.columns.end(), {{"step time", right},
                                             {"tokens/s/device", right},
                                             {"MFU", right},
                                             {"memory", right},
                                             {"fits", left},
                                             {"exposed", right},
                                             {"wire/device", right}});
  for (const Figures& figures : all) {
    std::vector<Cell> cells = {words(figures.name), words(figures.strategy),
                               words(or_dash(figures.mesh))};
    for (const std::string& part : workload) cells.push_back(words(workload_part(figures, part)));
    cells.insert(cells.end(), {duration(figures.step), throughput(figures), mfu(figures),
                               bytes(figures.process), words(fits_text(figures)),
                               duration(figures.exposed), bytes(figures.wire_bytes_per_device)});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table memory_table(const Figures& figures) {
  Table table{"Memory per device at the peak" + peak_moment(figures),
              {{"category", left}, {"size", right}, {"of the peak", right}},
              {}};
  for (BufferCategory category : categories_in_reports) {
    const Bytes size = figures.of(category);
    if (size.count() == 0) continue;
    table.rows.push_back(
        {words(category_label(category)), bytes(size), percent(fraction_of(size, figures.peak))});
  }
  table.rows.push_back({words("peak"), bytes(figures.peak), percent(1)});
  if (figures.process != figures.peak) {
    const auto add = [&](std::string_view what, Bytes size) {
      table.rows.push_back({words(what), bytes(size), percent(fraction_of(size, figures.peak))});
    };
    add("reserved by the allocator", figures.reserved);
    add("with context and NCCL", figures.process);
  }
  return table;
}

Table peak_buffer_table(const Figures& figures, std::size_t limit) {
  Table table{"Largest buffers at the peak",
              {{"buffer", left}, {"category", left}, {"count", right}, {"size together", right}},
              {}};
  Bytes rest{0};
  std::int64_t rest_count = 0;
  for (std::size_t i = 0; i < figures.peak_buffers.size(); ++i) {
    const PeakBuffer& buffer = figures.peak_buffers[i];
    if (i < limit) {
      table.rows.push_back({words(buffer.name), words(category_label(buffer.category)),
                            number(buffer.count), bytes(buffer.bytes)});
    } else {
      rest += buffer.bytes;
      rest_count += buffer.count;
    }
  }
  if (rest_count > 0) {
    table.rows.push_back({words("all others"), {}, number(rest_count), bytes(rest)});
  }
  return table;
}

Table communication_table(const Figures& figures) {
  Table table{figures.classes.size() > 1
                  ? "Communication of one step, a device of each class, added up"
                  : "Communication of one step",
              {{"kind", left},
               {"axes", left},
               {"group", right},
               {"count", right},
               {"payload", right},
               {"wire/device", right},
               {"time", right},
               {"exposed", right},
               {"algorithm", left},
               {"what", left}},
              {}};
  for (const CommunicationRow& row : figures.communication_rows) {
    table.rows.push_back(
        {words(row.kind), words(or_dash(fmt::format("{}", fmt::join(row.axes, ",")))),
         number(row.group_size), number(row.count), bytes(row.payload),
         bytes(row.wire_bytes_per_device), duration(row.time), duration(row.exposed),
         words(or_dash(fmt::format("{}", fmt::join(row.algorithms, ", ")))), words(row.what)});
  }
  return table;
}

Table padding_table(const Figures& figures, std::size_t limit) {
  Table table{"Padding: dimensions that do not divide",
              {{"tensor", left},
               {"dimension", right},
               {"size", right},
               {"shards", right},
               {"padded to", right},
               {"instances", right},
               {"lost per device", right}},
              {}};
  Bytes rest{0};
  for (std::size_t i = 0; i < figures.padding.size(); ++i) {
    const Padding& padding = figures.padding[i];
    if (i >= limit) {
      rest += padding.wasted_per_device;
      continue;
    }
    table.rows.push_back({words(padding.tensor), number(padding.dimension), number(padding.size),
                          number(padding.shards), number(padding.padded_size),
                          number(padding.instances), bytes(padding.wasted_per_device)});
  }
  if (figures.padding.size() > limit) {
    table.rows.push_back({words("all others"), {}, {}, {}, {}, {}, bytes(rest)});
  }
  table.rows.push_back({words("together"), {}, {}, {}, {}, {}, bytes(figures.padding_per_device)});
  return table;
}

Table suggestion_table(const std::vector<Figures>& all) {
  Table table{
      "What would make it fit, or comes nearest",
      {{"name", left}, {"memory", right}, {"fits", left}, {"step time", right}, {"with", left}},
      {}};
  for (const Figures& figures : all) {
    for (const auto& [suggestion, narrowly] : figures.suggestions) {
      const char* fits = !suggestion.fits ? "no" : narrowly ? "narrowly" : "yes";
      std::vector<std::string> flags;
      for (const auto& [path, value] : suggestion.settings) {
        flags.push_back(fmt::format("--set {}={}", path, value));
      }
      table.rows.push_back({words(figures.name), bytes(suggestion.peak), words(fits),
                            duration(suggestion.step),
                            words(fmt::format("{}", fmt::join(flags, " ")))});
    }
  }
  return table;
}

std::vector<Table> run_tables(const Figures& figures) {
  std::vector<Table> tables{memory_table(figures), peak_buffer_table(figures), time_table(figures)};
  tables.push_back(communication_table(figures));
  if (figures.classes.size() > 1) {
    tables.push_back(class_table(figures));
    tables.push_back(class_time_table(figures));
  }
  if (!figures.padding.empty()) tables.push_back(padding_table(figures));
  if (figures.known_error) tables.push_back(nearby_table(*figures.known_error));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

std::vector<std::pair<std::string, std::string>> summary(const Figures& figures) {
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("machine", machine_line(figures));
  if (!figures.workload.empty()) lines.emplace_back("workload", workload_line(figures));
  if (figures.parameters > 0) lines.emplace_back("parameters", format_count(figures.parameters));
  lines.emplace_back("step time", duration(figures.step).text);
  if (figures.known_error) {
    lines.emplace_back("known error", evidence_sentence(*figures.known_error));
    if (!figures.known_error->outside.empty()) {
      lines.emplace_back("beyond evidence",
                         fmt::format("{}", fmt::join(figures.known_error->outside, "; ")));
    }
  }
  if (figures.tokens_per_second_per_device) {
    lines.emplace_back("tokens/s/device", throughput(figures).text);
  }
  if (figures.mfu) lines.emplace_back("MFU", mfu_line(figures));
  if (figures.bubble) {
    lines.emplace_back(
        "bubble", fmt::format("{} ({} of the step) in which a device waits for other stages, on "
                              "average",
                              duration(*figures.bubble).text,
                              format_percent(figures.share(*figures.bubble))));
    const std::string binding = binding_stage(figures);
    if (!binding.empty()) lines.emplace_back("stages", binding);
  }
  if (!figures.communication_rows.empty()) {
    lines.emplace_back(
        "communication",
        fmt::format("{}, of which {} exposed ({} of the step)",
                    duration(figures.communication).text, duration(figures.exposed).text,
                    format_percent(figures.share(figures.exposed))));
  }
  lines.emplace_back(
      "balance",
      fmt::format("memory {:.2f}, compute {:.2f}, links {:.2f} (mean over "
                  "maximum across devices)",
                  figures.memory_balance, figures.compute_balance, figures.link_balance));
  if (figures.padding_per_device.count() > 0) {
    lines.emplace_back("padding",
                       fmt::format("{} per device", bytes(figures.padding_per_device).text));
  }
  lines.emplace_back("memory", memory_verdict(figures));
  if (figures.on_host.count() > 0) {
    const std::string of = figures.host_capacity ? fmt::format(", {} of the {} of a host",
                                                               bytes(figures.on_a_host).text,
                                                               bytes(*figures.host_capacity).text)
                                                 : "";
    lines.emplace_back("host memory",
                       fmt::format("{} per device{}", bytes(figures.on_host).text, of));
  }
  return lines;
}

std::string title_of(const Figures& figures) {
  return fmt::format("{} {} step, {} on {}", figures.model, figures.step_kind, figures.strategy,
                     figures.mesh.empty() ? "one device" : figures.mesh);
}

std::string machine_line(const Figures& figures) {
  return fmt::format("{} ({}; {})", figures.machine, figures.extent, figures.device);
}

std::vector<std::string> remarks_of(const std::vector<Figures>& all,
                                    std::vector<std::string> Figures::*kind) {
  std::vector<std::pair<std::string, std::vector<std::string>>> remarks;  // text, who says it
  for (const Figures& figures : all) {
    for (const std::string& text : figures.*kind) {
      const auto known = std::find_if(remarks.begin(), remarks.end(),
                                      [&](const auto& remark) { return remark.first == text; });
      if (known == remarks.end()) {
        remarks.emplace_back(text, std::vector{figures.name});
      } else if (known->second.back() != figures.name) {
        known->second.push_back(figures.name);
      }
    }
  }
  std::vector<std::string> lines;
  for (const auto& [text, names] : remarks) {
    const bool everyone = names.size() == all.size();
    lines.push_back(everyone ? text : fmt::format("{}: {}", fmt::join(names, ", "), text));
  }
  return lines;
}

std::string text_remarks(std::string_view heading, const std::vector<std::string>& lines,
                         std::size_t width) {
  if (lines.empty()) return {};
  constexpr std::size_t indent = 4;
  std::string text = fmt::format("\n{}\n", heading);
  for (const std::string& line : lines) {
    text += fmt::format("  - {}\n", wrapped(line, indent, width));
  }
  return text;
}

std::string markdown_escape(std::string_view text) {
  static constexpr std::string_view special = "\\|<>*[]`~";
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // An underscore inside a word is plain text in every Markdown; at its edge it is emphasis.
    const bool edge = c == '_' && (i == 0 || i + 1 == text.size() || !is_word(text[i - 1]) ||
                                   !is_word(text[i + 1]));
    if (edge || special.find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

}  // namespace shardsim
