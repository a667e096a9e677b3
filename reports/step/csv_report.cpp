#include "reports/step/csv_report.hpp"

#include "base/text.hpp"

namespace shardsim {
namespace {

std::string seconds_text(SimTime time) { return plain_number(to_seconds(time).count()); }
std::string bytes(Bytes size) { return std::to_string(size.count()); }
std::string optional_number(const std::optional<double>& value) {
  return value ? plain_number(*value) : std::string();
}

// Members of a row, joined by commas.
template <class Part>
std::string line(const std::vector<Field>& fields, Part part) {
  std::string out;
  for (const Field& field : fields) out += (out.empty() ? "" : ",") + csv_field(part(field));
  return out + "\r\n";
}

}  // namespace

std::vector<Field> csv_fields(const Figures& figures) {
  std::vector<Field> fields{
      {"name", figures.name},
      {"model", figures.model},
      {"strategy", figures.strategy},
      {"mesh", figures.mesh},
      {"machine", figures.machine},
      {"devices", std::to_string(figures.devices)},
      {"step_time_s", seconds_text(figures.step)},
      {"compute_time_s", seconds_text(figures.compute)},
      {"contention_time_s", seconds_text(figures.contention)},
      {"communication_time_s", seconds_text(figures.communication)},
      {"exposed_communication_s", seconds_text(figures.exposed)},
      {"idle_time_s", seconds_text(figures.idle)},
      {"tokens_per_s_per_device", optional_number(figures.tokens_per_second_per_device)},
      {"mfu", optional_number(figures.mfu)},
      {"mfu_full_attention", optional_number(figures.mfu_full_attention)},
      {"wire_bytes_per_device", bytes(figures.wire_bytes_per_device)},
      {"peak_bytes", bytes(figures.peak)},
      {"reserved_bytes", bytes(figures.reserved)},
      {"process_bytes", bytes(figures.process)},
      {"capacity_bytes", bytes(figures.capacity)},
      {"fits", figures.fits ? "true" : "false"},
  };
  for (BufferCategory category : categories_in_reports) {
    fields.push_back({category_key(category) + "_bytes", bytes(figures.of(category))});
  }
  for (const TimePartRow& row : time_part_rows()) {
    if (row.name.empty()) continue;  // is there already
    fields.push_back(
        {key_of(row), seconds_text(figures.parts.at(static_cast<std::size_t>(row.part)))});
  }
  fields.push_back({"padding_bytes_per_device", bytes(figures.padding_per_device)});
  fields.push_back({"memory_balance", plain_number(figures.memory_balance)});
  fields.push_back({"compute_balance", plain_number(figures.compute_balance)});
  fields.push_back({"link_balance", plain_number(figures.link_balance)});
  return fields;
}

std::string csv_report(const std::vector<Figures>& all) {
  std::string out = line(csv_fields(Figures{}), [](const Field& field) { return field.column; });
  for (const Figures& figures : all) {
    out += line(csv_fields(figures), [](const Field& field) { return field.value; });
  }
  return out;
}

}  // namespace shardsim
