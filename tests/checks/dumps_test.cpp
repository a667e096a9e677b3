#include "checks/dumps.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim {
namespace {

struct Folder {
  std::string path =
      (std::filesystem::temp_directory_path() / ("shardsim_dumps_" + std::to_string(::getpid())))
          .string();
  Folder() { std::filesystem::create_directory(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST_CASE("programs of a folder by the names of their modules") {
  const Folder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file(folder.path + "/" + name, text);
  };
  CHECK(testing::mistake_of([&] { return programs_in(folder.path); }) ==
        folder.path +
            ": no program in it: expected *.mlir, *.hlo or *after_optimizations.txt, gzip too, as "
            "--xla_dump_to and jax_dump_ir_to write them");
  write("module_0007.jit_step.sm_9.0_gpu_after_optimizations.txt", "HloModule jit_step, a=b\n");
  write("module_0007.jit_step.before_optimizations.txt", "HloModule jit_step, a=b\n");
  write("module_0007.jit_step.sm_9.0_gpu_after_optimizations-buffer-assignment.txt", "Buffers\n");
  write("module_0009.jit_step.sm_9.0_gpu_after_optimizations.txt", "HloModule jit_step, a=c\n");
  write("jax_ir0001_jit_loss_compile.mlir", "module @jit_loss attributes {} {\n");
  write("notes.mlir", "nothing\n");
  const auto programs = programs_in(folder.path);
  std::vector<std::string> names;
  for (const auto& [name, path] : programs) names.push_back(name);
  CHECK(names == std::vector<std::string>{"jit_loss", "jit_step", "jit_step #2"});
  CHECK(programs.at("jit_step #2")
            .ends_with("module_0009.jit_step.sm_9.0_gpu_after_"
                       "optimizations.txt"));
}

TEST_CASE("modules of one name are counted in the order of the numbers in the files' names") {
  const Folder folder;
  for (const char* number : {"10", "9", "3", "02", "100"}) {
    write_file(folder.path + "/jax_ir" + number + "_jit_step_compile.mlir", "module @jit_step {\n");
  }
  const auto programs = programs_in(folder.path);
  const auto file_of = [&](const std::string& name) {
    return std::filesystem::path(programs.at(name)).filename().string();
  };
  CHECK(file_of("jit_step") == "jax_ir02_jit_step_compile.mlir");
  CHECK(file_of("jit_step #2") == "jax_ir3_jit_step_compile.mlir");
  CHECK(file_of("jit_step #3") == "jax_ir9_jit_step_compile.mlir");
  CHECK(file_of("jit_step #4") == "jax_ir10_jit_step_compile.mlir");
  CHECK(file_of("jit_step #5") == "jax_ir100_jit_step_compile.mlir");
}

}  // namespace
}  // namespace shardsim
