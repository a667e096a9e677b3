// JSON documents as values, for files that make or take them apart. Headers that only pass them on
// include base/json_reader.hpp, which does not know what a document is made of: nlohmann's header
// costs a second and more in every file that sees it.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json_reader.hpp"
