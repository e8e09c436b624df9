// What a run needs beside its tensors to go on: trainer.json of every checkpoint. Pure data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace stacklab {

// The data position is the step: batches are a function of (seed, step). So are random numbers (base/philox.h): nothing
// of a generator has to be kept.
struct TrainerState {
  std::int64_t step = 0;  // updates done
  std::int64_t tokens = 0;
  double seconds = 0;  // spent training
  double first_loss = 0, loss = 0, val_loss = 0;
  std::int64_t skipped = 0;  // steps whose gradient was not finite
};

struct TrainerFile {
  std::string config_hash;
  std::int64_t seed = 0;  // of batches and random numbers
  TrainerState state;
  std::map<std::string, std::string> sha256;  // of the other files of the checkpoint, by name
};

std::string to_json(const TrainerFile& file);
// Errors name the source and the field.
Result<TrainerFile> parse_trainer_file(std::string_view json, std::string_view source_name);

}  // namespace stacklab
