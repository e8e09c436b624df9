// What people do to runs beside training them: the verbs below `runs` that change something, and comparisons.
#pragma once

#include <vector>

#include "app/cli/verb.h"
#include "engine/base/json_writer.h"
#include "engine/service/job_service.h"

namespace stacklab::cli {

std::vector<Verb> run_edit_verbs();

// What people have done to it: tags, note, archived, deleted.
void write_edits(JsonWriter& json, const RunSummary& run);

}  // namespace stacklab::cli
