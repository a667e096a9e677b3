// Files are known by their content, whatever their names.
#include "base/file_kind.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "base/gzip.hpp"
#include "base/json.hpp"

namespace shardsim {
namespace {

std::optional<FileKind> kind_of_file(const std::string& path) {
  const std::string content = read_maybe_gzip(SHARDSIM_SOURCE_DIR "/" + path);
  if (const auto kind = kind_of_text(content)) return kind;
  return kind_of_document(parse_json(content, path));
}

struct KnownFile {
  const char* path;
  FileKind kind;
};

constexpr KnownFile known_files[] = {
    {"examples/qwen3-1.7b-fsdp4.json", FileKind::experiment},
    {"examples/llama-3.1-8b-8xh100.json", FileKind::experiment},
    {"examples/topologies/two-hosts.json", FileKind::profile},
    {"hardware_profiles/profiles/dgx-h100.json", FileKind::profile},
    {"hardware_profiles/calibrations/h100-nvswitch.json", FileKind::calibration},
    {"examples/trees/paligemma2-28b-448.json", FileKind::parameter_tree},
    {"examples/sweep-two-processes.json", FileKind::sweep},
    {"examples/check/baseline.json", FileKind::baseline},
    {"examples/check/budgets.json", FileKind::budgets},
    {"examples/collectives/h100-dgx-8-all-reduce.json", FileKind::measured_table},
    {"examples/kineto-traces/llama-3.2-fsdp-8xh100-rank0.json", FileKind::trace},
    {"examples/reshard/trainer-to-sampler.json", FileKind::reshard},
    {"workloads/configs/llama-3.1-8b.json", FileKind::model_config},
    {"examples/tiny-llama.safetensors", FileKind::safetensors},
    {"examples/programs/mlp-fsdp-tp.mlir", FileKind::stablehlo},
    {"examples/programs/fsdp-matmul.hlo", FileKind::hlo},
    {"examples/programs/offloaded-activations-v5e.hlo.gz", FileKind::hlo},
    {"examples/nccl-tests/a100-2x8-all-reduce.log", FileKind::nccl_tests_log},
};

}  // namespace

TEST_CASE("the files of the examples are what they are") {
  for (const KnownFile& file : known_files) {
    CAPTURE(file.path);
    const auto kind = kind_of_file(file.path);
    REQUIRE(kind);
    CHECK(name_of(*kind) == name_of(file.kind));
  }
}

TEST_CASE("what has no marks is not taken for anything") {
  CHECK_FALSE(kind_of_text(""));
  CHECK_FALSE(kind_of_text("{\"a\": 1}"));
  CHECK_FALSE(kind_of_text("module of mine"));
  CHECK_FALSE(kind_of_document(Json{{"mesh", {{"data", 8}}}}));
  CHECK_FALSE(kind_of_document(Json::array({1})));
  CHECK(kind_of_document(Json{{"schema", "shardsim/result/1"}}) == FileKind::result);
  CHECK(kind_of_document(Json{{"schema", "shardsim/specs/7"}}) == FileKind::report);
  CHECK(kind_of_text(std::string_view("a\0b", 3)) == FileKind::binary);
  CHECK(kind_of_text("ML\xefR") == FileKind::stablehlo_bytecode);
}

TEST_CASE("a file of another kind is told what it is for") {
  CHECK_THROWS_WITH(require_kind("HloModule m", FileKind::experiment, "a.txt"),
                    "a.txt: is compiled HLO, not an experiment: give it with --program");
  CHECK_NOTHROW(require_kind("HloModule m", FileKind::hlo, "a.txt"));
  CHECK_NOTHROW(require_kind("{", FileKind::hlo, "a.txt"));
}

}  // namespace shardsim
