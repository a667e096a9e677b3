#include "base/error.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;  // NOLINT(google-build-using-namespace)

TEST_CASE("an input error says file, place, what is wrong and what was meant") {
  CHECK(std::string(InputError({"a.json", "/mesh"}, "unknown axis \"modle\"", "model").what()) ==
        "a.json: /mesh: unknown axis \"modle\", did you mean \"model\"?");
  CHECK(std::string(InputError({"a.json", ""}, "is empty").what()) == "a.json: is empty");
  CHECK(std::string(InputError({"", ""}, "is empty").what()) == "is empty");
}

TEST_CASE("the closest candidate is the one with the fewest edits") {
  const std::vector<std::string> axes = {"data", "fsdp", "model"};
  CHECK(closest("modle", axes) == "model");  // two substitutions
  CHECK(closest("dat", axes) == "data");     // one insertion
  CHECK(closest("fsdpp", axes) == "fsdp");   // one deletion
  CHECK(closest("model", axes) == "model");
}

TEST_CASE("nothing is suggested for what is near no candidate") {
  CHECK(closest("pipeline", {"data", "fsdp", "model"}).empty());
  CHECK(closest("anything", {}).empty());
  // Two edits make any two-letter word of another: that is no likeness.
  CHECK(closest("xy", {"tp", "dp"}).empty());
}

TEST_CASE("a part of a name means the name") {
  const std::vector<std::string> machines = {"aws-p6-b200", "azure-ndv5-h200", "dgx-b200",
                                             "dgx-h100", "tpu-v5p"};
  CHECK(closest("b200", machines) == "dgx-b200");  // the shortest that has the part
  CHECK(closest("V5P", machines) == "tpu-v5p");
  CHECK(closest("dgx-h100-80gb", machines) == "dgx-h100");  // all its parts and more
  CHECK(closest("h100-dgx", machines) == "dgx-h100");
  CHECK(closest("nvidia-b100", machines).empty());
}

TEST_CASE("of equally near candidates the first is suggested") {
  CHECK(closest("axis-c", {"axis-a", "axis-b"}) == "axis-a");
}
