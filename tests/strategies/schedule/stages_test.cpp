// Which layers a stage has, where no record of Megatron says it: torchtitan's way, lists, errors.
#include "strategies/layout/stages.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "strategies/layout/layout_string.hpp"

using namespace shardsim;

namespace {

std::vector<std::int32_t> counts_of(const StagesRequest& request) {
  std::vector<std::int32_t> counts;
  std::int32_t first = 0;
  for (const StageLayers& stage : assign_stages(request, {"a", ""})) {
    CHECK(stage.first == first);
    first += stage.count;
    counts.push_back(stage.count);
  }
  return counts;
}

std::string stages_error(const StagesRequest& request) {
  try {
    (void)assign_stages(request, {"a.json", "/strategy/pipeline"});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("One layer less at the ends: Llama 3.1 405B, 126 layers on 16 ranks") {
  // The Llama 3 paper, section 3.3.2: one layer fewer on the first and on the last stage.
  StagesRequest request{.layers = 126, .mtp_layers = 1, .ranks = 16};
  set_one_less_at_ends(request);
  const std::vector<StageLayers> stages = assign_stages(request, {"a", ""});
  CHECK(stages.front() == StageLayers{0, 7, /*embedding=*/true, /*loss=*/false, /*mtp=*/0});
  CHECK(stages[1] == StageLayers{7, 8, /*embedding=*/false, /*loss=*/false, /*mtp=*/0});
  CHECK(stages.back() == StageLayers{119, 7, /*embedding=*/false, /*loss=*/true, /*mtp=*/1});
}

TEST_CASE("torchtitan gives the first stages what is left over") {
  // 32 + 1 + 1 = 34 over 8 stages: 4 each, 2 of them 5; less one for the ends.
  StagesRequest request{.layers = 32, .ranks = 4, .virtual_stages = 2};
  set_one_less_at_ends(request);
  request.remainder = Remainder::to_first_stages;
  CHECK(counts_of(request) == std::vector<std::int32_t>{4, 5, 4, 4, 4, 4, 4, 3});
}

// Megatron Bridge's layouts (recipes/deepseek/deepseek_v3.py): 15 stages of 4 layers, then one, MTP
// and the loss; on 4 ranks 16, 16, 16 and 13; on 32 stages two each, the last without any, and one
// left over, which it gives the stage of the embedding.
TEST_CASE("Multi-token prediction and the loss count where 61 layers do not come out") {
  StagesRequest request{.layers = 61, .mtp_layers = 1, .ranks = 16};
  request.remainder = Remainder::noted;
  std::vector<std::int32_t> expected(15, 4);
  expected.push_back(1);
  CHECK(counts_of(request) == expected);
  request.ranks = 4;
  CHECK(counts_of(request) == std::vector<std::int32_t>{16, 16, 16, 13});
  request.virtual_stages = 8;
  const std::vector<std::int32_t> counts = counts_of(request);
  CHECK(counts.back() == 0);
  CHECK(std::count(counts.begin(), counts.end(), 2) == 30);
  CHECK(std::count(counts.begin(), counts.end(), 1) == 1);
}

// Megatron's account_for_embedding_in_pipeline_split and its sister, which recipes of both turn on.
TEST_CASE("Embedding and loss count where layers come out even with them") {
  StagesRequest request{.layers = 94, .ranks = 8};
  request.remainder = Remainder::noted;
  CHECK(counts_of(request) == std::vector<std::int32_t>{11, 12, 12, 12, 12, 12, 12, 11});
  request = {.layers = 126, .ranks = 16, .virtual_stages = 8};
  request.remainder = Remainder::noted;
  const std::vector<std::int32_t> counts = counts_of(request);
  CHECK(counts.front() == 0);
  CHECK(counts.back() == 0);
  CHECK(std::count(counts.begin(), counts.end(), 1) == 126);
}

TEST_CASE("A list is of stages or of ranks") {
  StagesRequest request{.layers = 80, .ranks = 4};
  request.counts = {20, 21, 21, 18};
  CHECK(counts_of(request) == request.counts);
  request.virtual_stages = 2;
  CHECK(stages_error(request) ==
        "a.json: /strategy/pipeline/layers: 21 layers of a rank do not divide by its 2 virtual "
        "stages; say all 8 stages");
  request.counts = {20, 22, 20, 18};
  CHECK(counts_of(request) == std::vector<std::int32_t>{10, 11, 10, 9, 10, 11, 10, 9});
  request.counts = {20, 22, 20, 17};
  request.virtual_stages.reset();
  CHECK(stages_error(request) ==
        "a.json: /strategy/pipeline/layers: the stages have 79 layers, the model 80");
}

TEST_CASE("A layout unrolls as Megatron unrolls it") {
  // The examples of parse_str_to_list's own comments, and the one of steps people ran.
  const Place place{"a", ""};
  using Stages = std::vector<std::string>;
  CHECK(expand_layout("Et*3|(tt|)*2,m|L", place) == Stages{"Ettt", "tt", "tt", "m", "L"});
  CHECK(expand_layout("(|t)*2,tt", place) == Stages{"", "t", "ttt"});
  CHECK(expand_layout("Et*4|(t*4|)*14tmL", place).size() == 16);
  CHECK(expand_layout("Et*4|(t*4|)*14tmL", place).back() == "tmL");
}

TEST_CASE("What a layout cannot say") {
  const auto error = [](const char* layout, std::int32_t ranks, std::int32_t mtp = 0) {
    StagesRequest request{.layers = 4, .mtp_layers = mtp, .ranks = ranks};
    request.layout = layout;
    return stages_error(request);
  };
  const std::string at = "a.json: /strategy/pipeline/layers: ";
  CHECK(error("Ett|ttL", 2) == "");
  CHECK(error("Ett|txL", 2) ==
        at + "'x' in the layout \"Ett|txL\": expected E, t, m, L, |, and repetitions as in \"t*3\" "
             "and \"(tt|)*3\"");
  CHECK(error("Ett|t|tL", 2) == at + "the layout has 3 stages, which do not divide by 2 ranks");
  CHECK(error("Ett|tL", 2) == at + "the layout has 3 layers (t), the model 4");
  CHECK(error("tt|ttL", 2) == at + "a layout begins with its one E, the embedding");
  CHECK(error("Ett|tt", 2) == at + "a layout ends with its one L, the loss");
  CHECK(error("Ett|ttmL", 2) ==
        at + "the layout has 1 layers of multi-token prediction (m), the model 0");
  CHECK(error("Ettm|ttL", 2, 1) ==
        at + "layers (t) come before those of multi-token prediction (m)");
  CHECK(error("Ett|tt|m|mL", 4, 2) ==
        at + "multi-token prediction (m) is in several stages; one has all of it");
  CHECK(error("Ett|tt|m|L", 2, 1) == "");
  CHECK(
      error("Ett|ttm|L|", 2, 1) ==
      at + "stage 1 has multi-token prediction (m), which is for the last stage of a rank: 2 to 3");
  CHECK(error("Et*999999999999|L", 2) == at + "the layout unrolls to more than 1048576 characters");
}

TEST_CASE("What does not divide is refused with what would") {
  CHECK(stages_error({.layers = 32, .ranks = 3}) ==
        "a.json: /strategy/pipeline/layers: 32 layers do not divide by 3 stages (3 ranks x 1); 30 "
        "or 33 would, or say the layers of each stage");
  CHECK(stages_error({.layers = 32, .ranks = 4, .embedding_counts = 1, .loss_counts = 1}) ==
        "a.json: /strategy/pipeline/layers: 32 layers (34 with embedding and loss counted) do not "
        "divide by 4 stages (4 ranks x 1); 30 or 34 would, or say the layers of each stage");
}
