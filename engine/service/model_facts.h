// What a config stands for, as app/ and ui/ see it through the service's door: exact sizes of its model, and whether
// this build can train it.
#pragma once

#include <cstdint>

#include "engine/base/result.h"
#include "engine/model/counts.h"

namespace stacklab {

// Everything that is to be said against a run before anything is fetched or written: its config (validate), and
// sublayers that this build does not have.
Status check_launch(const RunConfig& config);

// Of one checkpoint on the disk: exactly the files of tensors, and the text beside them at most.
std::int64_t checkpoint_bytes(const RunConfig& config);

}  // namespace stacklab
