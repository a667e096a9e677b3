#include "base/fold_names.hpp"

#include <catch2/catch.hpp>

namespace shardsim {
namespace {

using Names = std::vector<std::string>;

// The folded names, with how many each stands for.
Names folds_of(const Names& names, const Names& likeness) {
  Names result;
  for (const FoldedName& fold : fold_names(names, likeness)) {
    result.push_back(fold.name + " " + std::to_string(fold.members.size()));
  }
  return result;
}

}  // namespace

TEST_CASE("names that differ in numbers are one, in the order of the first") {
  CHECK(folds_of({"layers/0/w", "layers/0/b", "layers/1/w", "layers/10/w", "head"},
                 {"", "", "", "", ""}) == Names{"layers/{}/w 3", "layers/0/b 1", "head 1"});
  // Only the number that differs is left open.
  CHECK(folds_of({"a.1.x.7", "a.2.x.7"}, {"", ""}) == Names{"a.{}.x.7 2"});
  CHECK(folds_of({"a.1.x.7", "a.2.x.8"}, {"", ""}) == Names{"a.{}.x.{} 2"});
  CHECK(folds_of({}, {}).empty());
}

TEST_CASE("what is not alike stays apart") {
  CHECK(folds_of({"a.0", "a.1", "a.2"}, {"f32", "bf16", "f32"}) == Names{"a.{} 2", "a.1 1"});
  // A number within a word is the word's.
  CHECK(folds_of({"a", "a0"}, {"", ""}) == Names{"a 1", "a0 1"});
  CHECK(folds_of({"layers.0.w1", "layers.0.w3", "layers.1.w1", "layers.1.w3"}, {"", "", "", ""}) ==
        Names{"layers.{}.w1 2", "layers.{}.w3 2"});
  CHECK(folds_of({"LayerNorm_0/b", "LayerNorm_1/b", "wi_0", "wi_1"}, {"", "", "", ""}) ==
        Names{"LayerNorm_0/b 1", "LayerNorm_1/b 1", "wi_0 1", "wi_1 1"});
}

TEST_CASE("lists of layers are told by their numbers, as Flax writes them") {
  CHECK(folds_of({"x_layers_0/w", "x_layers_1/w", "encoderblock_7/w", "encoderblock_11/w"},
                 {"", "", "", ""}) == Names{"x_layers_{}/w 2", "encoderblock_{}/w 2"});
}

TEST_CASE("members are told by their place") {
  const auto folds = fold_names({"a.0", "b", "a.1"}, {"", "", ""});
  REQUIRE(folds.size() == 2);
  CHECK(folds[0].members == std::vector<std::size_t>{0, 2});
  CHECK(folds[1].members == std::vector<std::size_t>{1});
}

}  // namespace shardsim
