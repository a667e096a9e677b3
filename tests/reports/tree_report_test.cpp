// A parameter tree of two layers and a head, in numbers that can be added up by eye.
#include "reports/specs/tree_report.hpp"

#include <catch2/catch.hpp>

namespace shardsim {
namespace {

using Catch::Contains;

ParameterTree layered_tree() {
  ParameterTree tree;
  tree.model = "toy";
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, DType dtype) {
    ParameterLeaf leaf;
    leaf.name = name;
    leaf.shape = std::move(shape);
    leaf.dtype = dtype;
    tree.leaves.push_back(leaf);
  };
  for (const char* layer : {"layers.0.", "layers.1."}) {
    add(layer + std::string("w"), {10, 20}, DType::f32);
    add(layer + std::string("norm"), {20}, DType::bf16);
  }
  add("head", {20}, DType::f32);
  return tree;
}

}  // namespace

TEST_CASE("the text of a tree folds layers and adds up what they take together") {
  const std::string text = tree_text(layered_tree());
  CHECK_THAT(text, Contains("layers.{}.w         2  [10, 20]  fp32        400  1,600"));
  CHECK_THAT(text, Contains("layers.{}.norm      2  [20]      bf16         40     80"));
  CHECK_THAT(text, Contains("head                1  [20]      fp32         20     80"));
  CHECK_THAT(text, !Contains("layers.0"));
  // Tensors, not rows: 2 + 1 of fp32, 2 of bf16.
  CHECK_THAT(text, Contains("fp32         3       420"));
  CHECK_THAT(text, Contains("bf16         2        40"));
  CHECK_THAT(text, Contains("all          5       460"));
}

TEST_CASE("the CSV of a tree has every tensor") {
  CHECK(tree_csv(layered_tree()) ==
        "name,shape,dtype,elements,bytes\n"
        "layers.0.w,\"[10, 20]\",fp32,200,800\n"
        "layers.0.norm,[20],bf16,20,40\n"
        "layers.1.w,\"[10, 20]\",fp32,200,800\n"
        "layers.1.norm,[20],bf16,20,40\n"
        "head,[20],fp32,20,80\n");
}

}  // namespace shardsim
