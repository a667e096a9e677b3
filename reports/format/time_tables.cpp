#include "reports/format/time_tables.hpp"

#include <algorithm>

#include "reports/format/cells.hpp"

namespace shardsim {

Table time_table(const Figures& figures) {
  Table table{"Where the step goes",
              {{"part", TextTable::Align::left},
               {"time", TextTable::Align::right},
               {"of the step", TextTable::Align::right}},
              {}};
  const auto add = [&](std::string_view part, SimTime time) {
    table.rows.push_back(
        {cells::words(part), cells::duration(time), cells::percent(figures.share(time))});
  };
  const auto add_by_cause = [&](std::string_view part, std::string_view label, SimTime time) {
    add(label, time);
    for (const TimePartRow& row : time_part_rows()) {
      const SimTime caused = figures.parts.at(static_cast<std::size_t>(row.part));
      if (row.of == part && !row.name.empty() && caused > SimTime(0)) add(label_of(row), caused);
    }
  };
  add_by_cause("compute", "compute", figures.compute);
  add_by_cause("contention", "contention", figures.contention);
  add_by_cause("exposed", "exposed communication", figures.exposed);
  add_by_cause("idle", "idle", figures.idle);
  add("step", figures.step);
  return table;
}

Table class_table(const Figures& figures) {
  Table table{"Device classes",
              {{"class", TextTable::Align::left},
               {"devices", TextTable::Align::right},
               {"peak memory", TextTable::Align::right},
               {"compute", TextTable::Align::right},
               {"contention", TextTable::Align::right},
               {"communication", TextTable::Align::right},
               {"exposed", TextTable::Align::right},
               {"idle", TextTable::Align::right}},
              {}};
  for (const ClassFigures& one : figures.classes) {
    table.rows.push_back({cells::words(one.name), cells::number(one.devices),
                          cells::bytes(one.peak), cells::duration(one.compute),
                          cells::duration(one.contention), cells::duration(one.communication),
                          cells::duration(one.exposed), cells::duration(one.idle)});
  }
  return table;
}

Table class_time_table(const Figures& figures) {
  Table table{"Where the step goes on each", {{"class", TextTable::Align::left}}, {}};
  for (const ClassFigures& one : figures.classes) table.rows.push_back({cells::words(one.name)});
  for (const TimePartRow& row : time_part_rows()) {
    const auto time_of = [&](const ClassFigures& one) {
      return one.parts.at(static_cast<std::size_t>(row.part));
    };
    const bool any = std::any_of(figures.classes.begin(), figures.classes.end(),
                                 [&](const auto& one) { return time_of(one) > SimTime(0); });
    if (!any) continue;
    table.columns.push_back({label_of(row), TextTable::Align::right});
    for (std::size_t i = 0; i < figures.classes.size(); ++i) {
      table.rows[i].push_back(cells::duration(time_of(figures.classes[i])));
    }
  }
  return table;
}

}  // namespace shardsim
