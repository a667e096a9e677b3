#include "reports/hlo/hlo_diff_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/read_mesh.hpp"

namespace shardsim {
namespace {

constexpr auto left = TextTable::Align::left;
constexpr auto right = TextTable::Align::right;
constexpr std::size_t most_devices_text = 40;  // characters of groups or pairs
constexpr std::size_t most_reasons = 3;

Cell words(std::string text) { return {.text = std::move(text), .value = {}}; }

std::string sign_of(double difference) { return difference < 0 ? "-" : "+"; }

std::string count_difference(std::int64_t difference) {
  if (difference == 0) return "=";
  return sign_of(static_cast<double>(difference)) + format_count(std::abs(difference));
}

std::string bytes_difference(Bytes difference) {
  if (difference == Bytes(0)) return "=";
  return sign_of(static_cast<double>(difference.count())) +
         format_bytes(Bytes(std::abs(difference.count())));
}

std::string flops_difference(Flops difference) {
  if (difference == Flops(0)) return "=";
  return sign_of(difference.count()) + format_flops(Flops(std::abs(difference.count())));
}

std::string shortened(const std::string& text) {
  if (text.size() <= most_devices_text) return text;
  return text.substr(0, text.rfind(' ', most_devices_text)) + " ..";
}

// "a" where both are the same, else "a -> b".
std::string from_to(const std::string& before, const std::string& after) {
  return before == after ? before : fmt::format("{} -> {}", before, after);
}

std::string devices_text(const CollectiveKey& key) {
  if (key.over.empty()) return "every device";
  return shortened(key.over);
}

std::int64_t executions_of(const std::vector<CountedCollective>& side) {
  std::int64_t count = 0;
  for (const CountedCollective& collective : side) count += collective.count;
  return count;
}

std::string executions_text(const CollectiveChange& change) {
  return from_to(format_count(change.staying + executions_of(change.before)),
                 format_count(change.staying + executions_of(change.after)));
}

// "2.0 MiB" where all are of one size, else "3 x 2.0 MiB + 1.0 MiB".
std::string payloads_text(const std::vector<CountedCollective>& side) {
  if (side.size() == 1) return format_bytes(side[0].key.payload);
  std::vector<std::string> parts;
  for (const CountedCollective& collective : side) {
    const std::string size = format_bytes(collective.key.payload);
    parts.push_back(collective.count == 1 ? size : fmt::format("{} x {}", collective.count, size));
  }
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string reasons_text(const std::vector<std::string>& reasons) {
  const std::size_t shown = std::min(reasons.size(), most_reasons);
  std::string text = fmt::format(
      "{}", fmt::join(reasons.begin(), reasons.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (shown < reasons.size()) text += fmt::format("; {} more", reasons.size() - shown);
  return text;
}

// The rows of `make` for the first entries, and one that says how many more there are.
template <class Entries, class Make>
void add_rows(Table& table, const Entries& entries, Make make) {
  const std::size_t shown = std::min(entries.size(), default_row_limit);
  for (std::size_t i = 0; i < shown; ++i) table.rows.push_back(make(entries[i]));
  if (shown == entries.size()) return;
  std::vector<Cell> last(table.columns.size(), words(""));
  last[0] = words(fmt::format("{} more", entries.size() - shown));
  table.rows.push_back(std::move(last));
}

Table communication(const HloDiff& diff) {
  Table table{
      "Communication",
      {{"kind", left}, {"executions", right}, {"sent per device", right}, {"difference", right}},
      {}};
  for (const KindFigures& row : kind_figures(diff)) {
    table.rows.push_back(
        {words(row.kind),
         words(from_to(format_count(row.count_before), format_count(row.count_after))),
         words(from_to(format_bytes(row.wire_before), format_bytes(row.wire_after))),
         words(bytes_difference(row.wire_after - row.wire_before))});
  }
  return table;
}

Table collectives(const HloDiff& diff) {
  Table table{fmt::format("Collectives that differ ({} executions are equal)",
                          format_count(diff.equal_collectives)),
              {{"change", left},
               {"collective", left},
               {"executions", right},
               {"sent per device", right},
               {"why", left}},
              {}};
  add_rows(table, diff.collectives, [](const CollectiveChange& change) {
    return std::vector<Cell>{
        words(change_name(change)), words(describe(change)), words(executions_text(change)),
        words(bytes_difference(change.wire_difference())), words(reasons_text(change.reasons))};
  });
  return table;
}

Table work(const HloDiff& diff) {
  Table table{"Work per device",
              {{"", left}, {"before", right}, {"after", right}, {"difference", right}},
              {}};
  const auto flops = [&](const char* name, Flops before, Flops after) {
    table.rows.push_back({words(name), words(format_flops(before)), words(format_flops(after)),
                          words(flops_difference(after - before))});
  };
  const auto bytes = [&](const char* name, Bytes before, Bytes after) {
    table.rows.push_back({words(name), words(format_bytes(before)), words(format_bytes(after)),
                          words(bytes_difference(after - before))});
  };
  flops("operations of matmuls", diff.before.matmuls.flops, diff.after.matmuls.flops);
  flops("operations of others", diff.before.others.flops, diff.after.others.flops);
  bytes("memory traffic of matmuls", diff.before.matmuls.bytes, diff.after.matmuls.bytes);
  bytes("memory traffic of others", diff.before.others.bytes, diff.after.others.bytes);
  return table;
}

Table operations(const HloDiff& diff) {
  Table table{"Operations whose work differs",
              {{"op_name", left},
               {"operations", right},
               {"difference", right},
               {"memory traffic", right},
               {"difference", right}},
              {}};
  add_rows(table, diff.work, [](const WorkChange& change) {
    return std::vector<Cell>{
        words(change.op_name),
        words(from_to(format_flops(change.before.flops), format_flops(change.after.flops))),
        words(flops_difference(change.after.flops - change.before.flops)),
        words(from_to(format_bytes(change.before.bytes), format_bytes(change.after.bytes))),
        words(bytes_difference(change.after.bytes - change.before.bytes))};
  });
  return table;
}

Table memory(const HloDiff& diff) {
  Table table{"Memory per device",
              {{"", left}, {"before", right}, {"after", right}, {"difference", right}},
              {}};
  const auto text = [](std::optional<Bytes> bytes) {
    return words(bytes ? format_bytes(*bytes) : std::string("?"));
  };
  for (const MemoryFigure& row : memory_figures(diff)) {
    const bool known = row.before && row.after;
    table.rows.push_back({words(row.name), text(row.before), text(row.after),
                          words(known ? bytes_difference(*row.after - *row.before) : "?")});
  }
  return table;
}

Table instructions(const HloDiff& diff) {
  Table table{"Instructions",
              {{"opcode", left}, {"before", right}, {"after", right}, {"difference", right}},
              {}};
  add_rows(table, diff.opcodes, [](const OpcodeChange& change) {
    return std::vector<Cell>{words(change.opcode), words(format_count(change.before)),
                             words(format_count(change.after)),
                             words(count_difference(change.after - change.before))};
  });
  return table;
}

void add_notes(const HloSummary& program, const HloSummary& other, const char* which,
               std::vector<std::string>& remarks) {
  for (const std::string& note : program.notes) {
    if (std::find(other.notes.begin(), other.notes.end(), note) != other.notes.end()) continue;
    remarks.push_back(fmt::format("Only {}: {}", which, note));
  }
}

}  // namespace

std::vector<KindFigures> kind_figures(const HloDiff& diff) {
  std::map<CollectiveKind, KindFigures> kinds;
  KindFigures total;
  total.kind = "total";
  for (const CollectiveUse& use : diff.before.collectives) {
    for (KindFigures* row : {&kinds[use.key.kind], &total}) {
      row->count_before += use.count;
      row->wire_before += use.key.wire_bytes() * use.count;
    }
  }
  for (const CollectiveUse& use : diff.after.collectives) {
    for (KindFigures* row : {&kinds[use.key.kind], &total}) {
      row->count_after += use.count;
      row->wire_after += use.key.wire_bytes() * use.count;
    }
  }
  std::vector<KindFigures> rows;
  for (auto& [kind, row] : kinds) {
    row.kind = name_of(kind);
    rows.push_back(std::move(row));
  }
  rows.push_back(std::move(total));
  return rows;
}

std::vector<MemoryFigure> memory_figures(const HloDiff& diff) {
  const HloSummary& a = diff.before;
  const HloSummary& b = diff.after;
  const auto peak = [](const HloSummary& program) {
    return program.temporaries ? std::optional(program.peak()) : std::nullopt;
  };
  return {{"arguments", a.memory.argument, b.memory.argument},
          {"results", a.memory.output, b.memory.output},
          {"results in the place of arguments", a.memory.alias, b.memory.alias},
          {"temporaries (estimated)", a.temporaries, b.temporaries},
          {"peak", peak(a), peak(b)}};
}

std::string change_name(const CollectiveChange& change) {
  if (change.before.empty()) return "added";
  return change.after.empty() ? "removed" : "changed";
}

std::string describe(const CollectiveChange& change) {
  const auto& was = change.before.empty() ? change.after : change.before;
  const auto& is = change.after.empty() ? change.before : change.after;
  const CollectiveKey& before = was[0].key;
  const CollectiveKey& after = is[0].key;
  std::string over = from_to(devices_text(before), devices_text(after));
  if (before.group_size != after.group_size) {
    over += fmt::format(" ({} -> {} devices)", before.group_size, after.group_size);
  }
  return fmt::format("{} over {}, {}, {}",
                     from_to(std::string(name_of(before.kind)), std::string(name_of(after.kind))),
                     over,
                     from_to(std::string(name_of(before.dtype)), std::string(name_of(after.dtype))),
                     from_to(payloads_text(was), payloads_text(is)));
}

std::string title_of(const HloSummary& program) {
  return fmt::format("{}: {} on {}", program.file, program.name, describe(program.mesh));
}

std::vector<Table> hlo_diff_tables(const HloDiff& diff) {
  std::vector<Table> tables{communication(diff)};
  if (!diff.collectives.empty()) tables.push_back(collectives(diff));
  tables.push_back(work(diff));
  if (!diff.work.empty()) tables.push_back(operations(diff));
  tables.push_back(memory(diff));
  if (!diff.opcodes.empty()) tables.push_back(instructions(diff));
  return tables;
}

std::vector<std::string> hlo_diff_remarks(const HloDiff& diff) {
  std::vector<std::string> remarks;
  if (diff.collectives.empty()) remarks.emplace_back("The collectives are the same.");
  if (diff.opcodes.empty() && diff.work.empty()) {
    remarks.emplace_back("Instructions and their work are the same.");
  }
  add_notes(diff.before, diff.after, "before", remarks);
  add_notes(diff.after, diff.before, "after", remarks);
  return remarks;
}

}  // namespace shardsim
