#include "checks/dumps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "experiments/program.hpp"

namespace shardsim {
namespace {

bool may_be_program(const std::string& file) {
  std::string_view name = file;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  constexpr std::array<std::string_view, 4> endings = {".mlir", ".hlo", ".stablehlo",
                                                       "after_optimizations.txt"};
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// The word behind `key`, without the sign that MLIR puts before names; empty where there is none.
std::string word_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  const std::size_t begin = text.find_first_not_of(" @\"");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_first_of(" ,\"\n\r\t{")));
}

std::string module_name(const std::string& text) {
  return is_hlo(text) ? word_after(text, "HloModule") : word_after(text, "module @");
}

}  // namespace

std::map<std::string, std::string> programs_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (entry.is_regular_file() && may_be_program(entry.path().filename().string())) {
      files.push_back(entry.path().string());
    }
  }
  if (failure) throw InputError({folder, ""}, "cannot be read as a folder of programs");
  std::sort(files.begin(), files.end());
  std::map<std::string, std::string> programs;
  for (const std::string& file : files) {
    const std::string module = module_name(read_maybe_gzip(file));
    if (module.empty()) continue;
    std::string name = module;
    for (int i = 2; programs.contains(name); ++i) name = fmt::format("{} #{}", module, i);
    programs[name] = file;
  }
  if (programs.empty()) {
    throw InputError({folder, ""},
                     "no program in it: expected *.mlir, *.hlo or *after_optimizations.txt, gzip "
                     "too, as --xla_dump_to and jax_dump_ir_to write them");
  }
  return programs;
}

}  // namespace shardsim
