// What people do to runs beside training them: the verbs below `runs` that change something, and comparisons.
#pragma once

#include <vector>

#include "app/cli/verb.h"

namespace stacklab::cli {

std::vector<Verb> run_edit_verbs();

}  // namespace stacklab::cli
