#include "spmd/tiling/tile_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::spmd {

using stablehlo::TileSharding;

namespace {

constexpr std::int64_t most_devices = std::int64_t{1} << 24;

std::int64_t checked_product(const std::vector<std::int64_t>& sizes, const Place& place) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1 || size > most_devices / result) {
      throw InputError(place, "unlikely number of devices in a sharding");
    }
    result *= size;
  }
  return result;
}

[[noreturn]] void fail(const TileSharding& tiles, const Place& place) {
  throw InputError(place, fmt::format("no mesh explains the sharding {}", text_of(tiles)));
}

}  // namespace

// Of the device numbers in the order in which they fill the tiles.
TileMesh::Digits TileMesh::device_digits(const TileSharding& tiles, const Place& place) {
  Digits digits;
  if (!tiles.reshape.empty()) {
    std::vector<std::int64_t> strides(tiles.reshape.size(), 1);
    for (std::size_t i = strides.size() - 1; i-- > 0;) {
      strides[i] = strides[i + 1] * tiles.reshape[i + 1];
    }
    for (std::size_t i = 0; i < tiles.reshape.size(); ++i) {
      const auto from = tiles.transpose.empty() ? i : static_cast<std::size_t>(tiles.transpose[i]);
      if (from >= tiles.reshape.size()) fail(tiles, place);
      digits.push_back({strides[from], tiles.reshape[from]});
    }
    return digits;
  }
  // A list: the fastest digit is the longest run of equal steps, then the same of every run.
  std::vector<std::int64_t> devices = tiles.devices;
  if (devices.empty() || devices.front() != 0) fail(tiles, place);
  while (devices.size() > 1) {
    const std::int64_t stride = devices[1];
    std::size_t run = 1;
    while (run < devices.size() && devices[run] == stride * static_cast<std::int64_t>(run)) ++run;
    if (stride < 1 || devices.size() % run != 0) fail(tiles, place);
    std::vector<std::int64_t> starts;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto step = stride * static_cast<std::int64_t>(i % run);
      if (devices[i] != devices[i - i % run] + step) fail(tiles, place);
      if (i % run == 0) starts.push_back(devices[i]);
    }
    digits.insert(digits.begin(), {stride, static_cast<std::int64_t>(run)});
    devices = std::move(starts);
  }
  return digits;
}

// By tile dimension: digits are dealt to dimensions in order, and cut where a dimension is full.
std::vector<TileMesh::Digits> TileMesh::digits_of(const TileSharding& tiles, const Place& place) {
  Digits digits = device_digits(tiles, place);
  std::vector<Digits> result;
  std::size_t next = 0;
  for (std::int64_t left : tiles.tiles) {
    Digits& dimension = result.emplace_back();
    while (left > 1) {
      while (next < digits.size() && digits[next].size == 1) ++next;
      if (next == digits.size()) fail(tiles, place);
      Digit& digit = digits[next];
      if (left % digit.size == 0) {
        dimension.push_back(digit);
        left /= digit.size;
        ++next;
      } else if (digit.size % left == 0) {
        digit.size /= left;
        dimension.push_back({digit.stride * digit.size, left});
        left = 1;
      } else {
        fail(tiles, place);
      }
    }
  }
  return result;
}

void TileMesh::add(const TileSharding& tiles, const Place& place) {
  if (tiles.kind != TileSharding::Kind::tiled) return;
  const std::int64_t devices = checked_product(tiles.tiles, place);
  if (devices_ != 0 && devices != devices_) {
    throw InputError(place, fmt::format("{} devices here, {} in other shardings: {}", devices,
                                        devices_, text_of(tiles)));
  }
  devices_ = devices;
  for (const Digits& dimension : digits_of(tiles, place)) {
    for (const Digit& digit : dimension) {
      cuts_.push_back(digit.stride);
      cuts_.push_back(digit.stride * digit.size);
    }
  }
}

stablehlo::ProgramMesh TileMesh::mesh(const Place& place) {
  cuts_.push_back(1);
  cuts_.push_back(devices_);
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  stablehlo::ProgramMesh mesh{"mesh", {}, {}};
  for (std::size_t i = cuts_.size() - 1; i-- > 0;) {
    if (cuts_[i + 1] % cuts_[i] != 0) {
      throw InputError(place, fmt::format("no mesh explains all shardings: one splits the devices "
                                          "at {}, another at {}",
                                          cuts_[i], cuts_[i + 1]));
    }
    mesh.axes.push_back({fmt::format("axis_{}", mesh.axes.size()), cuts_[i + 1] / cuts_[i]});
  }
  return mesh;
}

std::vector<stablehlo::AxisPart> TileMesh::parts_of(const Digits& digits) const {
  std::vector<stablehlo::AxisPart> parts;
  for (const Digit& digit : digits) {
    for (std::size_t i = cuts_.size() - 1; i-- > 0;) {
      if (cuts_[i] < digit.stride || cuts_[i] >= digit.stride * digit.size) continue;
      parts.push_back({fmt::format("axis_{}", cuts_.size() - 2 - i), 1, 0});
    }
  }
  return parts;
}

stablehlo::AxisSharding TileMesh::axes_of(const TileSharding& tiles, std::size_t rank,
                                          const Place& place) const {
  stablehlo::AxisSharding axes;
  axes.mesh = "mesh";
  axes.dimensions.resize(rank);
  if (tiles.kind == TileSharding::Kind::replicated) return axes;
  if (tiles.kind != TileSharding::Kind::tiled) fail(tiles, place);
  const std::vector<Digits> digits = digits_of(tiles, place);
  if (digits.size() < rank) fail(tiles, place);
  for (std::size_t d = 0; d < rank; ++d) axes.dimensions[d].axes = parts_of(digits[d]);
  return axes;
}

std::vector<std::string> TileMesh::manual_axes(const TileSharding& tiles,
                                               const Place& place) const {
  std::vector<std::string> names;
  if (tiles.kind == TileSharding::Kind::manual) {
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i) names.push_back(fmt::format("axis_{}", i));
    return names;
  }
  if (tiles.kind != TileSharding::Kind::tiled) return names;
  const std::vector<Digits> digits = digits_of(tiles, place);
  const std::size_t rank = digits.size() - tiles.subgroups.size();
  for (std::size_t i = 0; i < tiles.subgroups.size(); ++i) {
    if (tiles.subgroups[i] != "manual") continue;
    for (stablehlo::AxisPart& part : parts_of(digits[rank + i])) {
      names.push_back(std::move(part.axis));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace shardsim::spmd
