#include "hardware_profiles/kernel_data.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "base/json.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {
namespace {

// Ratios in thousandths of a logarithm, along m = 16, 64, 256.
Json table(const Json& curves) {
  Json products{{"floor", "2 us"},    {"flop_efficiency", 0.5}, {"byte_efficiency", 0.8},
                {"depth", 100},       {"rows", {16, 64, 256}},  {"curves", curves},
                {"kind", "measured"}, {"date", "2026-11"},      {"source", "a table"}};
  return {
      {"schema", "shardsim/kernels/1"}, {"device", "round"}, {"products", {{"bf16", products}}}};
}

KernelData read(const Json& document) {
  return read_kernel_data(JsonReader(document, {"t.json", ""}), "t");
}

std::string message_of(const Json& document) {
  try {
    (void)read(document);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("kernels that exchange rows are read by name and way") {
  Json document = table(Json::array({"1024 1024 0 0 0"}));
  const Json way = {{"overhead", "30 us"}, {"overhead_across", "90 us"},
                    {"token", "250 ns"},   {"token_byte", "20 ps"},
                    {"row", "80 ns"},      {"row_byte", "35 ps"},
                    {"kind", "measured"},  {"date", "2026-11"},
                    {"source", "a table"}};
  document["row_exchange"]["deepep"] = {{"dispatch", way}, {"combine", way}};
  const RowExchangeTable found = read(document).row_exchange.at("deepep").combine;
  CHECK(found.row_byte.count() == Approx(35e-12));
  CHECK(found.overhead_across.count() == Approx(90e-6));
  document["row_exchange"]["deepep"].erase("combine");
  CHECK(message_of(document) == "t.json: /row_exchange/deepep: missing key \"combine\"");
}

TEST_CASE("what was measured is met exactly, along m and at [n, k]") {
  // n, k, then for each row thousandths of a logarithm.
  const KernelData data = read(table({"1024 1024 100 -200 300", "4096 1024 0 0 0"}));
  const ProductTable& products = data.products.at(DType::bf16);
  const auto at = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return log_ratio(products, m, n, k);
  };
  CHECK(at(64, 1024, 1024).value == Approx(-0.2));
  CHECK(at(64, 1024, 1024).evidence == Evidence::measured);
  // Halfway in the logarithm of m; beyond the last row as there.
  CHECK(at(32, 1024, 1024).value == Approx(-0.05));
  CHECK(at(32, 1024, 1024).evidence == Evidence::interpolated);
  CHECK(at(4096, 1024, 1024).value == Approx(0.3));
}

// Halfway between two curves, at distances of log 2: both weigh (1.5 / log 2 - 1)^2 = 1.355, the
// formula 0.5.
TEST_CASE("between [n, k] curves weigh by their distance, and the formula with them") {
  const KernelData data = read(table({"1024 1024 100 100 100", "4096 1024 300 300 300"}));
  const LogRatio found = log_ratio(data.products.at(DType::bf16), 64, 2048, 1024);
  const double weight = std::pow(1.5 / std::log(2.0) - 1, 2);
  CHECK(found.value == Approx((0.1 + 0.3) * weight / (2 * weight + 0.5)));
  CHECK(found.evidence == Evidence::interpolated);
}

TEST_CASE("far from everything measured the formula stands alone, and nothing jumps on the way") {
  const KernelData data = read(table({"1024 1024 400 400 400"}));
  const ProductTable& products = data.products.at(DType::bf16);
  const LogRatio far = log_ratio(products, 64, 65536, 1024);
  CHECK(far.value == 0);
  CHECK(far.evidence == Evidence::modelled);
  double before = log_ratio(products, 64, 1024, 1024).value;
  for (std::int64_t n = 1025; n < 8192; ++n) {
    const double now = log_ratio(products, 64, n, 1024).value;
    CHECK(now <= before);
    CHECK(before - now < 0.01);
    before = now;
  }
}

TEST_CASE("errors of a table have their place") {
  CHECK(message_of(table({"1024 1024 1 2"})) ==
        "t.json: /products/bf16/curves/0: has 4 numbers, expected n, k and 3 ratios");
  CHECK(message_of(table({"1024 x 1 2 3"})) ==
        "t.json: /products/bf16/curves/0: is not numbers with a space between them");
  Json wrong = table({"1024 1024 1 2 3"});
  wrong["products"]["bf17"] = wrong["products"]["bf16"];
  CHECK(message_of(wrong) ==
        "t.json: /products/bf17: unknown dtype \"bf17\", expected for example \"bf16\"");
}

TEST_CASE("shipped profiles name shipped tables, which are of a device that is shipped") {
  std::vector<Profile> profiles;
  for (const std::string& name : shipped_profiles()) profiles.push_back(load_profile(name, {}));
  int tables = 0;
  for (const Profile& profile : profiles) {
    if (!profile.device.kernels) continue;
    ++tables;
    const std::string& device = profile.device.kernels->device;
    CHECK(std::any_of(profiles.begin(), profiles.end(),
                      [&](const Profile& other) { return other.device.name == device; }));
  }
  CHECK(tables > 0);
}

// A stack's kernels have no share of the bandwidth that is a copy's only because nobody measured
// them on this device. NeuSight's tables: softmax of 16384 numbers and more, fp32, reaches 0.452 to
// 0.454 of an A100's bandwidth.
TEST_CASE("what was measured on one GPU has its share of the bandwidth on the others") {
  const auto tables_of = [](const char* machine) {
    return *load_profile(machine, {}).device.kernels;
  };
  const KernelData measured = tables_of("dgx-h100");
  for (const char* machine : {"dgx-a100", "dgx-b200", "dgx-b300", "pcie-l40s", "dgx-1v"}) {
    const KernelData data = tables_of(machine);
    for (const auto& [function, stacks] : measured.operations) {
      if (function.rfind("softmax", 0) == 0) continue;  // of bf16
      for (const auto& [stack, table] : stacks) {
        CAPTURE(machine, function, stack);
        CHECK(data.operations.at(function).count(stack) == 1);
      }
    }
    CHECK(data.operations.at("log_softmax").at("eager").efficiency == 0.454);
    CHECK(data.operations.at("adamw").at("eager").efficiency ==
          measured.operations.at("adamw").at("eager").efficiency);
  }
}

}  // namespace shardsim
