// A machine that cannot be had: the exact message. Expectations are the slices and node sizes of
// the vendors' documents named in the profiles.
#include <catch2/catch.hpp>

#include "hardware_profiles/machine.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

const Place place{"a.json", "/machine"};

std::string load_error(const std::string& name) {
  try {
    (void)load_profile(name, place);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string make_error(const std::string& name, std::int64_t devices,
                       const std::optional<std::string>& topology = std::nullopt) {
  try {
    (void)make_machine(load_profile(name, place), devices, topology, place);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("unknown machine") {
  CHECK(load_error("dgx-h10") ==
        "a.json: /machine: unknown machine \"dgx-h10\", did you mean \"dgx-h100\"?");
  const std::string known = load_error("laptop");
  CHECK(known.starts_with(
      "a.json: /machine: unknown machine \"laptop\"; known are alps, aws-p3dn, "));
  CHECK(known.ends_with("tpu-v6e, tpu7x, or a path ending in .json"));
  CHECK(load_error("missing/machine.json") ==
        "missing/machine.json: cannot be read: No such file or directory");
}

TEST_CASE("no devices") {
  CHECK(make_error("dgx-h100", 0) == "a.json: /machine: 0 devices: at least 1 is needed");
  CHECK(make_error("tpu-v5e", -4) == "a.json: /machine: -4 devices: at least 1 is needed");
}

TEST_CASE("devices that do not fill nodes") {
  CHECK(make_error("dgx-h100", 12) ==
        "a.json: /machine: 12 devices do not fill nodes of 8 of dgx-h100; the nearest that do are "
        "8 and 16");
  CHECK(make_error("dgx-a100", 1023) ==
        "a.json: /machine: 1023 devices do not fill nodes of 8 of dgx-a100; the nearest that do "
        "are 1016 and "
        "1024");
}

TEST_CASE("a topology for a cluster") {
  CHECK(make_error("dgx-h100", 8, "2x4") ==
        "a.json: /machine: topology 2x4 is given, but dgx-h100 is a cluster and has none");
}

TEST_CASE("a device count that no slice has") {
  CHECK(make_error("tpu-v5e", 2) ==
        "a.json: /machine: tpu-v5e has no slice of 2 devices; the nearest are of 1 (1x1) and 4 "
        "(2x2)");
  CHECK(make_error("tpu-v5e", 512) ==
        "a.json: /machine: tpu-v5e has no slice of 512 devices; the nearest are of 256 (16x16)");
  CHECK(make_error("tpu-v5p", 1) ==
        "a.json: /machine: tpu-v5p has no slice of 1 devices; the nearest are of 4 (2x2x1)");
  CHECK(make_error("tpu-v5p", 100) ==
        "a.json: /machine: tpu-v5p has no slice of 100 devices; the nearest are of 64 (4x4x4) and "
        "128 (4x4x8)");
  // 320 = 4x4x20 lies above 256 = 4x8x8, the most cubic of its size.
  CHECK(make_error("tpu-v5p", 300) ==
        "a.json: /machine: tpu-v5p has no slice of 300 devices; the nearest are of 256 (4x8x8) and "
        "320 (4x4x20)");
}

TEST_CASE("a topology that is no slice") {
  CHECK(make_error("tpu-v5e", 8, "4x2") ==
        "a.json: /machine: tpu-v5e has no slice 4x2, did you mean \"2x4\"?");
  CHECK(make_error("tpu-v5e", 16, "2x8") ==
        "a.json: /machine: tpu-v5e has no slice 2x8; of 16 devices it has 4x4");
  CHECK(make_error("tpu-v5p", 256, "2x8x16") ==
        "a.json: /machine: tpu-v5p has no slice 2x8x16; of 256 devices it has 4x8x8, 4x4x16");
  CHECK(make_error("tpu-v5e", 9, "3x3") ==
        "a.json: /machine: tpu-v5e has no slice 3x3; the nearest are of 8 (2x4) and 16 (4x4) "
        "devices");
  CHECK(make_error("tpu-v5p", 1, "1099511627776x1099511627776x2") ==
        "a.json: /machine: tpu-v5p has no slice 1099511627776x1099511627776x2; the nearest are of "
        "8960 "
        "(16x20x28) devices");
}

TEST_CASE("a topology of another size than the mesh") {
  CHECK(make_error("tpu-v5p", 32, "4x4x4") ==
        "a.json: /machine: topology 4x4x4 has 64 devices, but the mesh has 32");
}

TEST_CASE("text that is no topology") {
  for (const char* text : {"", "x", "4x", "4x4y4", "0x4", "-2x4", "4 x 4", "9223372036854775808"}) {
    CHECK(make_error("tpu-v5e", 16, text) ==
          std::string("a.json: /machine: \"") + text +
              "\" is not a shape, expected for example \"4x4x4\"");
  }
}

TEST_CASE("a mesh that does not fill the torus") {
  const TorusShape torus{{4, 4, 4}, {true, true, true}};
  const auto error_of = [&](const std::vector<std::int64_t>& logical) -> std::string {
    try {
      (void)assign_mesh(torus, logical, {"a.json", "/mesh"});
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(error_of({4, 4}) ==
        "a.json: /mesh: mesh 4x4 does not multiply to the 64 devices of topology 4x4x4");
  CHECK(error_of({8, 16}) ==
        "a.json: /mesh: mesh 8x16 does not multiply to the 64 devices of topology 4x4x4");
  CHECK(error_of({0, 64}) ==
        "a.json: /mesh: mesh 0x64 does not multiply to the 64 devices of topology 4x4x4");
}

TEST_CASE("two nodes without a network between them") {
  Profile box = load_profile("dgx-h100", place);
  box.name = "box";
  std::get<ClusterProfile>(box.network).scale_out.reset();
  CHECK(make_machine(box, 8, std::nullopt, place).nodes == 1);
  CHECK_THROWS_WITH(make_machine(box, 16, std::nullopt, place),
                    "a.json: /machine: 16 devices need several nodes of box, whose profile has one "
                    "of 8 and no \"scale_out\" network between nodes");
}
