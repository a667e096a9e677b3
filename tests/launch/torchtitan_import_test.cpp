// torchtitan's newer keys and models. Expectations: job_config.py and models/*/__init__.py of
// torchtitan 0.2.2.
#include <catch2/catch.hpp>

#include <string>

#include "base/json.hpp"
#include "launch/launch.hpp"

namespace shardsim::torchtitan_import_test {
namespace {

Imported imported(const std::string& model, const std::string& more = "") {
  const std::string text = "[training]\nlocal_batch_size = 2\nseq_len = 4096\n" + more;
  return import_launch("torchtitan", "[model]\n" + model + text, "a.toml", {.devices = 8});
}

const std::string llama = "name = \"llama3\"\nflavor = \"8B\"\n";
const std::string deepseek = "name = \"deepseek_v3\"\nflavor = \"16B\"\n";

}  // namespace

TEST_CASE("GPT-OSS, and flavors that attend within documents") {
  const Json small =
      (*imported("name = \"gpt_oss\"\nflavor = \"20B\"\n").experiment)["workload"]["model"];
  CHECK(small["num_local_experts"] == 32);
  CHECK(small["num_hidden_layers"] == 24);
  const Imported flexible = imported("name = \"llama3\"\nflavor = \"8B_flex\"\n");
  CHECK((*flexible.experiment)["workload"]["model"] == "llama-3.1-8b");
  CHECK(flexible.notes.size() == 1);
}

TEST_CASE("Balance of context parallelism, and the backend of exchanges") {
  const auto strategy = [](const std::string& model, const std::string& keys) {
    return (*imported(model, "[parallelism]\n" + keys).experiment)["strategy"];
  };
  CHECK(strategy(llama, "context_parallel_degree = 2\n")["context"]["balanced"] == true);
  CHECK(strategy(llama,
                 "context_parallel_degree = 2\ncontext_parallel_load_balancer = "
                 "\"None\"\n")["context"]["balanced"] == false);
  const Json experts = strategy(
      deepseek,
      "expert_parallel_degree = 4\nexpert_parallel_comm_backend = \"deepep\"\n")["experts"];
  CHECK(experts["dispatch"] == "deepep");
}

TEST_CASE("\"op\" saves the same with experts dealt out and without") {
  const std::string op =
      "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n";
  for (const std::string keys : {"", "[parallelism]\nexpert_parallel_degree = 4\n"}) {
    CHECK((*imported(deepseek, op + keys).experiment)["workload"]["rematerialization"] ==
          Json{{"policy", "every_other_product"}});
  }
}

TEST_CASE("A configuration in Python is not run") {
  CHECK_THROWS_WITH(import_launch("torchtitan", "def llama3_8b():\n", "config_registry.py", {}),
                    Catch::StartsWith("config_registry.py: is a program, which is not run"));
}

}  // namespace shardsim::torchtitan_import_test
