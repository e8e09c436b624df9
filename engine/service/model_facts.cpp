#include "engine/service/model_facts.h"

#include "engine/config/config_io.h"
#include "engine/train/checkpoint.h"

namespace stacklab {

Status check_launch(const RunConfig& config) {
  if (Status ok = check_layers(config.model); !ok) return ok;
  return validate(config);
}

std::int64_t checkpoint_bytes(const RunConfig& config) { return checkpoint_size(config).total(); }

}  // namespace stacklab
