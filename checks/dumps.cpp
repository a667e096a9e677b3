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

// Numbers in names by their size: jax_ir2_ is before jax_ir10_.
bool comes_before(std::string_view a, std::string_view b) {
  static constexpr std::string_view digits = "0123456789";
  const std::string_view all_of_a = a;
  const std::string_view all_of_b = b;
  const auto take_number = [](std::string_view& text) {
    const std::size_t end = std::min(text.find_first_not_of(digits), text.size());
    std::string_view number = text.substr(0, end);
    number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
    text.remove_prefix(end);
    return number;
  };
  while (!a.empty() && !b.empty()) {
    const bool numbers = digits.find(a.front()) != std::string_view::npos &&
                         digits.find(b.front()) != std::string_view::npos;
    if (numbers) {
      const std::string_view of_a = take_number(a);
      const std::string_view of_b = take_number(b);
      if (of_a.size() != of_b.size()) return of_a.size() < of_b.size();
      if (of_a != of_b) return of_a < of_b;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return all_of_a < all_of_b;  // 7 and 07
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
  std::sort(files.begin(), files.end(), comes_before);
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
