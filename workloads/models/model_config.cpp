#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file_kind.hpp"
#include "base/gzip.hpp"
#include "base/json.hpp"
#include "workloads/embedded_configs.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {

namespace fs = std::filesystem;

// The model's name from its file's: that of the directory for Hugging Face's config.json.
std::string model_name(const fs::path& path) {
  if (path.filename() != "config.json") return path.stem().string();
  const std::string directory = fs::absolute(path).parent_path().filename().string();
  return directory.empty() ? "config" : directory;
}

// The file that `name` means from `directory`: itself, with .json, or its config.json.
std::optional<fs::path> find_file(const std::string& name, const fs::path& directory) {
  const fs::path path = directory / name;
  for (const fs::path& candidate :
       {path, fs::path(path.string() + ".json"), path / "config.json"}) {
    std::error_code unreadable;  // a pipe is a file, too: import hf <(jq ... config.json)
    const fs::file_status status = fs::status(candidate, unreadable);
    if (fs::exists(status) && !fs::is_directory(status)) return candidate;
  }
  return std::nullopt;
}

// "llama-3.1-8b", "llama-3.1-8b.json" and "configs/llama-3.1-8b.json" name the shipped model.
std::string shipped_name(std::string name) {
  if (name.starts_with("configs/")) name.erase(0, 8);
  if (name.ends_with(".json")) name.erase(name.size() - 5);
  return name;
}

// Python writes numbers that JSON does not have: Mamba-2's "time_step_limit": [0.0, Infinity]. They
// are null here, as long as they were, so that places in messages stay.
std::string without_python_numbers(std::string text) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && in_string) {
      ++i;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string) continue;
    for (const std::string_view number : {"-Infinity", "Infinity"}) {
      if (text.compare(i, number.size(), number) != 0) continue;
      std::string null = "null";
      null.resize(number.size(), ' ');
      text.replace(i, number.size(), null);
    }
  }
  return text;
}

ModelConfig from_file(const fs::path& path) {
  const std::string file = path.string();
  const std::string text = read_maybe_gzip(file);
  require_kind(text, FileKind::model_config, file);
  Json document = parse_json(without_python_numbers(text), file);
  require_kind_of_document(document, FileKind::model_config, file);
  return {model_name(path), file, OwnedJson(std::move(document))};
}

// "num_hidden_layers=4, tie_word_embeddings=false"; of many keys their number.
std::string changes_text(const Json& changes) {
  constexpr std::size_t most_listed = 3;
  if (changes.size() > most_listed) return fmt::format("{} keys changed", changes.size());
  std::vector<std::string> texts;
  for (const auto& [key, value] : changes.items()) {
    texts.push_back(value.is_structured() ? key : fmt::format("{}={}", key, value.dump()));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// A config.json that is written in place has no name but what it says it is.
std::string inline_name(const JsonReader& model) {
  for (const std::string_view key : {"_name_or_path", "model_type"}) {
    const auto said = model.find(key);
    if (said && said->is_string() && !said->string().empty()) return said->string();
  }
  return "model";
}

// Of fewer layers the first: what a base lists for each of its own is cut off, "layer_types" and
// "hybrid_override_pattern", unless the changes list it themselves.
void cut_lists(const Json& changes, std::size_t before, Json& config) {
  const auto wanted = changes.find("num_hidden_layers");
  if (wanted == changes.end() || !wanted->is_number_integer() || *wanted < 0) return;
  const auto layers = wanted->get<std::size_t>();
  if (layers >= before) return;
  for (const char* key : {"layer_types", "mlp_layer_types", "hybrid_override_pattern"}) {
    if (changes.contains(key) || !config.contains(key)) continue;
    Json& list = config[key];
    if (list.is_array() && list.size() == before) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(layers), list.end());
    }
    if (list.is_string() && list.get<std::string>().size() == before) {
      list = list.get<std::string>().substr(0, layers);
    }
  }
}

}  // namespace

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  for (const EmbeddedFile& config : embedded_configs()) names.emplace_back(config.name);
  return names;
}

ModelConfig load_model_config(const std::string& name, const std::string& directory,
                              const Place& place) {
  if (name.empty()) throw InputError(place, "the model's name is empty");
  const std::string wanted = shipped_name(name);
  const std::vector<EmbeddedFile>& shipped = embedded_configs();
  const auto builtin = std::find_if(shipped.begin(), shipped.end(),
                                    [&](const EmbeddedFile& c) { return c.name == wanted; });
  // A bare name means the shipped model even where a file of that name lies about.
  if (builtin == shipped.end() || wanted != name) {
    if (const auto path = find_file(name, {})) return from_file(*path);
    if (const auto path = find_file(name, directory)) return from_file(*path);
  }
  if (builtin == shipped.end()) {
    const std::vector<std::string> known = shipped_models();
    const std::string suggestion = closest(wanted, known);
    if (!suggestion.empty()) {
      throw InputError(place, fmt::format("no model or file \"{}\"", name), suggestion);
    }
    throw InputError(place, fmt::format("no model or file \"{}\"; shipped are {}", name,
                                        fmt::join(known, ", ")));
  }
  const std::string file = wanted + ".json";
  return {wanted, file, OwnedJson(parse_json(builtin->text, file))};
}

ModelConfig load_model_config(const JsonReader& model, const std::string& directory) {
  if (model.is_string()) return load_model_config(model.string(), directory, model.place());
  if (!model.is_object()) {
    model.fail(
        "expected a model's name, a path, a config.json written in place, or {\"base\": a name, "
        "and the keys that differ}");
  }
  const std::string path = fmt::format("{}: {}", model.place().file, model.place().pointer);
  const auto base = model.find("base");
  if (!base) return {inline_name(model), path, OwnedJson(model.json())};
  ModelConfig config = load_model_config(base->string(), directory, base->place());
  Json changes = model.json();
  changes.erase("base");
  if (changes.empty()) return config;
  config.name += " (" + changes_text(changes) + ")";
  config.path = path;
  const std::size_t layers = config.json->value("num_hidden_layers", std::size_t{0});
  config.json->merge_patch(changes);
  cut_lists(changes, layers, *config.json);
  // A null is the file's own word (no latent of queries), not the lack of one.
  for (const auto& [key, value] : changes.items()) {
    if (value.is_null()) (*config.json)[key] = nullptr;
  }
  return config;
}

}  // namespace shardsim
