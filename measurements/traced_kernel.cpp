#include "measurements/traced_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace shardsim {
namespace {

// That NCCL moves at once where everything is a multiple of it.
constexpr std::int64_t pack_bytes = 16;

struct KnownCollective {
  std::string_view name;
  CollectiveKind kind;
  std::string_view function;  // in the names of NCCL's kernels
};

// As ProcessGroupNCCL.cpp records them.
constexpr std::array known_collectives{
    KnownCollective{"allreduce", CollectiveKind::all_reduce, "AllReduce"},
    KnownCollective{"_allgather_base", CollectiveKind::all_gather, "AllGather"},
    KnownCollective{"all_gather", CollectiveKind::all_gather, "AllGather"},
    KnownCollective{"_reduce_scatter_base", CollectiveKind::reduce_scatter, "ReduceScatter"},
    KnownCollective{"reduce_scatter", CollectiveKind::reduce_scatter, "ReduceScatter"},
    KnownCollective{"all_to_all", CollectiveKind::all_to_all, "SendRecv"},
    KnownCollective{"all_to_allv", CollectiveKind::all_to_all, "SendRecv"},
    KnownCollective{"broadcast", CollectiveKind::broadcast, "Broadcast"},
};

constexpr std::array<std::string_view, 5> functions = {"AllReduce", "AllGather", "ReduceScatter",
                                                       "Broadcast", "Reduce"};

struct NamedType {
  std::string_view name;
  std::int64_t bytes;
};

// c10/core/ScalarType.h, as toString prints them.
constexpr std::array scalar_types{
    NamedType{"Byte", 1},
    NamedType{"Char", 1},
    NamedType{"Bool", 1},
    NamedType{"Float8_e4m3fn", 1},
    NamedType{"Float8_e5m2", 1},
    NamedType{"Float8_e4m3fnuz", 1},
    NamedType{"Float8_e5m2fnuz", 1},
    NamedType{"Float8_e8m0fnu", 1},
    NamedType{"Short", 2},
    NamedType{"UInt16", 2},
    NamedType{"Half", 2},
    NamedType{"BFloat16", 2},
    NamedType{"Int", 4},
    NamedType{"UInt32", 4},
    NamedType{"Float", 4},
    NamedType{"ComplexHalf", 4},
    NamedType{"Long", 8},
    NamedType{"UInt64", 8},
    NamedType{"Double", 8},
    NamedType{"ComplexFloat", 8},
    NamedType{"ComplexDouble", 16},
};

template <class Table>
auto find_named(const Table& table, std::string_view name) {
  return std::find_if(table.begin(), table.end(),
                      [&](const auto& entry) { return entry.name == name; });
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "AllGather" of "ncclDevKernel_AllGather_RING_LL(...)".
std::string_view function_of(std::string_view kernel) {
  const std::size_t begin = kernel.find('_');
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = kernel.substr(begin + 1);
  return rest.substr(0, rest.find_first_of("_("));
}

// The kernels of sends and receives, and generic ones, have been used for everything.
bool does_another(std::string_view kernel, const KnownCollective& known) {
  const std::string_view function = function_of(kernel);
  if (function == known.function) return false;
  return std::find(functions.begin(), functions.end(), function) != functions.end();
}

std::string algorithm_of(std::string_view kernel) {
  const std::string_view name = kernel.substr(0, kernel.find('('));
  if (name.starts_with("ncclDevKernel_")) return contains(name, "_TREE_") ? "Tree" : "";
  if (!name.starts_with("ncclKernel_") || function_of(kernel) == "SendRecv") return "";
  for (const auto& [part, algorithm] :
       {std::pair{"_NVLS_TREE_", "NVLSTree"}, std::pair{"_NVLS_", "NVLS"},
        std::pair{"_COLLNET_DIRECT_", "CollNetDirect"},
        std::pair{"_COLLNET_CHAIN_", "CollNetChain"}, std::pair{"_TREE_", "Tree"},
        std::pair{"_RING_", "Ring"}}) {
    if (contains(name, part)) return algorithm;
  }
  return "";
}

// In elements: nothing where input and output do not fit together.
std::optional<std::int64_t> payload_of(const CollectiveRecord& record, CollectiveKind kind) {
  const std::int64_t in = record.in_elements;
  const std::int64_t out = record.out_elements;
  switch (kind) {
    case CollectiveKind::all_gather:
      if (out % record.group_size == 0 && out / record.group_size == in) return out;
      return std::nullopt;
    case CollectiveKind::reduce_scatter:
      if (in % record.group_size == 0 && in / record.group_size == out) return in;
      return std::nullopt;
    case CollectiveKind::all_to_all:
      if (in == out && in % record.group_size == 0) return in;
      return std::nullopt;
    default:
      if (in == out) return in;
      return std::nullopt;
  }
}

bool is_in_parts(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_to_all;
}

}  // namespace

std::variant<TracedCase, PassedOver> judge(const TracedCollective& collective) {
  const CollectiveRecord& record = collective.record;
  if (record.group_size == 1) return "of groups of one rank";
  if (record.in_elements == 0 || record.out_elements == 0) return "without data";
  if (record.name == "send" || record.name == "recv") return "of sends and receives";
  if (record.name.ends_with("_coalesced")) return "of coalesced collectives";
  const auto* const known = find_named(known_collectives, record.name);
  if (known == known_collectives.end()) {
    return fmt::format("of collectives that are not modelled (\"{}\")", record.name);
  }
  const auto* const type = find_named(scalar_types, record.dtype);
  if (type == scalar_types.end()) return fmt::format("of an unknown dtype (\"{}\")", record.dtype);
  if (collective.is_one_of_several) return "of calls that launched several";
  if (collective.kernel.starts_with("ncclSym")) return "on symmetric memory";
  if (does_another(collective.kernel, *known))
    return "that do something else than their record says";
  const auto elements = payload_of(record, known->kind);
  if (!elements || !record.has_even_splits) return "with uneven parts";
  const std::int64_t bytes = *elements * type->bytes;
  if (is_in_parts(known->kind) && bytes / record.group_size % pack_bytes != 0) {
    return fmt::format("with parts that are no multiple of {} bytes", pack_bytes);
  }
  if (collective.is_beside_collectives) return "beside other collectives";
  if (!(collective.duration > 0)) return "without a time";
  return TracedCase{known->kind, Bytes(bytes), algorithm_of(collective.kernel)};
}

}  // namespace shardsim
