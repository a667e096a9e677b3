// What an experiment is of: a step of a model, a program or a parameter tree; experiment.hpp lists
// the keys.
#pragma once

#include <string>

#include "experiments/experiment.hpp"
#include "experiments/sections.hpp"

namespace shardsim {

// Fills `written` with where the subject stands. Throws InputError: what belongs to another kind of
// subject, and what of the sections cannot be meant. Files that it names are read later, but for a
// tree that says itself how it lies.
[[nodiscard]] ExperimentSubject read_subject(const Sections& sections, const std::string& directory,
                                             Written& written);
// Throws InputError for an axis of the mesh that the strategy of a model leaves unused.
void require_served_axes(const Sections& sections, const ExperimentSubject& subject);
// The sections that say it, with every default filled in.
[[nodiscard]] Json subject_sections(const ExperimentSubject& subject, const Sections& sections);

}  // namespace shardsim
