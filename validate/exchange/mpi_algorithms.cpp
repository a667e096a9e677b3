#include "validate/exchange/mpi_algorithms.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "base/error.hpp"
#include "base/index.hpp"
#include "validate/exchange/mpi_calls.hpp"

namespace shardsim {
namespace {

constexpr std::size_t longest = 1024;  // text that MPI tells
constexpr const char* own_choice = "ignore";

// Of Open MPI 4; empty where it has no variable.
const char* variable_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "coll_tuned_allreduce_algorithm";
    case CollectiveKind::all_gather:
      return "coll_tuned_allgather_algorithm";
    case CollectiveKind::reduce_scatter:
      return "coll_tuned_reduce_scatter_block_algorithm";
    case CollectiveKind::all_to_all:
      return "coll_tuned_alltoall_algorithm";
    case CollectiveKind::broadcast:
      return "coll_tuned_bcast_algorithm";
    case CollectiveKind::collective_permute:
      break;
  }
  return "";
}

// MPI's tools interface, for as long as it is needed.
class Tools {
 public:
  Tools() {
    int provided = 0;
    check_mpi(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  }
  ~Tools() { MPI_T_finalize(); }
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;
};

struct Variable {
  int index = -1;  // none
  std::vector<std::string> values;
};

std::vector<std::string> values_of(MPI_T_enum values) {
  int count = 0;
  std::array<char, longest> text{};
  int length = static_cast<int>(text.size());
  check_mpi(MPI_T_enum_get_info(values, &count, text.data(), &length));
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    int value = 0;
    length = static_cast<int>(text.size());
    check_mpi(MPI_T_enum_get_item(values, i, &value, text.data(), &length));
    names.resize(std::max(names.size(), at(value) + 1));
    names[at(value)] = text.data();
  }
  return names;
}

Variable find_variable(const std::string& name) {
  int count = 0;
  check_mpi(MPI_T_cvar_get_num(&count));
  for (int index = 0; index < count; ++index) {
    std::array<char, longest> text{};
    std::array<char, longest> description{};
    int length = static_cast<int>(text.size());
    int length_of_description = static_cast<int>(description.size());
    int verbosity = 0;
    int binding = 0;
    int scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    const int code =
        MPI_T_cvar_get_info(index, text.data(), &length, &verbosity, &type, &values,
                            description.data(), &length_of_description, &binding, &scope);
    if (code != MPI_SUCCESS || text.data() != name) continue;  // some indices are of nothing
    return {index, values == MPI_T_ENUM_NULL ? std::vector<std::string>{} : values_of(values)};
  }
  return {};
}

void write(const Variable& variable, int value) {
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  check_mpi(MPI_T_cvar_handle_alloc(variable.index, nullptr, &handle, &count));
  check_mpi(MPI_T_cvar_write(handle, &value));
  check_mpi(MPI_T_cvar_handle_free(&handle));
}

}  // namespace

void let_mpi_algorithms_be_chosen() { setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 1); }

std::vector<std::string> mpi_algorithms(CollectiveKind kind) {
  const Tools tools;
  std::vector<std::string> names = find_variable(variable_of(kind)).values;
  std::erase_if(names, [](const std::string& name) { return name.empty() || name == own_choice; });
  return names;
}

bool choose_mpi_algorithm(CollectiveKind kind, const std::string& algorithm) {
  static std::map<CollectiveKind, std::string> chosen;
  if (chosen[kind] == algorithm) return false;
  const Tools tools;
  const Variable variable = find_variable(variable_of(kind));
  if (variable.index < 0) {
    throw CannotRunError(
        fmt::format("this MPI does not tell of algorithms for {}: Open MPI does", name_of(kind)));
  }
  const std::string name = algorithm.empty() ? own_choice : algorithm;
  const auto found = std::find(variable.values.begin(), variable.values.end(), name);
  if (found == variable.values.end()) {
    throw InputError({"command line", "/algorithms"},
                     fmt::format("unknown algorithm of {} \"{}\"", name_of(kind), algorithm),
                     closest(algorithm, variable.values));
  }
  write(variable, static_cast<int>(found - variable.values.begin()));
  chosen[kind] = algorithm;
  return true;
}

}  // namespace shardsim
