#include "sim/nccl/communicator.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <vector>

namespace shardsim::nccl {
namespace {

constexpr std::array<std::string_view, algorithms> algorithm_names = {
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, protocols> protocol_names = {"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, operations> operation_names = {
    "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

template <class Value, class Names>
std::optional<Value> find_in(const Names& names, std::string_view text) {
  const std::string wanted = lower(text);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (lower(names[i]) == wanted) return static_cast<Value>(i);
  }
  return std::nullopt;
}

template <class Names>
[[noreturn]] void fail_unknown(const Names& names, std::string_view text, std::string_view what,
                               const Place& place) {
  const std::vector<std::string> candidates(names.begin(), names.end());
  throw InputError(place, fmt::format("unknown NCCL {} \"{}\"", what, text),
                   closest(text, candidates));
}

}  // namespace

const ChannelGraph& Communicator::graph(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::tree:
    case Algorithm::pat:
      return tree;
    case Algorithm::ring:
      return ring;
    case Algorithm::collnet_direct:
      return collnet_direct;
    case Algorithm::collnet_chain:
      return collnet_chain;
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return nvls;
  }
  assert(false);
  return ring;
}

std::string_view name_of(Algorithm algorithm) {
  return algorithm_names[static_cast<std::size_t>(algorithm)];
}
std::string_view name_of(Protocol protocol) {
  return protocol_names[static_cast<std::size_t>(protocol)];
}
std::string_view name_of(Operation operation) {
  return operation_names[static_cast<std::size_t>(operation)];
}

std::optional<Algorithm> find_algorithm(std::string_view text) {
  return find_in<Algorithm>(algorithm_names, text);
}
std::optional<Protocol> find_protocol(std::string_view text) {
  return find_in<Protocol>(protocol_names, text);
}

Algorithm parse_algorithm(std::string_view text, const Place& place) {
  if (const auto found = find_algorithm(text)) return *found;
  fail_unknown(algorithm_names, text, "algorithm", place);
}
Protocol parse_protocol(std::string_view text, const Place& place) {
  if (const auto found = find_protocol(text)) return *found;
  fail_unknown(protocol_names, text, "protocol", place);
}

}  // namespace shardsim::nccl
