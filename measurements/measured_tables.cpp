#include "measurements/measured_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file_kind.hpp"
#include "base/gzip.hpp"
#include "base/text.hpp"
#include "hardware_profiles/machine.hpp"
#include "hardware_profiles/network/network_text.hpp"
#include "measurements/nccl_tests_output.hpp"
#include "measurements/trace_tables.hpp"

namespace shardsim {
namespace {

namespace fs = std::filesystem;

// Whose traces are one job's.
struct Job {
  std::string folder;
  std::optional<std::int64_t> world_size;
  std::vector<RankTrace> traces;
  std::size_t place = 0;  // among the tables: where its first trace was
};

std::vector<std::string> traces_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const bool may_be = path.ends_with(".json") || path.ends_with(".json.gz");
    if (may_be && entry.is_regular_file()) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "rank0" of "traces/rank0.pt.trace.json.gz", "job" of "job/", "traces" of ".".
std::string name_of_file(const std::string& path) {
  fs::path name = fs::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  std::string text = name.filename().string();
  for (const std::string_view ending : {".gz", ".json", ".trace", ".pt"}) {
    if (text.ends_with(ending)) text.resize(text.size() - ending.size());
  }
  return text.find_first_not_of('.') == std::string::npos ? "traces" : text;
}

class Loader {
 public:
  explicit Loader(const std::optional<std::int64_t>& devices_per_node)
      : devices_per_node_(devices_per_node) {}

  void load(const std::string& path) {
    std::error_code status;
    if (fs::is_directory(path, status)) {
      load_folder(path);
      return;
    }
    const std::string text = read_maybe_gzip(path);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool is_json = first != std::string::npos && (text[first] == '{' || text[first] == '/');
    if (!is_json) {
      require_kind(text, FileKind::nccl_tests_log, path);
      tables_.emplace_back().push_back({path, table_of_log(text, path)});
    } else if (is_trace(text)) {
      const std::string folder = fs::path(path).parent_path().string();
      add_trace(read_trace(text, path), folder.empty() ? "." : folder);
    } else {
      require_kind(text, FileKind::measured_table, path);
      Json document = parse_json(text, path);
      if (is_of_nccl_tests(document)) document = table_of_json(document, path);
      if (kind_of_document(document) != FileKind::sweep) {  // which calibrate takes, too
        require_kind_of_document(document, FileKind::measured_table, path);
      }
      tables_.emplace_back().push_back({path, std::move(document)});
    }
  }

  [[nodiscard]] std::vector<MeasuredTable> take() {
    for (const Job& job : jobs_) tables_[job.place] = tables_of(job);
    std::vector<MeasuredTable> result;
    for (auto& tables : tables_) {
      result.insert(result.end(), std::make_move_iterator(tables.begin()),
                    std::make_move_iterator(tables.end()));
    }
    return result;
  }

 private:
  void load_folder(const std::string& folder) {
    bool is_any = false;
    for (const std::string& file : traces_in(folder)) {
      const std::string text = read_maybe_gzip(file);
      if (!is_trace(text)) continue;
      add_trace(read_trace(text, file), folder);
      is_any = true;
    }
    if (!is_any) throw InputError({folder, ""}, "holds no trace of the PyTorch profiler");
  }

  void add_trace(RankTrace trace, const std::string& folder) {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) {
      return job.folder == folder && job.world_size == trace.world_size;
    });
    if (found != jobs_.end()) {
      found->traces.push_back(std::move(trace));
      return;
    }
    Job& job = jobs_.emplace_back();
    job.folder = folder;
    job.world_size = trace.world_size;
    job.place = tables_.size();
    job.traces.push_back(std::move(trace));
    tables_.emplace_back();
  }

  [[nodiscard]] std::vector<MeasuredTable> tables_of(const Job& job) const {
    const bool is_one = job.traces.size() == 1;
    const std::string file = is_one ? job.traces.front().file : job.folder;
    const std::string name = name_of_file(file);
    const auto ranks = static_cast<std::int64_t>(job.traces.size());
    const std::string source = is_one ? fmt::format("trace of the PyTorch profiler, {}", file)
                                      : fmt::format("traces of the PyTorch profiler, {} in {}",
                                                    counted(ranks, "rank"), job.folder);
    std::vector<MeasuredTable> tables;
    for (Json& table : tables_of_traces(job.traces, name, source, devices_per_node_)) {
      tables.push_back({file, std::move(table)});
    }
    return tables;
  }

  std::optional<std::int64_t> devices_per_node_;
  std::vector<std::vector<MeasuredTable>> tables_;  // of each path or job
  std::vector<Job> jobs_;
};

}  // namespace

std::vector<MeasuredTable> load_measured_tables(
    const std::vector<std::string>& paths, const std::optional<std::int64_t>& devices_per_node) {
  Loader loader(devices_per_node);
  for (const std::string& path : paths) loader.load(path);
  return loader.take();
}

std::optional<std::int64_t> devices_of_host(const std::string& machine, const Place& place) {
  if (is_network_text(machine)) return std::nullopt;
  const Profile profile = load_profile(machine, place);
  const auto* const cluster = std::get_if<ClusterProfile>(&profile.network);
  if (cluster == nullptr) return std::nullopt;
  return devices_per_host(*cluster);
}

}  // namespace shardsim
