#include "strategies/layout/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "strategies/key_place.hpp"
#include "strategies/layout/layout_string.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {
namespace {

using LayerCounts = std::vector<std::int32_t>;  // by stage

std::int32_t chunks_of(const StagesRequest& request) { return request.virtual_stages.value_or(1); }

// What counts as a layer where it is not said and layers alone do not come out: Megatron Bridge's.
void count_ends(StagesRequest& request, std::int32_t stages) {
  if (request.mtp_layers > 0) {
    request.loss_counts = std::min(request.mtp_layers + 1, request.layers / stages);
  } else if ((request.layers + 2) % stages == 0) {
    set_one_less_at_ends(request);
  }
}

// Every stage the same, less what embedding and loss take.
LayerCounts even_counts(StagesRequest request, const Place& place) {
  const std::int32_t stages = request.ranks * chunks_of(request);
  const bool nothing_counts = request.embedding_counts == 0 && request.loss_counts == 0;
  if (request.remainder == Remainder::noted && nothing_counts && request.layers % stages != 0) {
    count_ends(request, stages);
  }
  const std::int32_t all = request.layers + request.embedding_counts + request.loss_counts;
  const std::int32_t each = all / stages;
  const std::int32_t left = all % stages;
  if (left != 0 && request.remainder == Remainder::refused) {
    const std::string counted =
        all == request.layers ? "" : fmt::format(" ({} with embedding and loss counted)", all);
    throw InputError(
        place_of_key(place, "layers"),
        fmt::format(
            "{} layers{} do not divide by {} stages ({} ranks x {}); {} or {} would, or say "
            "the layers of each stage",
            request.layers, counted, stages, request.ranks, chunks_of(request),
            request.layers - left, request.layers - left + stages));
  }
  LayerCounts counts(static_cast<std::size_t>(stages), each);
  for (std::int32_t i = 0; i < left; ++i) ++counts[static_cast<std::size_t>(i)];
  counts.front() -= request.embedding_counts;
  counts.back() -= request.loss_counts;
  const bool bare = request.remainder != Remainder::refused &&
                    (each == 0 || std::max(request.embedding_counts, request.loss_counts) > each) &&
                    stages > 1;
  if (bare || counts.front() < 0 || counts.back() < 0) {
    throw InputError(
        place_of_key(place, "layers"),
        fmt::format("{} layers are too few for {} stages whose first counts the "
                    "embedding as {} and whose last the loss as {}",
                    request.layers, stages, request.embedding_counts, request.loss_counts));
  }
  return counts;
}

void check_end(const std::optional<std::int32_t>& end, std::string_view name,
               const StagesRequest& request, const Place& place) {
  if (!end) return;
  const Place at = place_of_key(place, fmt::format("ends/{}", name));
  if (*end < 1) throw InputError(at, fmt::format("{} layers: at least 1", *end));
  if (*end % chunks_of(request) != 0) {
    throw InputError(at, fmt::format("{} layers do not divide by the rank's {} virtual stages",
                                     *end, chunks_of(request)));
  }
}

LayerCounts ends_counts(const StagesRequest& request, const Place& place) {
  check_end(request.first, "first", request, place);
  check_end(request.last, "last", request, place);
  const Place ends = place_of_key(place, "ends");
  if (request.embedding_counts != 0 || request.loss_counts != 0) {
    throw InputError(ends, "layers of the ends are given; embedding and loss cannot count as well");
  }
  const std::int32_t chunks = chunks_of(request);
  const std::int32_t named = (request.first ? 1 : 0) + (request.last ? 1 : 0);
  const std::int32_t middle = request.ranks - named;
  const std::int32_t layers = request.layers - request.first.value_or(0) - request.last.value_or(0);
  if (middle < 0 || layers < 0 || (middle == 0) != (layers == 0)) {
    throw InputError(ends, fmt::format("the ends leave {} of {} layers for {} of {} ranks", layers,
                                       request.layers, middle, request.ranks));
  }
  if (middle == 0 && chunks > 1 && request.ranks > 1) {
    throw InputError(ends, fmt::format("with {} virtual stages Megatron needs ranks between the "
                                       "ends; say the layers of each stage",
                                       chunks));
  }
  if (middle > 0 && (layers % middle != 0 || layers / middle % chunks != 0)) {
    throw InputError(ends,
                     fmt::format("the ends leave {} layers, which do not divide by {} ranks x "
                                 "{} virtual stages",
                                 layers, middle, chunks));
  }
  LayerCounts counts;
  for (std::int32_t stage = 0; stage < request.ranks * chunks; ++stage) {
    const std::int32_t rank = stage % request.ranks;
    const bool is_first = rank == 0 && request.first;
    const bool is_last = rank == request.ranks - 1 && request.last;
    const std::int32_t of_rank = is_first  ? *request.first
                                 : is_last ? *request.last
                                           : layers / middle;
    counts.push_back(of_rank / chunks);
  }
  return counts;
}

LayerCounts listed_counts(const StagesRequest& request, const Place& place) {
  const Place at = place_of_key(place, "layers");
  const std::int32_t chunks = chunks_of(request);
  const auto ranks = static_cast<std::size_t>(request.ranks);
  const std::size_t stages = ranks * static_cast<std::size_t>(chunks);
  if (request.embedding_counts != 0 || request.loss_counts != 0) {
    throw InputError(at, "layers are listed; embedding and loss cannot count as well");
  }
  const bool per_rank = request.counts.size() == ranks;
  if (!per_rank && request.counts.size() != stages) {
    throw InputError(at, fmt::format("{} numbers for {} ranks of {} stages each: expected {}{}",
                                     request.counts.size(), ranks, chunks, ranks,
                                     chunks > 1 ? fmt::format(" or {}", stages) : ""));
  }
  std::int64_t sum = 0;
  for (const std::int32_t count : request.counts) {
    if (count < 0) throw InputError(at, fmt::format("{} layers: at least 0", count));
    if (per_rank && count % chunks != 0) {
      throw InputError(at,
                       fmt::format("{} layers of a rank do not divide by its {} virtual stages; "
                                   "say all {} stages",
                                   count, chunks, stages));
    }
    sum += count;
  }
  if (sum != request.layers) {
    throw InputError(at,
                     fmt::format("the stages have {} layers, the model {}", sum, request.layers));
  }
  if (!per_rank) return request.counts;
  LayerCounts counts;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    counts.push_back(request.counts[stage % ranks] / chunks);
  }
  return counts;
}

// One way of saying it at most.
void check_ways(const StagesRequest& request, const Place& place) {
  const bool ends = request.first || request.last;
  const int ways = (ends ? 1 : 0) + (request.counts.empty() ? 0 : 1) + (request.layout ? 1 : 0);
  if (ways > 1) {
    throw InputError(
        place_of_key(place, "layers"),
        "layers of the ends, a list and a layout are three ways to say which stage has "
        "which layers; say one");
  }
  if (request.layout && (request.embedding_counts != 0 || request.loss_counts != 0)) {
    throw InputError(place_of_key(place, "layers"),
                     "a layout says where embedding and loss are; they cannot count as well");
  }
  if (request.ranks < 1 || chunks_of(request) < 1 || request.layers < 0 ||
      request.ranks > max_stages || std::int64_t{request.ranks} * chunks_of(request) > max_stages) {
    throw InputError(place,
                     fmt::format("{} layers on {} ranks of {} stages each: expected 1 to "
                                 "{} stages",
                                 request.layers, request.ranks, chunks_of(request), max_stages));
  }
}

}  // namespace

void set_one_less_at_ends(StagesRequest& request) {
  request.embedding_counts = 1;
  request.loss_counts = 1;
}

std::vector<StageLayers> assign_stages(const StagesRequest& request, const Place& place) {
  check_ways(request, place);
  if (request.layout) return stages_of_layout(request, place_of_key(place, "layers"));
  const LayerCounts counts = request.first || request.last ? ends_counts(request, place)
                             : !request.counts.empty()     ? listed_counts(request, place)
                                                           : even_counts(request, place);
  std::vector<StageLayers> stages;
  std::int32_t first = 0;
  for (const std::int32_t count : counts) {
    stages.push_back({first, count, /*embedding=*/false, /*loss=*/false, /*mtp=*/0});
    first += count;
  }
  stages.front().embedding = true;
  stages.back().loss = true;
  stages.back().mtp = request.mtp_layers;
  return stages;
}

}  // namespace shardsim
