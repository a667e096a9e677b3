// Profiles that are others but for a few numbers.
//
//   {"schema": "shardsim/profile/1", "name": "aws-p5", "title": "AWS p5.48xlarge, ...",
//    "extends": "dgx-h100",
//    "cluster": {"scale_out": {"nics_per_node": {"value": 32, ...}, ...}}}
//
// is dgx-h100 with other NICs. Members of objects replace those of the same name or are added, null
// takes one away, and a number is replaced as a whole, with its source: nothing keeps the source of
// a value that it lost. "extends" names a shipped profile or a file, relative to the one it stands
// in; what it names may extend in turn. A device that says what its products or attention reach,
// and names no "kernels", has not those that it inherits.
#pragma once

#include <string>

#include "base/json_reader.hpp"

namespace shardsim {

// A machine written in place: an object with "extends", in which numbers may stand without their
// sources ("bandwidth": "12.5 GB/s"); they are marked as the writer's. Its name is the extended
// one's, "with changes", where it has none. `place` is the object's. Throws InputError.
[[nodiscard]] Json machine_in_place(const JsonReader& machine);

// The document with everything that it inherits and without "extends"; as it is, if it extends
// nothing. Throws InputError for an unknown profile and for a chain that does not end. What is
// wrong in an inherited part is found by the reader of the whole, at its place there.
[[nodiscard]] Json extended(const Json& document, const std::string& file);

}  // namespace shardsim
