#include "reports/specs/specs_report.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "reports/specs/specs_tables.hpp"
#include "reports/step/sharding_picture.hpp"

namespace shardsim {
namespace {

const Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});

Sharding sharding(const std::string& spec, std::size_t rank) {
  return to_sharding(parse_partition_spec(spec, {}), rank, mesh, {});
}

// Devices are numbered x major: device 4x + 2y + z.
TEST_CASE("a picture puts devices where their parts are") {
  const Picture picture = picture_of("w", {8, 6}, sharding("y, x", 2), mesh);
  CHECK(picture.title == "w [8, 6] P(y, x): 4 shards of [4, 3], 2 of each");
  CHECK(picture.row_ranges == std::vector<std::string>{"0:4", "4:8"});
  CHECK(picture.column_ranges == std::vector<std::string>{"0:3", "3:6"});
  REQUIRE(picture.panels.size() == 1);
  CHECK(picture.panels[0].cells ==
        std::vector<std::vector<std::string>>{{"0, 1", "4, 5"}, {"2, 3", "6, 7"}});
  CHECK(picture.left_out.empty());
}

TEST_CASE("a picture of rank 3 has a panel for each part of the first dimension") {
  const Picture picture = picture_of("w", {4, 4, 4}, sharding("x, y, z", 3), mesh);
  REQUIRE(picture.panels.size() == 2);
  CHECK(picture.panels[0].title == "dimension 0 in 0:2");
  CHECK(picture.panels[1].cells == std::vector<std::vector<std::string>>{{"4", "5"}, {"6", "7"}});
}

TEST_CASE("parts without rows are padding, whole tensors one cell") {
  const Picture uneven = picture_of("w", {5, 1}, sharding("(x, y, z)", 2), mesh);
  CHECK(uneven.row_ranges == std::vector<std::string>{"0:1", "1:2", "2:3", "3:4", "4:5", "padding",
                                                      "padding", "padding"});
  const Picture whole = picture_of("w", {5}, sharding("", 1), mesh);
  CHECK(whole.panels[0].cells == std::vector<std::vector<std::string>>{{"0 to 7"}});
  CHECK(whole.title == "w [5] P(None): whole on each of 8 devices");
}

// 2^30 devices: nothing may be listed one by one.
TEST_CASE("pictures of large meshes are cut and say so") {
  const Mesh large({{"a", 1 << 15}, {"b", 1 << 15}});
  const Sharding split = to_sharding({{"a"}, {}}, 2, large, {});
  const Sharding minor = to_sharding({{"b"}, {}}, 2, large, {});
  CHECK(picture_of("w", {1 << 15, 2}, minor, large).panels[0].cells[1][0] ==
        "1, 32769, 65537, ... (32768)");
  const Picture picture = picture_of("w", {1 << 15, 2}, split, large);
  CHECK(picture.row_ranges.size() == 16);
  CHECK(picture.left_out == "16 of the 32768 parts of dimension 0");
  CHECK(picture.panels[0].cells[1][0] == "32768 to 65535");
}

SpecTable table() {
  SpecTable result;
  result.subject = "toy <b>";
  result.mesh = mesh;
  for (const char* name : {"layers/0/w", "layers/1/w"}) {
    result.parameters.push_back(describe(name, {8, 6}, 1, DType::f32, sharding("y, x", 2), mesh));
    result.parameters.back().rule = 0;
    result.parameters.back().assigned_by = "rule 0: w";
  }
  result.rules = {{"w", {}, 2, 2}, {"bias", {}, 0, 0}};
  return result;
}

TEST_CASE("JSON and CSV hold every parameter, text folds layers") {
  const Json json = parse_json(report_specs(table(), Json::object(), Format::json), "specs");
  CHECK(json["schema"] == "shardsim/specs/1");
  REQUIRE(json["parameters"].size() == 2);
  CHECK(json["parameters"][1]["name"] == "layers/1/w");
  CHECK(json["parameters"][1]["spec"] == Json::array({"y", "x"}));
  CHECK(json["coverage"]["unused_rules"] == Json::array({1}));
  // 96 elements of 4 bytes; a quarter of each tensor on every device.
  CHECK(json["summary"]["total_bytes"] == 384);
  CHECK(json["summary"]["max_bytes_per_device"] == 96);
  CHECK(json["bytes_per_device"] == 96);
  CHECK(json["padding_bytes_per_device"] == 0);
  CHECK(json["summary"]["overhead"] == 2.0);
  CHECK(json["parameters"][1]["bytes_per_device"] == 48);
  SpecTable padded = table();
  padded.parameters.resize(1);
  padded.parameters[0].padding_per_device = Bytes(4);
  padded.parameters[0].instances = 3;
  CHECK_THAT(report_specs(padded, Json::object(), Format::text),
             Catch::Contains("of that 12 B padding"));
  const std::string csv = report_specs(table(), Json::object(), Format::csv);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  const std::string text = report_specs(table(), Json::object(), Format::text);
  CHECK_THAT(text, Catch::Contains("layers/{}/w") && Catch::Contains("matches nothing") &&
                       Catch::Contains("2.00 x the memory of perfect sharding"));
}

TEST_CASE("the HTML page escapes names and draws every kind of tensor") {
  const std::string html = report_specs(table(), Json::object(), Format::html);
  CHECK_THAT(html, Catch::Contains("toy &lt;b&gt;") && Catch::Contains("class=\"picture\"") &&
                       !Catch::Contains("toy <b>") && !Catch::Contains("{{"));
}

TEST_CASE("what a system returns stands beside what it means") {
  SpecTable short_specs = table();
  short_specs.parameters[0].returned = {};
  short_specs.parameters[0].stored = sharding("", 2);
  short_specs.parameters[0].spec = {{}, {}};
  short_specs.parameters[1].dimension_rules = {std::nullopt, 0};
  const std::string text = report_specs(short_specs, Json::object(), Format::text);
  CHECK_THAT(text,
             Catch::Contains("which means") && Catch::Contains("P()") && Catch::Contains("whole"));
  const Json json = parse_json(report_specs(short_specs, Json::object(), Format::json), "specs");
  CHECK(json["parameters"][0]["returned_spec"] == Json::array());
  CHECK(json["parameters"][0]["spec"] == Json::array({nullptr, nullptr}));
  CHECK(json["parameters"][1]["rules_by_dimension"] == Json::array({nullptr, 0}));
  CHECK_THAT(report_specs(table(), Json::object(), Format::text), !Catch::Contains("which means"));
}

// P(x) of a matrix says nothing of dimension 1, P() of any.
TEST_CASE("the title of a picture has the spec as it was returned") {
  SpecTable short_specs = table();
  short_specs.parameters[0].name = "w";
  short_specs.parameters[0].returned = {};
  short_specs.parameters[0].stored = sharding("", 2);
  short_specs.parameters[0].spec = {{}, {}};
  CHECK_THAT(specs_pictures(short_specs, Pattern("^w$", {})), Catch::Contains("] P(): whole on"));
  short_specs.parameters[0].returned = {{"x"}};
  short_specs.parameters[0].stored = sharding("x", 2);
  short_specs.parameters[0].spec = {{"x"}, {}};
  CHECK_THAT(specs_pictures(short_specs, Pattern("^w$", {})),
             Catch::Contains("] P(x), which means P(x, None): 2 shards of"));
}

// Row-major over the order given, by hand: along (z, x) device 4x + 2y + z has index 2z + x.
TEST_CASE("the index of a device along some axes") {
  CHECK(submesh_picture(table(), {"z", "x"}, {"--submesh", ""}) ==
        "index of each device along (z, x) of size 4, row by row\n"
        "  from 0  0 2 0 2 1 3 1 3\n");
  // No more than 16 rows of 16.
  SpecTable large = table();
  for (const std::int64_t devices : {256, 257}) {
    large.mesh = Mesh({{"x", devices}});
    const std::string picture = submesh_picture(large, {"x"}, {"--submesh", ""});
    CHECK(std::count(picture.begin(), picture.end(), '\n') == 1 + 16 + (devices > 256 ? 1 : 0));
    CHECK_THAT(picture,
               Catch::EndsWith(devices > 256 ? " 255\n  ... 257 devices in all\n" : " 255\n"));
  }
  CHECK_THROWS_WITH(submesh_picture(table(), {"zz"}, {"--submesh", ""}),
                    Catch::Contains("--submesh: NameError: unknown axis \"zz\""));
}

// constraints.py 5c877a3: two counts, P(None, None) among the sharded; a tuple of axes is looked up
// as one name. The promised figures are those of the summary, where only what is split counts.
TEST_CASE("analyze_sharding_strategy as it behaves and as it promises") {
  SpecTable analyzed = table();
  analyzed.parameters[0].returned = {{}, {}};
  analyzed.parameters[0].stored = sharding("", 2);
  const Json json =
      parse_json(report_specs(analyzed, Json::object(), Format::json, {.analyze = true}), "specs");
  const Json& answer = json["analyze_sharding_strategy"];
  CHECK(answer["total_parameters"] == 96);
  CHECK(answer["sharded_parameters"] == 96);
  CHECK(answer["memory_per_device"] == Json::object());
  // validate_sharding_config: fewer than 1024 elements, and a spec that is not P().
  CHECK_THAT(report_specs(analyzed, Json::object(), Format::text, {.analyze = true}),
             Catch::Contains("validate_sharding_config of eformer") &&
                 Catch::Contains("fewer than 1,024 elements, and sharded"));
  CHECK(json["summary"]["sharded_parameters"] == 48);
  analyzed.parameters[1].returned = {{"x", "y"}};
  const Json refused =
      parse_json(report_specs(analyzed, Json::object(), Format::json, {.analyze = true}), "specs");
  CHECK_THAT(refused["analyze_sharding_strategy"]["raises"].get<std::string>(),
             Catch::StartsWith("KeyError: "));
  CHECK_THAT(report_specs(analyzed, Json::object(), Format::text, {.analyze = true}),
             Catch::Contains("balance_score") && Catch::Contains("raises"));
}

}  // namespace
}  // namespace shardsim
