#include "reports/model/model_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "reports/format/html.hpp"
#include "reports/html/resources.hpp"
#include "reports/model/model_tables.hpp"
#include "workloads/models/hub_names.hpp"
#include "workloads/models/patterns.hpp"

namespace shardsim {
namespace {

std::vector<Table> model_tables(const ModelReport& model) {
  return {layers_table(model), flops_table(model), model_parameters_table(model)};
}

std::string model_text(const ModelReport& model, std::size_t width) {
  std::string out = model_title(model) + "\n\n";
  const auto summary = model_summary(model);
  std::size_t labels = 0;
  for (const auto& [label, value] : summary) labels = std::max(labels, label.size());
  for (const auto& [label, value] : summary) {
    out += fmt::format("{:<{}}  {}\n", label, labels, wrapped(value, labels + 2, width));
  }
  std::istringstream lines(models::to_text(model.spec));
  if (lines.peek() != std::istringstream::traits_type::eof()) out += "\nBuilt of\n";
  for (std::string line; std::getline(lines, line);) out += "  " + line + "\n";
  for (const Table& table : model_tables(model)) {
    out += "\n" + table.caption + "\n" + to_text(table, "  ", width);
  }
  return out;
}

std::string model_markdown(const ModelReport& model) {
  std::string out = fmt::format("# {}\n\n", markdown_escape(model_title(model)));
  for (const auto& [label, value] : model_summary(model)) {
    out += fmt::format("- {}: {}\n", label, markdown_escape(value));
  }
  for (const Table& table : model_tables(model)) {
    out += fmt::format("\n## {}\n\n{}", table.caption, to_markdown(table));
  }
  return out;
}

Json model_parameters_json(const ModelReport& model) {
  Json list = Json::array();
  for (const ParameterRow& row : parameter_rows(model)) {
    Json parameter = {{"name", row.name}};
    if (row.sets.size() == 1) parameter["instances"] = row.sets[0];
    if (row.sets.size() > 1) parameter["instances"] = row.sets;
    parameter["shape"] = row.one.shape;
    parameter["dtype"] = name_of(row.one.dtype);
    if (row.one.experts > 0) {
      parameter["experts"] = row.one.experts;
      parameter["experts_per_token"] = row.one.visited;
    }
    list.push_back(std::move(parameter));
  }
  return list;
}

Json model_layers_json(const ModelReport& model) {
  Json list = Json::array();
  for (const LayerRow& row : layer_rows(model)) {
    list.push_back({{"pattern", row.pattern},
                    {"kind", row.kind},
                    {"layers", row.layers},
                    {"parameters", row.one.parameters},
                    {"active_parameters", row.one.active_parameters},
                    {"flops", row.one.forward_flops},
                    {"flops_backward", row.one.backward_flops},
                    {"saved_activation_bytes", row.one.saved_bytes},
                    {"kv_cache_bytes_per_token", row.one.cache_bytes_per_token},
                    {"state_bytes", row.one.state_bytes}});
  }
  return list;
}

// The experts' number as one more set of numbers, in the place of the name's "*".
void number_experts(models::NamePattern& pattern, std::int64_t first, std::int64_t experts) {
  const std::size_t star = pattern.name.find('*');
  std::size_t before = 0;
  for (std::size_t at = pattern.name.find("{}"); at < star; at = pattern.name.find("{}", at + 2)) {
    ++before;
  }
  pattern.name.replace(star, 1, "{}");
  pattern.sets.insert(
      pattern.sets.begin() + static_cast<std::ptrdiff_t>(before),
      experts == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, first + experts - 1));
}

// Of files whose tensors are not the module tree's.
Json hub_tensors_json(const ModelReport& model) {
  const auto tensors = models::hub_rows(model.spec.family, model.counts);
  std::vector<std::string> names;
  std::vector<std::string> likeness;
  for (const models::HubTensor& tensor : tensors) {
    names.push_back(tensor.name);
    likeness.push_back(fmt::format("{}{} {} {}", dims_text(tensor.shape), name_of(tensor.dtype),
                                   tensor.experts, tensor.first));
  }
  Json list = Json::array();
  for (models::NamePattern& pattern : models::fold_patterns(names, likeness)) {
    const models::HubTensor& one = tensors[pattern.members.front()];
    if (one.experts > 0) number_experts(pattern, one.first, one.experts);
    Json tensor = {{"name", pattern.name}};
    if (pattern.sets.size() == 1) tensor["instances"] = pattern.sets[0];
    if (pattern.sets.size() > 1) tensor["instances"] = pattern.sets;
    tensor["shape"] = one.shape;
    tensor["dtype"] = name_of(one.dtype);
    list.push_back(std::move(tensor));
  }
  return list;
}

std::string model_json(const ModelReport& model) {
  const models::ModelCounts& n = model.counts;
  Json json;
  json["schema"] = "shardsim/model/1";
  json["shardsim"] = program_version;
  json["model"] = model.spec.name;
  json["architecture"] = model.spec.architecture;
  json["family"] = model.spec.family;
  json["batch"] = model.point.batch;
  json["sequence"] = model.point.sequence;
  if (model.spec.network) {
    json["image"] = model.point.image.value_or(usual_side(*model.spec.network));
  }
  json["parameters"] = model_parameters_json(model);
  json["tied"] = n.tied;
  if (models::has_hub_names(model.spec.family)) json["hub_tensors"] = hub_tensors_json(model);
  json["buffers"] = Json::array();
  for (const models::Buffer& buffer : n.buffers) {
    json["buffers"].push_back(
        {{"name", buffer.name}, {"shape", buffer.shape}, {"dtype", name_of(buffer.dtype)}});
  }
  json["total_parameters"] = n.total_parameters;
  json["active_parameters"] = n.active_parameters;
  json["embedding_parameters"] = n.embedding_parameters;
  Json by_kind = Json::object();
  Json both_by_kind = Json::object();
  for (const KindFlops& kind : flops_by_kind(n)) {
    by_kind[kind.kind] = kind.forward;
    both_by_kind[kind.kind] = kind.forward + kind.backward;
  }
  json["flops"] = {{"forward", n.forward_flops},
                   {"forward_backward", n.forward_flops + n.backward_flops},
                   {"by_op", by_kind},
                   {"forward_backward_by_op", both_by_kind}};
  json["saved_activation_bytes"] = n.saved_bytes;
  json["kv_cache_bytes_per_token"] = n.cache_bytes_per_token;
  json["state_bytes"] = n.state_bytes;
  json["layers"] = model_layers_json(model);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string model_csv(const ModelReport& model) {
  std::string out = "name,instances,shape,dtype,parameters\n";
  for (const ParameterRow& row : parameter_rows(model)) {
    std::vector<std::string> fields = {
        row.text, std::to_string(row.instances), dims_text(row.one.shape),
        std::string(name_of(row.one.dtype)), std::to_string(row.elements * row.instances)};
    for (std::string& field : fields) field = csv_field(field);
    out += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return out;
}

// What the page's chart is made of: rows of layers and the rest, each as a whole.
Json model_parts(const ModelReport& model) {
  Json parts = Json::array();
  Json rest = {{"name", "embedding, head, loss"},
               {"parameters", model.counts.total_parameters},
               {"forward_flops", model.counts.forward_flops},
               {"saved_bytes", model.counts.saved_bytes}};
  for (const LayerRow& row : layer_rows(model)) {
    Json part = {{"name", fmt::format("{} ({})", row.pattern, row.kind)},
                 {"parameters", row.layers * row.one.parameters},
                 {"forward_flops", row.layers * row.one.forward_flops},
                 {"saved_bytes", row.layers * row.one.saved_bytes}};
    for (const char* key : {"parameters", "forward_flops", "saved_bytes"}) {
      rest[key] = rest[key].get<std::int64_t>() - part[key].get<std::int64_t>();
    }
    parts.push_back(std::move(part));
  }
  parts.push_back(std::move(rest));
  return {{"parts", std::move(parts)}};
}

std::string model_html(const ModelReport& model) {
  std::string summary;
  for (const auto& [label, value] : model_summary(model)) {
    summary += fmt::format("<tr><th scope=\"row\" class=\"short\">{}</th><td>{}</td></tr>\n",
                           html_escape(label), html_escape(value));
  }
  return fill(resources::model_html,
              {{"opening", html_opening(model_title(model), "What the model is made of")},
               {"summary", summary},
               {"tables", to_html(layers_table(model)) + to_html(flops_table(model))},
               {"parameters", to_html(model_parameters_table(model))},
               {"end", html_end(model_parts(model), resources::model_js)}});
}

}  // namespace

std::string report_model(const ModelReport& model, Format format, std::size_t width) {
  switch (format) {
    case Format::text:
      return model_text(model, width);
    case Format::json:
      return model_json(model);
    case Format::csv:
      return model_csv(model);
    case Format::html:
      return model_html(model);
    case Format::markdown:
      break;
  }
  return model_markdown(model);
}

std::string report_families(const std::vector<KnownFamily>& families,
                            const std::vector<std::string>& shipped, bool json, std::size_t width) {
  if (json) {
    Json document;
    document["schema"] = "shardsim/models/1";
    document["shardsim"] = program_version;
    document["families"] = Json::array();
    for (const KnownFamily& family : families) {
      document["families"].push_back(
          {{"model_type", family.model_type}, {"architecture", family.architecture}});
    }
    document["shipped"] = shipped;
    return document.dump(2) + "\n";
  }
  TextTable table({{"model_type"}, {"architecture"}});
  for (const KnownFamily& family : families) {
    table.add_row({family.model_type, family.architecture});
  }
  return fmt::format("Families\n{}\nShipped by name\n  {}\n", table.text("  ", width),
                     wrapped(fmt::format("{}", fmt::join(shipped, ", ")), 2, width));
}

}  // namespace shardsim
