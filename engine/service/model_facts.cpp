#include "engine/service/model_facts.h"

#include "engine/config/config_io.h"

namespace stacklab {

Status check_launch(const RunConfig& config) {
  if (Status ok = check_layers(config.model); !ok) return ok;
  return validate(config);
}

}  // namespace stacklab
