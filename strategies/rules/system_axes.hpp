// How programs of a rule system name the axes of their meshes, and which split their inputs.
//
//   praxis    replica, data: batch   mdl: model         inputs P((replica, data))
//   eformer   dp, fsdp, tp, sp, ep, or what "partition_axis" says instead
//                                                       inputs P((fsdp, dp), sp)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/layout/axis_roles.hpp"

namespace shardsim {

struct SystemAxes {
  std::map<std::string, AxisRole> roles{};  // of names that are the system's own
  // Of inputs, in the order of their spec; a mesh need not have them.
  std::vector<std::string> batch{};
  std::vector<std::string> sequence{};
  // That mixtures' experts are dealt out over, rows of tokens exchanged between them: those that
  // split the batch, too.
  std::vector<std::string> experts{};
  // The user says the batch's axes in the system's words: those alone. Otherwise axes that are for
  // the batch by their role come behind.
  bool batch_is_said = false;
};

}  // namespace shardsim
