// The frameworks' own example configurations, key by key in an arrangement of our own
// (files/, docs/own-files.md says of which each is): every one becomes an experiment that
// compiles, or is refused by a key that is listed.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
#include "launch/launch.hpp"

namespace shardsim::launch_files_test {
namespace {

namespace fs = std::filesystem;

const std::string folder = SHARDSIM_SOURCE_DIR "/tests/launch/files";

// Settings of models alone.
bool says_no_batch(const std::string& name) {
  for (const char* model : {"gpt_oss", "nemotron3", "llama4", "qwen3_30b", "kimi"}) {
    if (name.starts_with(model)) return true;
  }
  return false;
}

// Of the environment, as recipes that launch these say it (best_practice/, SBATCH.sh).
void add_variables(const std::string& name, LaunchOptions& options) {
  if (name == "sc21_gpt.sh") {
    options.devices = 64;
    options.overrides = {"TP=8",   "PP=8",     "MBS=1",  "GBS=64",
                         "NLS=96", "HS=12288", "NAH=96", "DDP=local"};
  }
  if (name == "domino_llama3_8b.sh") options.overrides = {"vocab-size=128256"};
  if (!name.starts_with("zoo_")) return;
  options.devices = 256;
  options.overrides = {"TP=2", "EP=32", "CP=1", "MBS=1", "GBS=2048", "SEQ_LEN=4096"};
  if (name == "zoo_deepseek_v3.yaml") {
    options.overrides.insert(options.overrides.end(), {"PP=1", "vocab-size=129280"});
  } else {
    options.overrides.insert(options.overrides.end(), {"PP=8", "MOE_GROUPED_GEMM=true"});
  }
  if (name == "zoo_mixtral_8x22b.yaml") options.overrides[1] = "EP=8";
  if (name == "zoo_qwen3_235b.yaml") {
    options.overrides.insert(options.overrides.end(), {"LAYERS_PER_VP=3", "vocab-size=151936"});
  }
}

// What the files leave to the command line.
LaunchOptions options_of(const std::string& framework, const std::string& name) {
  LaunchOptions options;
  if (framework != "megatron") options.devices = name == "llama4_17bx128e.toml" ? 256 : 64;
  if (framework == "pax") options.devices.reset();  // meshes say how many
  if (framework == "deepspeed") {
    *options.model = "llama-3.1-8b";
    options.devices = 8;
    options.sequence = 4096;
    if (name.starts_with("autotuning")) {
      options.overrides = {"train_micro_batch_size_per_gpu=1", "bf16.enabled=true"};
    }
    if (name == "hf_zero3.json") options.overrides = {"train_micro_batch_size_per_gpu=1"};
    if (name == "bert_squad_24.json") options.devices = 4;  // 24 in sixes
    if (name == "zero_offload_10b.json") options.devices = 10;
    if (name == "llama_70b_multi_node.json") options.devices = 32;
    if (name.starts_with("llamafactory_")) {
      options.overrides = {"train_micro_batch_size_per_gpu=2", "bf16.enabled=true"};
    }
  }
  if (name.ends_with(".args")) {  // no launch, and some neither batch nor tokens
    options.devices = name == "deepseek_v3_fsdp.args" ? 512 : 8;
    if (says_no_batch(name)) options.overrides = {"global-batch-size=8"};
    if (name != "kimi_k2.args" && name != "gpt_oss_20b.args") {
      options.overrides.emplace_back("vocab-size=131072");
    }
  }
  if (name == "mamba_800m.sh") options.overrides = {"vocab-size=32000"};
  if (name.ends_with(".yaml")) options.devices = 8;
  add_variables(name, options);
  if (name.starts_with("gpt3_175b")) options.devices = 1024;
  if (name.find("_8xb200_") != std::string::npos) options.devices = 8;
  for (const auto& [file, model] : {std::pair{"blendcorpus_llama2_7b.toml", "llama-2-7b"},
                                    std::pair{"nemotron3_nano_30b.toml", "nemotron-3-nano-30b-a3b"},
                                    std::pair{"sft_llama3_8b.toml", "llama-3.1-8b"}}) {
    if (name == file) *options.model = model;  // whose names are those of forks
  }
  if (name == "transformers_qwen3_pp2.toml") {
    options.devices = 8;
    *options.model = Json{{"base", "qwen3-1.7b"}, {"tie_word_embeddings", false}};
  }
  if (name.starts_with("rules_") && framework == "maxtext") {
    options.overrides = {"model_name=deepseek2-16b"};
    if (name != "rules_pure-fsdp.yml") options.overrides.emplace_back("ici_expert_parallelism=8");
  }
  return options;
}

// By what is in the files: those of upstream that ask for what is not simulated, or are not right.
const std::map<std::string, std::string> refused = {
    {"azure_175b_deepspeed.sh", "is DeepSpeed's"},
    {"bert_340m.sh", "trains BERT"},
    {"code_parrot.sh", "2 devices are no multiple"},  // four devices of two
    {"deepseek_hsdp.args", "shards of two levels"},
    {"t5_220m.sh", "trains T5"},
    {"t5_11b.yaml", "encoders cannot be made of arguments"},
    {"llava_mistral.sh", "networks over images cannot be made of arguments"},
    {"dsv4_hybrid.sh", "sparse attention cannot be made of arguments"},
    {"mfsdp_hfsdp.yaml", "shards of two levels"},
    {"moe_muon.yaml", "\"dist_muon\" is not among"},
    {"hybrid_cp4.yaml", "but for positions learned, norm layer"},
    {"hybrid_stages.yaml", "but for positions learned, norm layer"},
    {"deepseek_16b_8xb200_131k.toml", "steps inside of backward"},
    {"flux_dev.toml", "texts and images that other networks encode"},
    {"kimi_linear_48b.toml", "name its config.json with --model"},
    {"qwen3_next_80b.toml", "name its config.json with --model"},
    {"llama3_70b_8xb200_32k.toml", "steps inside of backward"},
    {"accelerate_zero1.json", "is filled in by the program"},
    {"accelerate_zero3.json", "is filled in by the program"},
    {"alst_ulysses.json", "is filled in by the program"},
    {"autoep_zero1_qwen3_5_moe.json", "experts over devices are not simulated"},
    {"autosp.json", "DeepCompile's passes"},
    {"bert_large_onebit_lamb.json", "\"OneBitLamb\" is not among"},
    {"llama_70b_multi_node.json", "\"OneBitAdam\" is not among"},
    {"zenflow.json", "ZenFlow is not simulated"},
    {"zero_offload_10b.json", "did you mean"},  // "comm_overlap"
    {"autotuning_zero2.json", "where they are made"},
    {"autotuning_zero3.json", "where they are made"},
    {"bert_onebit_adam.json", "\"OneBitAdam\" is not among"},
    {"bert_sparse_lamb.json", "sparse attention is not simulated"},
    {"gpt2_w8a8.json", "compressed training is not simulated"},
    {"megatron_zero_infinity.json", "did you mean"},  // "persitance"
    {"autotp_zero2.json", "is filled in by the program"},
    {"cifar.json", "master weights in fp16"},
    {"hf_fp16_zero1.json", "is filled in by the program"},
    {"hf_zero2.json", "is filled in by the program"},
    {"megatron_zero3.json", "did you mean"},                    // "persitence"
    {"llama4_17bx128e.toml", "as many microbatches as ranks"},  // "still under development"
    {"zero3_leaf_qwen3_5.json", "gathered whole"},
    {"rules_ep-as-cp.yml", "the batch over fsdp, not over expert, fsdp"},
    {"deepseek3-671b-batchsplit.yml", "experts' exchange beside computation"},
    {"deepseek4-284b.yml", "name the model's config.json with --model"},
    {"distillation.yml", "a student beside its teacher"},
    {"rl.yml", "rollouts of reinforcement learning"},
    {"qwen3-vl-4b.yml", "name the model's config.json with --model"}};

std::vector<fs::path> files_of(const std::string& framework) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / framework)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int count(const Imported& imported, KeyEffect effect) {
  return static_cast<int>(std::count_if(imported.keys.begin(), imported.keys.end(),
                                        [&](const KeyUse& use) { return use.effect == effect; }));
}

}  // namespace

TEST_CASE("Frameworks' own example configurations", "[golden]") {
  for (const LaunchFramework& framework : launch_frameworks()) {
    const std::string name(framework.name);
    const std::vector<fs::path> files = files_of(name);
    CHECK(files.size() >= 10);
    for (const fs::path& file : files) {
      const std::string stem = file.filename().string();
      INFO(stem);
      const auto wanted = refused.find(stem);
      try {
        const Imported imported =
            import_launch(name, read_file(file.string()), stem, options_of(name, stem));
        const Experiment experiment = read_experiments(*imported.experiment, stem).front();
        const CompiledStep step = compile_experiment(experiment);
        CHECK(!step.plan.programs.empty());
        CHECK(wanted == refused.end());
      } catch (const InputError& error) {
        INFO(error.what());
        REQUIRE(wanted != refused.end());
        CHECK(std::string(error.what()).find(wanted->second) != std::string::npos);
      }
    }
  }
}

// | file | keys used | without influence | refused |
TEST_CASE("The documents count the keys of each file", "[golden]") {
  const std::string document = read_file(SHARDSIM_SOURCE_DIR "/docs/own-files.md");
  for (const LaunchFramework& framework : launch_frameworks()) {
    for (const fs::path& file : files_of(std::string(framework.name))) {
      const Imported imported = import_launch(framework.name, read_file(file.string()),
                                              file.filename().string(), {.lists_refused = true});
      std::ostringstream row;
      row << "| `" << file.filename().string() << "` | " << count(imported, KeyEffect::used)
          << " | " << count(imported, KeyEffect::harmless) << " | "
          << count(imported, KeyEffect::refused) << " |";
      INFO(row.str());
      CHECK(document.find(row.str()) != std::string::npos);
    }
  }
}

}  // namespace shardsim::launch_files_test
