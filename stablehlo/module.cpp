#include "stablehlo/module.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/gzip.hpp"
#include "base/index.hpp"

namespace shardsim::stablehlo {

const Op* Function::definition(ValueId value) const {
  const OpId id = values[at(value)].defined_by;
  return id == no_op ? nullptr : &op(id);
}

const Function* Module::find_function(std::string_view function) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const Function& f) { return f.name == function; });
  return found == functions.end() ? nullptr : &*found;
}

const ProgramMesh* Module::find_mesh(std::string_view mesh) const {
  const auto found = std::find_if(meshes.begin(), meshes.end(),
                                  [&](const ProgramMesh& m) { return m.name == mesh; });
  return found == meshes.end() ? nullptr : &*found;
}

Place Module::place_of(const Op& op) const { return {file, fmt::format("line {}", op.line)}; }

std::size_t Module::op_count() const {
  std::size_t count = 0;
  for (const Function& function : functions) count += function.ops.size();
  return count;
}

Module read_module(const std::string& path) { return parse_module(read_maybe_gzip(path), path); }

}  // namespace shardsim::stablehlo
