// Blocks that families write down alike (blueprint.hpp).
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "workloads/networks/blueprint.hpp"

namespace shardsim::models {

// Stochastic depth's rate of layer i of n, which rises to `last`.
[[nodiscard]] inline double rising_rate(double last, std::int64_t i, std::int64_t n) {
  return last * static_cast<double>(i) / static_cast<double>(n > 1 ? n - 1 : 1);
}

[[nodiscard]] inline Norm row_norm(std::string name) {
  return {NormKind::layer, std::move(name), /*bias=*/true};
}

// A square convolution that steps by its own size: patches, or places put together.
[[nodiscard]] Convolve patches(std::string name, std::int64_t out, std::int64_t side);
// A square convolution that keeps the size where its stride is 1.
[[nodiscard]] Convolve square(std::string name, std::int64_t out, std::int64_t kernel,
                              std::int64_t stride = 1, bool bias = true);

// To a multiple, at least `least`, but not more than a tenth below (MobileNets).
[[nodiscard]] std::int64_t rounded_width(double width, std::int64_t multiple, std::int64_t least);

// Attention and an MLP, each with a norm before it, or behind the sum with what it read.
struct RowLayer {
  std::string first_norm = "layernorm_before", second_norm = "layernorm_after";
  Attend attention{};
  std::function<Ref(Draft&, Ref)> attend{};  // or what stands in its place
  std::string up = "intermediate.dense", down = "output.dense";
  std::int64_t hidden = 0;
  std::int64_t width = 0;  // of the MLP
  std::string activation = "gelu";
  bool norms_behind = false;
  std::string first_scale{}, second_scale{};  // learned factors; empty: none
  double dropout = 0;                         // of what each branch adds
  double inner_dropout = 0;
  double drop_path = 0;
};

[[nodiscard]] Ref row_layer(Draft& d, const RowLayer& n, Ref x);

}  // namespace shardsim::models
