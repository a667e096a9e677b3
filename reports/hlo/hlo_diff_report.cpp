#include "reports/hlo/hlo_diff_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "base/version.hpp"
#include "plan/read_mesh.hpp"
#include "reports/hlo/hlo_diff_tables.hpp"

namespace shardsim {
namespace {

Json number_or_null(std::optional<Bytes> bytes) {
  return bytes ? Json(bytes->count()) : Json(nullptr);
}

Json program_json(const HloSummary& program) {
  return {{"file", program.file}, {"name", program.name}, {"mesh", mesh_to_json(program.mesh)}};
}

Json collectives_json(const std::vector<CountedCollective>& side) {
  Json rows = Json::array();
  for (const CountedCollective& collective : side) {
    const CollectiveKey& key = collective.key;
    rows.push_back({{"kind", name_of(key.kind)},
                    {"over", key.over},
                    {"group_size", key.group_size},
                    {"dtype", name_of(key.dtype)},
                    {"payload_bytes", key.payload.count()},
                    {"count", collective.count},
                    {"wire_bytes_per_device", collective.wire_bytes().count()}});
  }
  return rows;
}

Json work_json(const HloWork& work) {
  return {{"flops", work.flops.count()}, {"bytes", work.bytes.count()}};
}

Json both(const Json& before, const Json& after) { return {{"before", before}, {"after", after}}; }

Json communication_json(const HloDiff& diff) {
  Json rows = Json::array();
  for (const KindFigures& row : kind_figures(diff)) {
    rows.push_back(
        {{"kind", row.kind},
         {"count", both(row.count_before, row.count_after)},
         {"wire_bytes_per_device", both(row.wire_before.count(), row.wire_after.count())}});
  }
  return rows;
}

Json memory_json(const HloSummary& program) {
  return {{"argument_bytes", program.memory.argument.count()},
          {"output_bytes", program.memory.output.count()},
          {"alias_bytes", program.memory.alias.count()},
          {"temporary_bytes", number_or_null(program.temporaries)},
          {"peak_bytes", program.temporaries ? Json(program.peak().count()) : Json(nullptr)}};
}

std::string csv_row(const std::string& section, const std::string& item, const std::string& before,
                    const std::string& after, const std::string& difference,
                    const std::string& reason) {
  return fmt::format("{},{},{},{},{},{}\n", section, csv_field(item), before, after, difference,
                     csv_field(reason));
}

std::string whole(double value) { return fmt::format("{:.0f}", value); }

std::string integers(const std::string& section, const std::string& item, std::int64_t before,
                     std::int64_t after) {
  return csv_row(section, item, std::to_string(before), std::to_string(after),
                 std::to_string(after - before), "");
}

std::string work_rows(const std::string& section, const std::string& item, const HloWork& before,
                      const HloWork& after) {
  return csv_row(section, item + " flops", whole(before.flops.count()), whole(after.flops.count()),
                 whole((after.flops - before.flops).count()), "") +
         integers(section, item + " bytes", before.bytes.count(), after.bytes.count());
}

}  // namespace

std::string hlo_diff_text(const HloDiff& diff, std::size_t width) {
  std::string out =
      fmt::format("before  {}\nafter   {}\n", title_of(diff.before), title_of(diff.after));
  for (const Table& table : hlo_diff_tables(diff)) {
    out += fmt::format("\n{}\n{}", table.caption, to_text(table, "  ", width));
  }
  for (const std::string& remark : hlo_diff_remarks(diff)) {
    out += fmt::format("\n{}\n", wrapped(remark, 0, width));
  }
  return out;
}

std::string hlo_diff_markdown(const HloDiff& diff) {
  std::string out =
      fmt::format("## Compiled programs\n\n- **before**: {}\n- **after**: {}\n",
                  markdown_escape(title_of(diff.before)), markdown_escape(title_of(diff.after)));
  for (const Table& table : hlo_diff_tables(diff)) {
    out += fmt::format("\n### {}\n\n{}", markdown_escape(table.caption), to_markdown(table));
  }
  for (const std::string& remark : hlo_diff_remarks(diff)) {
    out += fmt::format("\n{}\n", markdown_escape(remark));
  }
  return out;
}

std::string hlo_diff_json(const HloDiff& diff) {
  Json json;
  json["schema"] = "shardsim/hlo-diff/1";
  json["shardsim"] = program_version;
  json["before"] = program_json(diff.before);
  json["after"] = program_json(diff.after);
  json["communication"] = communication_json(diff);
  json["equal_collectives"] = diff.equal_collectives;
  json["collectives"] = Json::array();
  for (const CollectiveChange& change : diff.collectives) {
    json["collectives"].push_back(
        {{"change", change_name(change)},
         {"before", collectives_json(change.before)},
         {"after", collectives_json(change.after)},
         {"staying", change.staying},
         {"wire_bytes_per_device_difference", change.wire_difference().count()},
         {"reasons", change.reasons}});
  }
  json["work"] = {{"matmuls", both(work_json(diff.before.matmuls), work_json(diff.after.matmuls))},
                  {"others", both(work_json(diff.before.others), work_json(diff.after.others))}};
  json["operations"] = Json::array();
  for (const WorkChange& change : diff.work) {
    Json row = both(work_json(change.before), work_json(change.after));
    row["op_name"] = change.op_name;
    json["operations"].push_back(std::move(row));
  }
  json["memory"] = both(memory_json(diff.before), memory_json(diff.after));
  json["instructions"] = Json::array();
  for (const OpcodeChange& change : diff.opcodes) {
    json["instructions"].push_back(
        {{"opcode", change.opcode}, {"before", change.before}, {"after", change.after}});
  }
  json["notes"] = both(diff.before.notes, diff.after.notes);
  return json.dump(2) + "\n";
}

std::string hlo_diff_csv(const HloDiff& diff) {
  std::string out = "section,item,before,after,difference,reason\n";
  for (const KindFigures& row : kind_figures(diff)) {
    out += integers("executions", row.kind, row.count_before, row.count_after);
    out += integers("wire bytes per device", row.kind, row.wire_before.count(),
                    row.wire_after.count());
  }
  for (const CollectiveChange& change : diff.collectives) {
    const auto wire = [](const std::vector<CountedCollective>& side) {
      Bytes sum;
      for (const CountedCollective& collective : side) sum += collective.wire_bytes();
      return std::to_string(sum.count());
    };
    out += csv_row(fmt::format("{} collective", change_name(change)), describe(change),
                   wire(change.before), wire(change.after),
                   std::to_string(change.wire_difference().count()),
                   fmt::format("{}", fmt::join(change.reasons, "; ")));
  }
  out += work_rows("work", "matmul", diff.before.matmuls, diff.after.matmuls);
  out += work_rows("work", "other", diff.before.others, diff.after.others);
  for (const WorkChange& change : diff.work) {
    out += work_rows("operation", change.op_name, change.before, change.after);
  }
  for (const MemoryFigure& row : memory_figures(diff)) {
    if (row.before && row.after) {
      out += integers("memory bytes", row.name, row.before->count(), row.after->count());
    }
  }
  for (const OpcodeChange& change : diff.opcodes) {
    out += integers("instructions", change.opcode, change.before, change.after);
  }
  return out;
}

}  // namespace shardsim
