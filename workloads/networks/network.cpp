#include "workloads/networks/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardsim::models {
namespace {

constexpr std::int64_t clip_tokens = 77;  // a CLIP text encoder's positions

std::string of_level(const UNetLevel& level) {
  std::string text =
      fmt::format("{} residual blocks of {} channels", level.blocks, level.block.out);
  if (level.transformer) {
    const std::string blocks = level.depths.empty()
                                   ? std::to_string(level.transformer->blocks)
                                   : fmt::format("{}", fmt::join(level.depths, ", "));
    text += fmt::format(", transformers of {} blocks, {} heads", blocks, level.transformer->heads);
  }
  return text;
}

struct DescribeNetwork {
  std::string operator()(const ResNet& net) const {
    std::string text;
    for (std::size_t s = 0; s < net.stages.size(); ++s) {
      text += fmt::format("stage {}: {} {} of {} channels, stride {}\n", s, net.stages[s].layers,
                          net.bottleneck ? "bottlenecks" : "layers", net.stages[s].width,
                          net.stages[s].stride);
    }
    return text;
  }
  std::string operator()(const ConvNext& net) const {
    std::string text;
    for (std::size_t s = 0; s < net.stages.size(); ++s) {
      text += fmt::format("stage {}: {} layers of {} channels, 7 x 7 each, and an MLP of {}\n", s,
                          net.stages[s].layers, net.stages[s].width, 4 * net.stages[s].width);
    }
    return text;
  }
  std::string operator()(const Swin& net) const {
    std::string text;
    for (std::size_t s = 0; s < net.stages.size(); ++s) {
      text += fmt::format("stage {}: {} blocks of {} heads, width {}, windows {} x {}\n", s,
                          net.stages[s].blocks, net.stages[s].heads, net.width << s, net.window,
                          net.window);
    }
    return text;
  }
  std::string operator()(const UNet& net) const {
    std::string text;
    for (const UNetLevel& level : net.down) text += "down: " + of_level(level) + "\n";
    if (net.middle) text += "middle: " + of_level(*net.middle) + "\n";
    for (const UNetLevel& level : net.up) text += "up: " + of_level(level) + "\n";
    return text;
  }
  std::string operator()(const Autoencoder& net) const {
    std::string text;
    for (const std::int64_t width : net.widths) {
      text += fmt::format("level: {} residual blocks of {} channels, {} on the way back\n",
                          net.blocks, width, net.blocks + 1);
    }
    return text + fmt::format("latents of {} channels\n", net.latents);
  }
  std::string operator()(const Blueprint& net) const {
    std::string text;
    for (const std::string& part : net.parts) text += part + "\n";
    return text;
  }
};

struct Coarsest {
  std::int64_t operator()(const ResNet& /*net*/) const { return 1; }
  std::int64_t operator()(const Swin& /*net*/) const { return 1; }
  template <class Net>
  std::int64_t operator()(const Net& net) const {
    return coarsest(net);
  }
};

}  // namespace

std::int64_t usual_side(const Network& network) {
  return std::visit([](const auto& net) { return net.side; }, network);
}

std::int64_t coarsest(const Network& network) { return std::visit(Coarsest{}, network); }

std::int64_t usual_text(const Network& network) {
  if (std::holds_alternative<UNet>(network)) return clip_tokens;
  if (const auto* blueprint = std::get_if<Blueprint>(&network)) return blueprint->text;
  return 0;
}

namespace {

// Of the first that enters.
struct Entering {
  std::int64_t frames = 1;
  Plane aspect{1, 1};
};

Entering entering(const Network& network) {
  const auto* blueprint = std::get_if<Blueprint>(&network);
  if (blueprint == nullptr) return {};
  for (const BlueprintStep& step : blueprint->steps) {
    if (const auto* picture = std::get_if<PictureInput>(&step.what)) {
      return {picture->frames, picture->aspect};
    }
    const auto* rows = std::get_if<RowsInput>(&step.what);
    if (rows != nullptr && rows->patch > 0) return {rows->frames, rows->aspect};
  }
  return {};
}

}  // namespace

std::string pictures_text(const Network& network, std::int64_t side) {
  const auto [frames, aspect] = entering(network);
  const std::int64_t columns = columns_of(side, aspect, coarsest(network));
  if (frames == 1) return fmt::format("images of {} x {}", side, columns);
  return fmt::format("{} frames of {} x {}", frames, side, columns);
}

bool reads_samples(const Network& network) {
  const auto* blueprint = std::get_if<Blueprint>(&network);
  if (blueprint == nullptr) return false;
  return std::any_of(blueprint->steps.begin(), blueprint->steps.end(), [](const auto& step) {
    const auto* input = std::get_if<PictureInput>(&step.what);
    return input != nullptr && input->is_text_long;
  });
}

bool reads_words(const Network& network) {
  const auto* blueprint = std::get_if<Blueprint>(&network);
  if (blueprint == nullptr) return false;
  return std::any_of(blueprint->steps.begin(), blueprint->steps.end(), [](const auto& step) {
    const auto* rows = std::get_if<TokenRows>(&step.what);
    return rows != nullptr && rows->count == 0;
  });
}

Value run(Eager& e, const Network& network, const ImageStep& step) {
  return std::visit([&](const auto& net) { return run(e, net, step); }, network);
}

std::string to_text(const Network& network) { return std::visit(DescribeNetwork{}, network); }

}  // namespace shardsim::models
